"""Server-sent events: a page that is open gets what changed of it when a gateway was read, once a round at most.

    event: parts   data: {"parts": {"0": HTML, ...}, "count": N, "at_us": ..., "silent": [...]}

The parts in their order, joined, are the content of the page. The first event has all of them, a later one those that
differ from what that viewer has; it may have none. A viewer that is slow gets the latest content and none of those
between. Source: HTML, 9.2 server-sent events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

import orjson

from console.limits import POLL_S, STREAM_BEAT_S
from console.poll.poller import Watch
from console.web.render import PART

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
        has: list[str] = []
        while is_allowed() and not await request.is_disconnected():
            version = watch.version
            document, html = make()
            parts = html.split(PART)
            data = {"parts": changed_parts(has, parts), "count": len(parts)}
            data |= {"at_us": document["at_us"], "silent": document["silent"]}
            has = parts
            yield f"event: parts\ndata: {orjson.dumps(data).decode()}\n\n"
            await asyncio.sleep(POLL_S / 2)  # of several gateways, many rounds may end within a second
            while watch.version == version and is_allowed():
                changed = watch.changed
                try:
                    async with asyncio.timeout(STREAM_BEAT_S):
                        await changed.wait()
                except TimeoutError:
                    yield ": beat\n\n"
        yield "event: over\ndata: {}\n\n"


def changed_parts(has: Sequence[str], parts: Sequence[str]) -> dict[str, str]:
    """By their place: what a viewer lacks that has those of `has`."""
    return {str(at): part for at, part in enumerate(parts) if at >= len(has) or has[at] != part}
