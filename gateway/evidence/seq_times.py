"""When a delivery got its seq, to about a second, without noting anything for a delivery: seqs rise, so it is enough to
note once a second how far they have come.

The notes are bounded. When they are too many, every second one of the older half goes: what is old is known less
exactly. Monotonic seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

NOTES: Final = 4_096


class SeqTimes:
    """One run's."""

    def __init__(self) -> None:
        self._next: list[int] = []  # the seq to come, at each note
        self._times_s: list[float] = []

    def note(self, next_seq: int, now_s: float) -> None:
        """Once a second: all seqs below have been given."""
        if self._next and self._next[-1] == next_seq:
            return
        if len(self._next) >= NOTES:
            for column in (self._next, self._times_s):
                del column[: NOTES // 2 : 2]
        self._next.append(next_seq)
        self._times_s.append(now_s)

    def age_s(self, seq: int, now_s: float) -> float:
        """How long ago that seq was given, at least; 0 where no note says it."""
        at = bisect_right(self._next, seq)
        return now_s - self._times_s[at] if at < len(self._times_s) else 0.0
