"""One answer of a gateway's admin address: a GET, a connection of its own, bounds on time and size.

A gateway answers one request a connection, with Content-Length (gateway/admin/http.py). Errors: `NoAnswer`, in words
for an operator.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final
from urllib.parse import urlencode, urlsplit

from console.limits import ANSWER_BYTES, ASK_TIMEOUT_S, HEAD_BYTES

_CHUNK: Final = 65_536


class NoAnswer(Exception):
    """It could not be asked, or says nothing that can be used."""


async def fetch(url: str, path: str, query: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body. Raises NoAnswer, after `ASK_TIMEOUT_S` at the latest."""
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            return await _fetch(url, f"{path}?{urlencode(query)}" if query else path)
    except TimeoutError:
        raise NoAnswer(f"no answer to {path} within {ASK_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        words = os.strerror(error.errno) if error.errno else type(error).__name__
        raise NoAnswer(f"{path}: {words}") from None


async def _fetch(url: str, target: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, limit=HEAD_BYTES)
    try:
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            raise NoAnswer(f"{target[:80]}: the connection was closed; is the gateway asked by too many?") from None
        except asyncio.LimitOverrunError:
            raise NoAnswer(f"{target[:80]}: the head of the answer has no end") from None
        status, length = _head(head, target)
        return status, await _body(reader, length, target)
    finally:
        writer.transport.abort()


def _head(head: bytes, target: str) -> tuple[int, int | None]:
    """Status and length; None: until the connection ends."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isascii() and words[1].isdigit()):
        raise NoAnswer(f"{target[:80]}: what answers there does not speak HTTP")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = headers.get("content-length", "")
    if "transfer-encoding" in headers or (length and not (length.isascii() and length.isdigit() and len(length) < 16)):
        raise NoAnswer(f"{target[:80]}: this is no gateway's admin address")
    return int(words[1]), int(length) if length else None


async def _body(reader: asyncio.StreamReader, length: int | None, target: str) -> bytes:
    """Raises NoAnswer for more than `ANSWER_BYTES`."""
    if length is not None and length > ANSWER_BYTES:
        raise NoAnswer(f"{target[:80]}: an answer of {length:,} octets is larger than {ANSWER_BYTES:,}")
    body = bytearray()
    while length is None or len(body) < length:
        chunk = await reader.read(_CHUNK)
        if not chunk:
            break
        body += chunk
        if len(body) > ANSWER_BYTES:
            raise NoAnswer(f"{target[:80]}: the answer is larger than {ANSWER_BYTES:,} octets")
    if length is not None and len(body) < length:
        raise NoAnswer(f"{target[:80]}: the answer is cut short")
    return bytes(body)
