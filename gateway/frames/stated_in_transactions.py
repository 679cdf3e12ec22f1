"""How many deliveries the peer's dispositions name inside transactions, before an engine sees them: proton says nothing
of those that it does not know any more, and a transaction in which one is named can only be rolled back (W-5).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gateway.frames.frames import DISPOSITION, Frame

_ROLE, _FIRST, _LAST, _STATE = 0, 1, 2, 4  # positions in a disposition
_TRANSACTIONAL: Final = 0x34
_IDS: Final = 1 << 32  # they are counted round


class Stated(NamedTuple):
    """Of a piece of the stream: how many deliveries are named, by channel and txn-id."""

    named: dict[tuple[int, bytes], int]


class Spoken:
    """Of what deliveries the dispositions of a growing plain run speak."""

    __slots__ = ("count", "highest", "named")

    def __init__(self) -> None:
        self.highest: dict[int, int] = {}  # delivery-id by channel, of what was pushed already as well
        self.named: dict[tuple[int, bytes], int] = {}
        self.count = 0  # deliveries of the piece

    def name(self, channel: int, transaction: bytes, count: int) -> None:
        self.named[channel, transaction] = self.named.get((channel, transaction), 0) + count

    def take(self) -> Stated | None:
        """What the run is pushed with; the next one begins."""
        self.count = 0
        if not self.named:
            return None
        named, self.named = self.named, {}
        return Stated(named)


def stated_by(frame: Frame | None) -> Stated | None:
    """Of a valid frame that is pushed alone; None where it states no outcome inside a transaction."""
    if frame is None or frame.code != DISPOSITION or not frame.field(_ROLE):
        return None
    state = frame.field(_STATE)
    if state is None or state.descriptor != _TRANSACTIONAL:
        return None
    first, last = frame.field(_FIRST), frame.field(_LAST)
    count = 1 if last is None else (last - first) % _IDS + 1
    return Stated({(frame.channel, state.value[0]): count})
