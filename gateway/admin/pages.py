"""A gateway's admin address: which pages and commands there are, before its realm is open and after. Another page is
another entry.

While the realm is opened the main thread waits, so a thread of its own answers; afterwards the gateway's loop does, one
part of a page between two turns.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from gateway.admin import metrics
from gateway.admin.answers import Answering, WrongParameter
from gateway.admin.commands import close_connection
from gateway.admin.errors import errors
from gateway.admin.exposition import CONTENT_TYPE, Family, single, written
from gateway.admin.health import health, is_ready, state_of, waiting
from gateway.admin.history.answer import history
from gateway.admin.http import HttpServer, Page, Request, Response
from gateway.admin.peers import connections, links
from gateway.admin.probes import live, ready, waiting_live, waiting_ready
from gateway.admin.problems import problems
from gateway.admin.progress import Progress
from gateway.admin.rules import rules
from gateway.admin.standing import process_facts, standing
from gateway.admin.stores import durables, nodes
from gateway.admin.transactions import transactions
from gateway.admin.watched import Watched
from gateway.session.gateway import Gateway
from native_backend.clock import SystemClock

log = logging.getLogger("realmgate.admin")
_OF_GATEWAY = {
    "connections": connections,
    "links": links,
    "errors": errors,
    "nodes": nodes,
    "durables": durables,
    "rules": rules,
    "transactions": transactions,
    "history": history,
}
_NONE: dict[str, Any] = {
    **{name: [] for name in _OF_GATEWAY},
    "left_out": 0,
    "known_us": None,
    "gateway": None,
    "next": None,
}


def _page(answer: Callable[[], Response]) -> Page:
    """The same for every request."""

    async def show(_: Request) -> Response:
        return answer()

    return show


def pages(watched: Watched) -> dict[str, Page]:
    """Of a gateway that serves."""
    process = process_facts()

    async def show_metrics(_: Request) -> Response:
        return await _exposed(_families(watched))

    async def show_gateway(_: Gateway, answering: Answering, __: Request) -> Response:
        return answering.answer(gateway=standing(watched, process))

    return {
        "/health": _page(lambda: health(watched)),
        "/metrics": show_metrics,
        "/livez": _page(lambda: live(watched)),
        "/readyz": _page(lambda: ready(watched)),
        **{f"/api/{name}": _of_gateway(watched, page) for name, page in _OF_GATEWAY.items()},
        "/api/gateway": _of_gateway(watched, show_gateway),
    }


def commands(watched: Watched) -> dict[str, Page]:
    """Of a gateway that serves."""
    return {"/api/connections/close": _of_gateway(watched, close_connection)}


def _of_gateway(watched: Watched, answer: Callable[[Gateway, Answering, Request], Awaitable[Response]]) -> Page:
    async def show(request: Request) -> Response:
        gateway = watched.gateway
        state = state_of(gateway, problems(watched))
        answering = Answering(gateway.realm.run, gateway.clock.epoch_us(), state)
        try:
            return await answer(gateway, answering, request)
        except WrongParameter as wrong:
            return answering.refusal(HTTPStatus.BAD_REQUEST, str(wrong))

    return show


def waiting_pages(progress: Progress, run: str) -> dict[str, Page]:
    """Of one that waits for its realm."""
    nothing = _page(lambda: Answering(run, SystemClock().epoch_us(), progress.state).answer(**_NONE))

    async def show_metrics(_: Request) -> Response:
        about = "What runs: constant 1."
        info = Family("realmgate_waiting_info", "gauge", about, ("run", "state"), [((run, progress.state), 1)])
        ready = single("realmgate_ready", "gauge", "1 while /health answers 200.", 0)
        return await _exposed(iter((info, ready)))

    return {
        "/health": _page(lambda: waiting(progress.state, progress.words, run)),
        "/metrics": show_metrics,
        "/livez": _page(lambda: waiting_live(progress.state, run)),
        "/readyz": _page(lambda: waiting_ready(progress.state, progress.words, run)),
        **{f"/api/{name}": nothing for name in (*_OF_GATEWAY, "gateway")},
    }


def _families(watched: Watched) -> metrics.Parts:
    gateway, figures, open_problems = watched.gateway, watched.gateway.realm.metrics, problems(watched)
    yield from metrics.of_gateway(gateway, is_ready(state_of(gateway, open_problems)))
    yield from metrics.of_problems(open_problems)
    yield from metrics.of_reload(watched.reload)
    yield from metrics.of_certificates(watched.certificates)
    yield from metrics.of_realm(figures, gateway.realm.lost, gateway.outcomes.records)
    yield from metrics.of_durables(figures)
    yield from metrics.of_nodes(figures)
    yield from metrics.of_process()


async def _exposed(families: metrics.Parts) -> Response:
    """Every part in a turn of the loop's own."""
    text = []
    for part in written(families):
        text.append(part)
        await asyncio.sleep(0)
    return Response(HTTPStatus.OK, CONTENT_TYPE, b"".join(text))


@contextmanager
def answering(listening: socket.socket, progress: Progress, run: str) -> Iterator[None]:
    """Answer on a thread of its own while the realm is opened inside."""
    begun = threading.Event()
    end: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        ended = asyncio.Event()
        end.append((asyncio.get_running_loop(), ended))
        server = HttpServer(waiting_pages(progress, run))
        try:
            await server.open(listening)
        finally:
            begun.set()
        await ended.wait()
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="admin", daemon=True)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        loop, ended = end[0]
        loop.call_soon_threadsafe(ended.set)
        thread.join()
