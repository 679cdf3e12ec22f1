"""Events that no gateway wrote: records of a plain producer of the log, with any key and any value.

A gateway's keys begin with `1;` (published) or `2;` (a copy); whatever else stands in a node's topic came natively, and
consumers are given what `Frame` makes of its value. The search is one over the joined keys of a chunk, and all that
nodes without such events pay. Records: docs/records.md "Event key". May import: the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

OURS = (b"1;", b"2;")
_BETWEEN = b"\0\n\0"
_PUBLISHED, _COPY = (_BETWEEN + begin for begin in OURS)

Frame = Callable[[bytes], bytes]
"""Makes of a native value what a consumer is given."""


def as_stored(value: bytes) -> bytes:
    return value


def framed(keys: Sequence[bytes | None], values: list[bytes], frame: Frame) -> list[bytes]:
    """`values` as consumers are given them: the same list when a gateway wrote them all."""
    if None not in keys:
        joined = _BETWEEN + _BETWEEN.join(keys)  # type: ignore[arg-type]  # no None among them
        if joined.count(_PUBLISHED) == len(keys) or joined.count(_PUBLISHED) + joined.count(_COPY) == len(keys):
            return values
    return [value if is_ours(key) else frame(value) for key, value in zip(keys, values, strict=True)]


def is_ours(key: bytes | None) -> bool:
    return key is not None and key.startswith(OURS)
