"""What a subscription without a state has seen and is to be given later: events with a delivery time.

Ranges of EIDs, each with its time; when it has come they are read again. It ends with its subscription.
Times in milliseconds since 1970. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from native_backend.delays import Delays
from native_backend.delivery import Gathering
from native_backend.expiry import stretch
from native_backend.feed import Chunk, Feed
from native_backend.intervals import Intervals
from native_backend.lobby import Lobby, Waiting, Wake
from native_backend.log import Failure


class PutOff:
    """Of one subscription."""

    def __init__(self, feed: Feed, lobby: Lobby, ranges_max: int) -> None:
        self._feed, self._lobby, self._ranges_max = feed, lobby, ranges_max
        self._cursor = feed.join(0)
        self._delays = Delays()
        self._due = Intervals()
        self._waiting = Waiting(lobby, lambda: 1)

    def leave(self) -> None:
        self._waiting.drop(self)
        self._feed.leave(self._cursor)

    def add(self, chunk: Chunk, begin: int, end: int) -> bool:
        """Events [begin, end) are not due. False: there is no room for more of such."""
        assert chunk.marks is not None and chunk.marks.due_ms is not None
        if len(self._delays) >= self._ranges_max:
            return False
        for at in range(begin, end):
            self._delays.add(chunk.eids[at], chunk.eids[at], chunk.marks.due_ms[at])
        return True

    def is_due(self, now_ms: int) -> bool:
        for first, last in self._delays.due(now_ms):
            self._due.add(first, last)
        return bool(self._due)

    def take(self, gathering: Gathering, now_ms: int) -> Failure | None:
        """What is due now, as far as there is room and it can be read."""
        while gathering.room > 0 and self.is_due(now_ms):
            found = self._due.at_or_above(0)
            assert found is not None
            first, last = found
            self._cursor.position = first
            chunk = self._feed.next(self._cursor)
            if chunk is None or isinstance(chunk, Failure):
                return chunk
            last = min(last, chunk.end - 1)
            begin, end, lives = chunk.index(first), chunk.index(last + 1), True
            if begin < end:
                if chunk.expiries_ms is not None:
                    end, lives = stretch(chunk.expiries_ms, begin, end, now_ms)
                eids = gathering.add(chunk, begin, end) if lives else chunk.eids[begin:end]
                if not eids:
                    return None
                last = eids[-1]
            self._due.discard(0, last)
        return None

    def park(self, wake: Wake) -> None:
        """Nothing is due: call once, when something is."""
        if self._delays:
            self._waiting.add(self, wake)
            self._lobby.stir_at(self._delays.soonest_ms, self._waiting)

    def lose_below(self, bound: int) -> None:
        """What lies below is gone."""
        self._due.remove_below(bound)
