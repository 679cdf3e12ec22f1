"""A gateway's admin address: which pages there are, before its realm is open and after. Another page is another entry.

While the realm is opened the main thread waits, so a thread of its own answers; afterwards the gateway's loop does, one
part of a page between two turns. May import: `gateway`, prometheus-client.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from gateway.admin import metrics
from gateway.admin.families import CONTENT_TYPE, Family, single, written
from gateway.admin.health import health, state_of, waiting
from gateway.admin.http import HttpServer, Page, Response

if TYPE_CHECKING:
    from gateway.certificates import Certificates
    from gateway.gateway import Gateway
    from gateway.opening import Progress
    from gateway.reload import Reload

log = logging.getLogger("realmgate.admin")


def pages(gateway: Gateway, reload: Reload, certificates: Certificates | None = None) -> dict[str, Page]:
    """Of a gateway that serves."""

    async def show_health() -> Response:
        return health(gateway, reload, certificates)

    async def show_metrics() -> Response:
        return await _exposed(_families(gateway, reload))

    return {"/health": show_health, "/metrics": show_metrics}


def waiting_pages(progress: Progress, run: str) -> dict[str, Page]:
    """Of one that waits for its realm."""

    async def show_health() -> Response:
        return waiting(progress.state, progress.words, run)

    async def show_metrics() -> Response:
        about = "What runs: constant 1."
        info = Family("realmgate_waiting_info", "gauge", about, ("run", "state"), [((run, progress.state), 1)])
        ready = single("realmgate_ready", "gauge", "1 while /health answers 200.", 0)
        return await _exposed(iter((info, ready)))

    return {"/health": show_health, "/metrics": show_metrics}


def _families(gateway: Gateway, reload: Reload) -> metrics.Parts:
    figures = gateway.realm.figures
    yield from metrics.of_gateway(gateway, state_of(gateway) == "ready")
    yield from metrics.of_reload(reload)
    yield from metrics.of_realm(figures, gateway.realm.lost, gateway.outcomes.records)
    yield from metrics.of_durables(figures)
    yield from metrics.of_capacities(figures)
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
