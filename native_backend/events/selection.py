"""What a link takes of a node's events, and what it costs to find out.

A `Selection` says of a column of stored values which ones match. Asking costs microseconds an event, and one match
may lie behind a million others: so all links of a realm together ask about no more than `limits.selection_scan` events
in a turn (a `Realm.poll`), of no more than `limits.selection_scan_bytes` octets but for the last one, and what a
`SelectionCursor` has found out is kept until the link has taken it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from native_backend.events.chunk import Chunk
from native_backend.events.window import StoreWindows

PIECE = 256  # events asked about at a time


@dataclass(frozen=True, slots=True)
class Selection:
    """`text` as it was asked for: two selections of one text select the same. `not_from`: nothing either that bears
    the mark of this origin. `octets_read`: so many octets of an event it may look at."""

    text: str
    select: Callable[[list[bytes]], list[bool]]
    not_from: int | None = None
    octets_read: Callable[[bytes], int] = len


class ScanBudget:
    """Which events may still be asked about in this turn. How long an answer takes goes by the octets that are read: an
    event may have thousands of properties."""

    def __init__(self, windows: StoreWindows, events: int, octets: int) -> None:
        """`events`, `octets`: in a turn."""
        self._windows = windows
        self._per_turn = events, octets
        self._turn = -1
        self._events = self._octets = 0

    def grant(self, values: list[bytes], octets_read: Callable[[bytes], int]) -> int:
        """So many of the first of these."""
        if self._turn != self._windows.turn:
            self._turn, (self._events, self._octets) = self._windows.turn, self._per_turn
        sizes, granted = map(octets_read, values[: self._events]), 0
        while self._octets > 0 and (size := next(sizes, None)) is not None:
            self._octets -= size
            granted += 1
        self._events -= granted
        return granted


class SelectionCursor:
    """A selection at work for one link, and what it said of the events it was asked about last."""

    __slots__ = ("_budget", "_eids", "_matches", "_selection")

    def __init__(self, selection: Selection, budget: ScanBudget) -> None:
        self._selection = selection
        self._budget = budget
        self._eids: list[int] = []
        self._matches: list[bool] = []

    def stretch(self, chunk: Chunk, begin: int, end: int) -> tuple[int, bool] | None:
        """The first part of [begin, end) that all matches or all does not: where it ends, and whether it matches. None:
        nothing more may be asked in this turn."""
        at = self._known(chunk.eids[begin])
        if at < 0:
            values = chunk.values[begin : min(end, begin + PIECE)]
            granted = self._budget.grant(values, self._selection.octets_read)
            if not granted:
                return None
            self._eids = chunk.eids[begin : begin + granted]
            self._matches = self._select(chunk, begin, begin + granted)
            at = 0
        matches, stop = self._matches, at + 1
        bound = min(len(matches), at + end - begin)
        while stop < bound and matches[stop] is matches[at]:
            stop += 1
        return begin + stop - at, matches[at]

    def _select(self, chunk: Chunk, begin: int, end: int) -> list[bool]:
        matches, origin = self._selection.select(chunk.values[begin:end]), self._selection.not_from
        if origin is None or chunk.marks is None or chunk.marks.origins is None:
            return matches
        return [fits and source != origin for fits, source in zip(matches, chunk.marks.origins[begin:end], strict=True)]

    def _known(self, eid: int) -> int:
        """Its place among those asked about last; -1: it is none of them. Of one store the events that follow an event
        are always the same."""
        at = bisect_left(self._eids, eid)
        return at if at < len(self._eids) and self._eids[at] == eid else -1
