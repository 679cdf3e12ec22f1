"""A native event with headers, and what makes such events: `complete`, and the classes of users.

A user's class is named by an entry point of the group GROUP (docs/how-to/write-a-transformer.md). It is made once, by a
call without arguments, and used by one thread. Whatever it raises makes the message a null event (row P-A2).
Source: semantics 3.4 (2, complete; 3, user configurable).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

GROUP = "realmgate.transformers"


class NativeEvent(NamedTuple):
    """A record of the log as its plain consumers see it. Header names may repeat; a value of None is null."""

    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    value: bytes


class EventTransformer(Protocol):
    """AMQP messages to native events, and back."""

    def event(self, message: bytes) -> NativeEvent | None:
        """The event for an AMQP message, as it came; None: there is none, the message is rejected (P-A2)."""
        ...

    def message(self, event: NativeEvent) -> bytes:
        """The AMQP message for an event that `event` made: the bare message must be the one that was sent, octet for
        octet. Headers may have more before and behind."""
        ...
