"""A delivery that comes in several transfers: what they say of it, and whether they say the same.

A later transfer may leave out what the first one states. So the transaction in the first transfer is the delivery's.
The specification wants it on each transfer (part 4, 4.4.2), but clients state it once. A later transfer that says
something else is an error of its sender.

Pure values. Source: AMQP 1.0 part 2, 2.7.5; part 4, 4.4.2 and 4.5.8.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from gateway.frames.frames import Fault, Frame
from transformers.codec import Described

MORE: Final = 5
_TAG: Final = 2
_STATE: Final = 7
_RESUME: Final = 8
_ABORTED: Final = 9
_SAME: Final = {1: "delivery-id", 2: "delivery-tag", 3: "message-format"}  # fields that a later transfer may repeat
_UNSAID: Final = {3: 0}
_TRANSACTIONAL: Final = 0x34


def transaction_of(transfer: Frame) -> bytes | None:
    """The txn-id in its transactional-state; None where it has none. Empty: one that cannot be read."""
    state: Any = transfer.field(_STATE)
    if not isinstance(state, Described) or state.descriptor != _TRANSACTIONAL:
        return None
    stated = state.value[0] if isinstance(state.value, list) and state.value else None
    return stated if isinstance(stated, bytes) else b""


def is_last(transfer: Frame) -> bool:
    """Nothing of its delivery comes behind it."""
    return transfer.field(MORE) is not True or transfer.field(_ABORTED) is True


class MultiTransfer:
    """One delivery, from its first transfer on. `transaction`: in which it is posted, if it is. `resumed`: its sender
    had it before."""

    def __init__(self, first: Frame) -> None:
        self._first = first
        self.tag: bytes | None = first.field(_TAG)
        self.transaction = transaction_of(first)
        self.resumed = first.field(_RESUME) is True
        self.named = {self.transaction} - {None}  # every transaction that a transfer of it has named

    def contradiction(self, later: Frame) -> str | None:
        """What a later transfer says otherwise than the first, in words; None where it may follow."""
        for at, name in _SAME.items():
            first, stated = self._first.field(at), later.field(at)
            if stated is not None and stated != (_UNSAID.get(at) if first is None else first):
                return f"{name} {stated!r:.60}, but the first transfer says {first!r:.60}"
        self.resumed |= later.field(_RESUME) is True
        named = transaction_of(later)
        if named is not None:
            self.named.add(named)
        if later.field(_STATE) is not None and named != self.transaction:
            return "a delivery state of another transaction than the first transfer's"
        return None


class Part(NamedTuple):
    """One transfer of such a delivery. `fault` ends its link; the engine sees the frame all the same, for it counts
    frames."""

    frame: Frame
    delivery: MultiTransfer
    fault: Fault | None = None
