"""Events whose value is no AMQP message: records of a plain producer of the log, with any key and any value, and events
with headers (`headers.py`).

A gateway's keys begin with `1;` (published), `2;` (a copy) or, for events with headers, `3;`; whatever else stands in a
node's topic came natively. Consumers are given what `Frame` makes of such events. The search is one over the joined
keys of a chunk, and all that nodes without such events pay. Records: docs/records.md "Event key".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from native_backend.events.copy_key import is_copy
from native_backend.log.event_key import COPY, MESSAGE, original
from native_backend.log.record_headers import HeadedKey

_BETWEEN = b"\0\n\0"
_MESSAGE, _COPY = _BETWEEN + MESSAGE, _BETWEEN + COPY

Frame = Callable[[bytes | None, bytes], bytes]
"""Makes of an event's key and value what a consumer is given."""


def as_stored(_: bytes | None, value: bytes) -> bytes:
    return value


def are_published(keys: Sequence[bytes | None]) -> bool:
    """Are all of them events that a gateway wrote as messages? Their values are what consumers are given."""
    return None not in keys and _joined(keys).count(_MESSAGE) == len(keys)


def are_ours(keys: Sequence[bytes | None]) -> bool:
    """Did gateways write all of them? Then their keys say all."""
    if None in keys:
        return False
    joined = _joined(keys)
    return joined.count(_MESSAGE) + joined.count(_COPY) == len(keys)


def _joined(keys: Sequence[bytes | None]) -> bytes:
    return _BETWEEN + _BETWEEN.join(keys)  # type: ignore[arg-type]  # no None among them


def framed(keys: Sequence[bytes | None], values: list[bytes], frame: Frame) -> list[bytes]:
    """`values` as consumers are given them."""
    return [value if is_message(key) else frame(key, value) for key, value in zip(keys, values, strict=True)]


def is_message(key: bytes | None) -> bool:
    """Is the value an AMQP message as it stands? Of copies, all dead letters are, and what was one before."""
    if key is None or type(key) is HeadedKey:
        return False
    return key.startswith(MESSAGE) or is_copy(key) or original(key).startswith(MESSAGE)
