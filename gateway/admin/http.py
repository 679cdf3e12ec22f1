"""As much of HTTP/1.1 as pages and commands take: GET and HEAD of a page, POST of a command, its parameters behind the
path and no body read, one request a connection.

    server = HttpServer({"/health": page}, {"/api/...": command}); await server.open(listener(host, port))

Everything that a peer can grow has a bound (`gateway/config/limits.py`): a longer head is 431; one request too many is
closed, and so is who does not ask, or read the answer, in time. A connection without a whole head gives way to newer
ones, and `PROBES` are no part of the bound of the other pages: so neither keeps a probe out. Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl

from gateway.config.limits import (
    ADMIN_CONNECTIONS,
    ADMIN_HEAD_TIMEOUT_S,
    ADMIN_HEADS,
    ADMIN_PROBES,
    ADMIN_REQUEST_BYTES,
    ADMIN_TIMEOUT_S,
)
from gateway.config.listening import listening_socket

log = logging.getLogger("realmgate.admin")

PLAIN, JSON = "text/plain; charset=utf-8", "application/json"
PROBES = frozenset({"/health", "/livez", "/readyz"})
"""What starts processes anew, or sends clients to them, asks for these."""
_BACKLOG = 16


@dataclass(frozen=True, slots=True)
class Response:
    """What a page answers."""

    status: HTTPStatus
    content_type: str
    body: bytes
    allow: str = ""  # the methods that its path has, where another one was used


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a page or a command. Of a parameter or a header that stands there twice, the last one counts;
    the names of headers are in lower case. `address` is the asking socket's, without its port."""

    query: Mapping[str, str]
    headers: Mapping[str, str]
    address: str


Page = Callable[[Request], Awaitable[Response]]


def listener(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 picks a free one. Raises OSError."""
    opened = listening_socket(host, port, _BACKLOG, f"http://{host}:{port}")
    opened.setblocking(False)
    return opened


def url_of(opened: socket.socket) -> str:
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Places:
    """Connections that may be at the same point at once. Beyond `count` the one that came first is closed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: dict[asyncio.StreamWriter, None] = {}

    @contextmanager
    def of(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        if len(self._taken) >= self._count:
            first = next(iter(self._taken))
            del self._taken[first]
            first.transport.abort()  # its conversation sees the end
        self._taken[writer] = None
        try:
            yield
        finally:
            self._taken.pop(writer, None)

    @contextmanager
    def of_those_left(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """None is closed for it. Raises ConnectionError where none is left."""
        if len(self._taken) >= self._count:
            raise ConnectionError("one request too many")
        with self.of(writer):
            yield


class HttpServer:
    """`pages` (GET, HEAD) and `commands` (POST) by path, exactly; what else is asked for is 404 with a list of them."""

    def __init__(self, pages: Mapping[str, Page], commands: Mapping[str, Page] | None = None) -> None:
        self._pages = pages
        self._commands = commands or {}
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._heads, self._probes, self._others = map(_Places, (ADMIN_HEADS, ADMIN_PROBES, ADMIN_CONNECTIONS))

    async def open(self, listening: socket.socket) -> None:
        """`listening` stays the caller's: here is a copy of it."""
        self._server = await asyncio.start_server(
            self._connected, sock=listening.dup(), limit=ADMIN_REQUEST_BYTES, backlog=_BACKLOG
        )

    async def close(self) -> None:
        """What is under way is not finished."""
        if self._server is not None:
            self._server.close()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        try:
            async with asyncio.timeout(ADMIN_HEAD_TIMEOUT_S):
                with self._heads.of(writer):
                    head = await _head(reader)
            async with asyncio.timeout(ADMIN_TIMEOUT_S):
                with self._place(head, writer):
                    await self._converse(head, reader, writer)
        except (TimeoutError, ConnectionError):
            writer.transport.abort()
        except asyncio.IncompleteReadError:
            pass  # it went, said half a request, or gave way
        finally:
            self._under_way.discard(task)
            writer.close()

    def _place(self, head: bytes | None, writer: asyncio.StreamWriter) -> AbstractContextManager[None]:
        words = (head or b"").split(b" ", 2)
        is_probe = len(words) > 1 and words[1].partition(b"?")[0].decode("latin-1") in PROBES
        return self._probes.of(writer) if is_probe else self._others.of_those_left(writer)

    async def _converse(self, head: bytes | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head is None:
            writer.write(_encode(_reply(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), with_body=True))
        else:
            method, response = await self._answer(head, str((writer.get_extra_info("peername") or ("",))[0]))
            writer.write(_encode(response, with_body=method != b"HEAD"))
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        while await reader.read(ADMIN_REQUEST_BYTES):
            """What else it sends is read and forgotten: closing before would reset what it has not read yet."""

    async def _answer(self, head: bytes, address: str) -> tuple[bytes, Response]:
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return b"", _reply(HTTPStatus.BAD_REQUEST)
        method, (path, _, query) = words[0].encode("latin-1"), words[1].partition("?")
        page = (self._commands if method == b"POST" else self._pages).get(path)
        if method not in (b"GET", b"HEAD", b"POST") or (
            page is None and (path in self._pages or path in self._commands)
        ):
            return method, _reply(
                HTTPStatus.METHOD_NOT_ALLOWED, allow="POST" if path in self._commands else "GET, HEAD"
            )
        if page is None:
            return method, _reply(HTTPStatus.NOT_FOUND, "there are: " + " ".join([*self._pages, *self._commands]))
        try:
            return method, await page(Request(dict(parse_qsl(query)), _headers(lines), address))
        except Exception:  # we are wrong: that page is not shown, the gateway goes on
            log.exception("a page could not be made")
            return method, _reply(HTTPStatus.INTERNAL_SERVER_ERROR)


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    """None where it is too long. Raises IncompleteReadError."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return None


def _headers(lines: list[str]) -> dict[str, str]:
    pairs = [line.partition(":") for line in lines]
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def _reply(status: HTTPStatus, detail: str = "", allow: str = "") -> Response:
    words = f"{status.value} {status.phrase}{': ' + detail if detail else ''}\n"
    return Response(status, PLAIN, words.encode(), allow)


def _encode(response: Response, *, with_body: bool) -> bytes:
    allow = f"Allow: {response.allow}\r\n" if response.allow else ""
    head = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{allow}Connection: close\r\n\r\n"
    )
    return head.encode() + (response.body if with_body else b"")
