"""What a copy of an event says of where it comes from: in its key natively, and in whatever `Annotate` makes of it.

Times in milliseconds since 1970. The key's format: `native_backend.log.event_key`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from native_backend.log import event_key
from native_backend.log.record_headers import HeadedKey
from native_backend.state.outcome_detail import OutcomeDetail


@dataclass(frozen=True, slots=True)
class CopyOrigin:
    """Why an event is a dead letter. `cause`: the state that a consumer gave it, or `expired`; `detail`: what else that
    consumer said."""

    cause: str
    node: str
    durable: str
    eid: int
    attempts: int
    at_ms: int
    detail: OutcomeDetail | None = None


Annotate = Callable[[bytes, bytes, CopyOrigin], tuple[bytes, bytes]]
"""Makes of an event's key and value what its dead-letter node keeps."""


def as_it_is(key: bytes, value: bytes, _: CopyOrigin) -> tuple[bytes, bytes]:
    return key, value


def copy_key(store: int, eid: int, cause: str, key: bytes) -> bytes:
    """The key of a copy: where it comes from and why, then the key it had when it was published."""
    identity = event_key.copy_of(store, eid, cause, key)
    return key.renamed(identity) if type(key) is HeadedKey else identity


def is_copy(key: bytes) -> bool:
    """A copy that was made because the event was given up (not one that an operator moved)."""
    return event_key.copy_cause(key) not in (None, event_key.MOVED)
