"""How many requests there may be at the admin address at once, and that none of them keeps a probe out."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from gateway.admin import http
from gateway.admin.http import Request, Response
from gateway.config.limits import (
    ADMIN_CONNECTIONS,
    ADMIN_HEAD_TIMEOUT_S,
    ADMIN_HEADS,
    ADMIN_PROBES,
    ADMIN_TIMEOUT_S,
)
from tests.gateway.admin.http.admin_site import GET, AdminSite, hello
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch


@pytest.fixture
def watch() -> Iterator[Watch]:
    site = AdminSite({"/hello": hello, "/livez": hello})
    yield site.watch
    site.close()


@contextmanager
def _open(watch: Watch, count: int) -> Iterator[list[socket.socket]]:
    host, _, port = watch.url.removeprefix("http://").rpartition(":")
    with ExitStack() as opened:
        yield [opened.enter_context(socket.create_connection((host, int(port)), timeout=HANG_S)) for _ in range(count)]


def _is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("probe", ["/livez", "/readyz", "/health"])
def test_unfinished_requests_keep_no_probe_out_and_go_in_their_order(
    monkeypatch: pytest.MonkeyPatch, probe: str
) -> None:
    monkeypatch.setattr(http, "ADMIN_HEAD_TIMEOUT_S", 10 * HANG_S)
    site = AdminSite({probe: hello})
    try:
        with _open(site.watch, 2 * ADMIN_HEADS) as unfinished:
            for client in unfinished:
                client.sendall(b"GET /livez HTTP/1.1\r\n")
            assert site.watch.say(GET % probe.encode()).endswith(b"hello\n")
            assert all(map(_is_closed, unfinished[: ADMIN_HEADS + 1])), "those that came first gave way"
    finally:
        site.close()


def test_an_unfinished_request_has_a_time_of_its_own(monkeypatch: pytest.MonkeyPatch, watch: Watch) -> None:
    assert ADMIN_HEAD_TIMEOUT_S < ADMIN_TIMEOUT_S
    monkeypatch.setattr(http, "ADMIN_HEAD_TIMEOUT_S", 0.1)
    monkeypatch.setattr(http, "ADMIN_TIMEOUT_S", 10 * HANG_S)
    with _open(watch, 1) as (unfinished,):
        unfinished.sendall(b"GET /hello")
        assert _is_closed(unfinished)


def test_one_request_too_many_is_closed_and_a_probe_is_answered_beside_them() -> None:
    go_on, begun = threading.Event(), []

    async def slow(request: Request) -> Response:
        begun.append(request)
        while not go_on.is_set():
            await asyncio.sleep(0.005)
        return await hello(request)

    site = AdminSite({"/slow": slow, "/livez": hello})
    try:
        with _open(site.watch, ADMIN_CONNECTIONS) as waiting:
            for client in waiting:
                client.sendall(GET % b"/slow")
            until(lambda: len(begun) == ADMIN_CONNECTIONS, "the requests to begin")
            assert site.watch.say(GET % b"/slow") in (b"", b"(reset)")
            assert site.watch.say(GET % b"/livez").endswith(b"hello\n")
            go_on.set()
            assert all(client.recv(1000).endswith(b"hello\n") for client in waiting)
    finally:
        go_on.set()
        site.close()


def test_probes_that_stay_connected_keep_no_other_out(watch: Watch) -> None:
    with _open(watch, 2 * ADMIN_PROBES) as staying:
        for client in staying:
            client.sendall(GET % b"/livez")
            assert client.recv(1000).endswith(b"hello\n")
        assert watch.say(GET % b"/livez").endswith(b"hello\n")
