"""The server of the admin pages by itself, with the pages that a test gives it."""

from __future__ import annotations

import asyncio
import threading
from http import HTTPStatus

from gateway.admin.http import PLAIN, HttpServer, Page, Request, Response, listener, url_of
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch

GET = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(_: Request) -> Response:
    """A page that is there at once."""
    return Response(HTTPStatus.OK, PLAIN, b"hello\n")


class AdminSite:
    """Pages on a loop of their own."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self._listening = listener("127.0.0.1", 0)
        self.watch = Watch(url_of(self._listening))
        self._pages, self._ready = pages, threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(HANG_S)

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._server = HttpServer(self._pages)
        await self._server.open(self._listening)
        self._ready.set()
        await self._ended.wait()
        await self._server.close()

    def is_idle(self) -> bool:
        """It has let go of every connection."""
        return not self._server._under_way

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(HANG_S)
        self._listening.close()
        assert not self._thread.is_alive()
