"""Server-sent events: a page that is open gets its content anew when a gateway was read, once a round at most.

    event: page   data: {"html": ..., "at_us": ..., "silent": [...]}

A viewer that is slow gets the latest content and none of those between. Source: HTML, 9.2 server-sent events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

import orjson

from console.limits import POLL_S, STREAM_BEAT_S
from console.poll.poller import Watch

Make = Callable[[], tuple[Mapping[str, Any], str]]
"""The document of the page, and its content as HTML."""


class Asks(Protocol):
    """Of a request."""

    async def is_disconnected(self) -> bool: ...


async def events(
    watch: Watch, links: bool, make: Make, is_allowed: Callable[[], bool], request: Asks
) -> AsyncIterator[str]:
    """Until the viewer goes, or may not look any more. `links`: the page shows them. `retry` lets a browser come back
    after 3 s."""
    with watch.viewer(links):
        yield "retry: 3000\n\n"
        while is_allowed() and not await request.is_disconnected():
            version = watch.version
            document, html = make()
            data = {"html": html, "at_us": document["at_us"], "silent": document["silent"]}
            yield f"event: page\ndata: {orjson.dumps(data).decode()}\n\n"
            await asyncio.sleep(POLL_S / 2)  # of several gateways, many rounds may end within a second
            while watch.version == version and is_allowed():
                changed = watch.changed
                try:
                    async with asyncio.timeout(STREAM_BEAT_S):
                        await changed.wait()
                except TimeoutError:
                    yield ": beat\n\n"
        yield "event: over\ndata: {}\n\n"
