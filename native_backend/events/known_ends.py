"""Where the stores end, as far as this process knows: one past the highest EID that the log answered it, or that the
state of a durable has passed.

An append gets an offset at or above each one that was known when it was handed over. One that gets a lower offset says
that its store has become shorter in between (an unclean election, a restored topic). That is never a matter of order:
what was known was in the log before. Costs one look-up for each batch.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.log.port import TopicPartition

Short = Callable[[TopicPartition, int, int], None]


class KnownEnds:
    """By place. `on_short(place, end, known)`: the store ends at `end` and was known to end at `known`."""

    def __init__(self) -> None:
        self.on_short: Short = _unprocessed
        self._ends: dict[TopicPartition, int] = {}
        self._cuts: dict[TopicPartition, int] = {}

    def of(self, place: TopicPartition) -> int:
        """0: nothing is known."""
        return self._ends.get(place, 0)

    def reached(self, place: TopicPartition, end: int) -> None:
        """It ends there or further on."""
        if end > self._ends.get(place, 0):
            self._ends[place] = end

    def forget(self, place: TopicPartition) -> None:
        """Its node is gone. Its name may come again, for another store."""
        self._ends.pop(place, None)
        self._cuts.pop(place, None)

    def cuts(self, place: TopicPartition) -> int:
        """Changes when the place becomes shorter, and when that was dealt with: an end that was looked at before says
        nothing about what came after."""
        return self._cuts.get(place, 0)

    def cut(self, place: TopicPartition) -> None:
        """It has become shorter, or that was dealt with."""
        self._cuts[place] = self.cuts(place) + 1

    def stored(self, place: TopicPartition, first: int, last: int, known: int) -> None:
        """An append that got the offsets `first` to `last`. `known`: what `of` said when it was handed over."""
        end = self._ends.get(place, 0)
        if last >= end:
            self._ends[place] = last + 1
        if first < known and first < end:
            self._ends[place] = last + 1
            self.cut(place)
            self.on_short(place, first, end)

    def looked(self, place: TopicPartition, end: int, known: int, cuts: int) -> None:
        """It was looked at, and ends at `end`, which is less than `known`. `cuts`: what that said before."""
        if cuts == self.cuts(place):
            self._ends[place] = end
            self.cut(place)
            self.on_short(place, end, known)


def _unprocessed(_place: TopicPartition, _end: int, _known: int) -> None:
    """Before the realm is made."""
