"""The events of one store in memory: a window of chunks that all its subscriptions share.

One leading reader fills the window at its end, only when somebody has taken what is there; the oldest chunks go when it
exceeds its bytes. Whoever is below the window gets a reader of its own until it has caught up, out of a small number
that is handed round. Events are columns; a slice costs no object per event.

What a read finds missing is asked for once a turn (a turn is a `Realm.poll`). A `Failure` is a value: the caller
decides. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise

from native_backend.clock import Clock
from native_backend.expiry import expiries, may_expire
from native_backend.foreign import Frame, are_ours, are_published, as_stored, framed
from native_backend.limits import RealmLimits
from native_backend.log import Failure, Log, Records
from native_backend.marks import Marks, are_marked, count_from_storage
from native_backend.nodes import Node

_FIRST_READ = 100  # events, before their size is known
Stir = Callable[[], None]


class Chunk:
    """All events of [start, end), as columns. `gaps`: for an event with non-events before it, where they begin.
    `expiries_ms`: None when none expires; `marks`: when none has any."""

    __slots__ = ("eids", "end", "expiries_ms", "gaps", "marks", "size", "start", "values")

    def __init__(
        self, start: int, end: int, eids: list[int], values: list[bytes], expiries_ms: list[int] | None = None
    ) -> None:
        self.expiries_ms = expiries_ms
        self.marks: Marks | None = None
        self.start = start
        self.end = end
        self.eids = eids
        self.values = values
        self.size = sum(map(len, values))
        self.gaps: dict[int, int] = {}
        if eids and eids[0] != start:
            self.gaps[eids[0]] = start
        if eids and eids[-1] - eids[0] != len(eids) - 1:
            self.gaps.update((eid, before + 1) for before, eid in pairwise(eids) if eid != before + 1)

    def index(self, eid: int) -> int:
        """Of the first event at or above `eid`."""
        return bisect_left(self.eids, eid)


def chunk_of(start: int, records: Records, ttl_ms: int, frame: Frame) -> Chunk:
    """What a range read found, without tombstones (they are no events). `ttl_ms`: the node's."""
    eids, values, keys, times = [], [], [], []
    for at, value in enumerate(records.values):
        if value is not None:
            eids.append(records.offsets[at])
            values.append(value)
            keys.append(records.keys[at])
            times.append(records.timestamps_ms[at])
    if not are_published(keys):
        values = framed(keys, values, frame)
    chunk = Chunk(start, max(records.next, start), eids, values, expiries(times, keys, ttl_ms))
    chunk.marks = Marks(keys, times) if are_marked(keys) else None
    return chunk


class Cursor:
    """One subscription's place in a store. `lag`: its own reader while it is below the window."""

    __slots__ = ("lag", "position")

    def __init__(self, position: int) -> None:
        self.position = position
        self.lag: _Stretch | None = None


class _Stretch:
    """A reader and what it read last."""

    __slots__ = ("chunk", "end", "headed", "opened_s", "reader", "stamped", "turn")

    def __init__(self, feeds: Feeds, feed: Feed, position: int, now_s: float) -> None:
        self.stamped, self.headed = feed.stamped, feed.headed
        node = feed.node
        self.reader = feeds.log.open_reader(node.topic, node.partition, position, self.stamped, self.headed)
        self.end = position  # one past the last event read: gaps are told from here
        self.chunk: Chunk | None = None
        self.turn = -1  # the turn in which it had nothing
        self.opened_s = now_s


class Feed:
    """The window of one store."""

    def __init__(self, feeds: Feeds, node: Node) -> None:
        self.node = node
        self.count = _FIRST_READ  # events of the next read
        self._feeds = feeds
        self._cursors: list[Cursor] = []
        self._parked: dict[Cursor, Stir] = {}  # at the end, to be told when there is more
        self._failure: Failure | None = None  # of a look, for whoever reads next
        self._chunks: list[Chunk] = []
        self._ends: list[int] = []
        self._bytes = 0
        self._lead: _Stretch | None = None
        self._retry_s = 0.0
        self.stamped = node.properties.ttl_ms > 0  # events may expire: readers have to say when each was stored
        self.headed = False  # not every key says all: readers have to give headers, too

    def change(self, node: Node) -> None:
        """Other properties; what was read under another time to live is read again."""
        before, self.node = self.node, node
        if before.properties.ttl_ms != node.properties.ttl_ms:
            self.stamped = True
            self._drop()
            for cursor in self._cursors:
                self._feeds.release(cursor)

    def join(self, position: int) -> Cursor:
        cursor = Cursor(position)
        self._cursors.append(cursor)
        return cursor

    def leave(self, cursor: Cursor) -> None:
        """The window goes with its last cursor."""
        self._feeds.release(cursor)
        self._cursors.remove(cursor)
        self._parked.pop(cursor, None)
        if not self._cursors:
            self._drop()
            self._feeds.forget(self)

    def held(self, eid: int) -> Chunk | None:
        """The chunk of the window whose range has this EID."""
        if not self._chunks or not self._chunks[0].start <= eid < self._ends[-1]:
            return None
        return self._chunks[bisect_right(self._ends, eid)]

    def is_dry(self, cursor: Cursor) -> bool:
        """The cursor is at the end, where somebody has looked in vain this turn."""
        lead = self._lead
        return lead is not None and lead.turn == self._feeds.turn and cursor.position == lead.end

    def at_hand(self, cursor: Cursor, many: int) -> int:
        """How many events there are at or above the cursor without another read; `many` where only a read can tell."""
        held = self.held(cursor.position)
        if held is not None:
            return len(held.eids) - held.index(cursor.position)
        return 0 if self._lead is not None and cursor.position == self._lead.end else many

    def park(self, cursor: Cursor, stir: Stir) -> None:
        """It has nothing at hand: call once, when there may be something."""
        self._parked[cursor] = stir
        self._feeds.watched[self] = None

    def look(self) -> bool:
        """Read for those that parked; False when nobody waits any more."""
        if self._parked and self._lead is not None:
            found = self._read_lead(self._lead)
            if found is None:
                return True
            if isinstance(found, Failure):
                self._failure = found
        self._stir()
        return False

    def _stir(self) -> None:
        parked, self._parked = self._parked, {}
        for stir in parked.values():
            stir()

    def next(self, cursor: Cursor) -> Chunk | Failure | None:
        """The chunk with the first event at or above the cursor; None when there is none at the moment."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            return failure
        position = cursor.position
        lag = cursor.lag
        if lag is not None and lag.chunk is not None and lag.chunk.start <= position < lag.chunk.end:
            return lag.chunk
        held = self.held(position)
        if held is not None:
            self._feeds.release(cursor)
            return held
        lead = self._lead
        if lead is None or position > lead.end or (position < lead.end and self._alone(cursor)):
            lead = self._restart(position)
        if lead is None:
            return None
        if position == lead.end:
            self._feeds.release(cursor)
            return self._read_lead(lead)
        return self._read_lag(cursor)

    def _alone(self, cursor: Cursor) -> bool:
        """Nobody else is in the window or at its end."""
        start = self._chunks[0].start if self._chunks else self._lead.end if self._lead else 0
        return not any(other.position >= start for other in self._cursors if other is not cursor)

    def _restart(self, position: int) -> _Stretch | None:
        """Lead from somewhere else."""
        now_s = self._feeds.clock.monotonic_s()
        if now_s < self._retry_s:
            return None
        self._drop()
        self._lead = _Stretch(self._feeds, self, position, now_s)
        return self._lead

    def _read_lead(self, lead: _Stretch) -> Chunk | Failure | None:
        chunk = self._read(lead)
        if isinstance(chunk, Failure):
            self._drop()
        elif chunk is not None:
            self._chunks.append(chunk)
            self._ends.append(chunk.end)
            self._bytes += chunk.size
            self._feeds.held_bytes += chunk.size
            if self._parked:  # whoever reads on, reads for all that wait
                self._stir()
            while self._bytes > self._feeds.limits.window_bytes and len(self._chunks) > 1:
                self.shed()
            self._feeds.read(self)
        return chunk

    @property
    def window_chunks(self) -> int:
        return len(self._chunks)

    def shed(self) -> None:
        """The window's oldest chunk goes; whoever needs it reads it again."""
        size = self._chunks.pop(0).size
        del self._ends[0]
        self._bytes -= size
        self._feeds.held_bytes -= size

    def _read_lag(self, cursor: Cursor) -> Chunk | Failure | None:
        lag = cursor.lag
        if lag is None or lag.end != cursor.position:  # none yet, or the cursor was moved
            if self._feeds.clock.monotonic_s() < self._retry_s:
                return None
            lag = self._feeds.lend(self, cursor)
        if lag is None:
            return None
        self._feeds.hold(lag, None)
        chunk = self._read(lag)
        if isinstance(chunk, Failure):
            self._feeds.release(cursor)
        else:
            self._feeds.hold(lag, chunk)
        return chunk

    def _read(self, stretch: _Stretch) -> Chunk | Failure | None:
        if stretch.turn == self._feeds.turn:
            return None
        found = stretch.reader.read(self.count)
        if found is None:
            stretch.turn = self._feeds.turn
            return None
        if isinstance(found, Failure):
            self._retry_s = self._feeds.clock.monotonic_s() + self._feeds.limits.retry_interval_s
            return found
        eids, values, keys = found
        published = are_published(keys)
        if not (published or stretch.headed or are_ours(keys)):
            self.headed = True
            self._read_again(stretch)
            return None
        expire, marked = None, are_marked(keys)
        if stretch.stamped:
            expire = expiries(stretch.reader.times_ms, keys, self.node.properties.ttl_ms)
        elif may_expire(keys) or (marked and count_from_storage(keys)):
            self.stamped = True
            self._read_again(stretch)
            return None
        if not published:
            values = framed(keys, values, self._feeds.frame)
        chunk = Chunk(stretch.end, eids[-1] + 1, eids, values, expire)
        chunk.marks = Marks(keys, stretch.reader.times_ms) if marked else None
        stretch.end = chunk.end
        limits = self._feeds.limits
        self.count = max(1, min(limits.read_count, limits.chunk_bytes * len(eids) // max(1, chunk.size)))
        return chunk

    def _read_again(self, stretch: _Stretch) -> None:
        """The first events whose times or headers matter: read them again with those, and all that follow."""
        stretch.stamped, stretch.headed = self.stamped, self.headed
        stretch.reader.close()
        log, node = self._feeds.log, self.node
        stretch.reader = log.open_reader(node.topic, node.partition, stretch.end, self.stamped, self.headed)
        stretch.turn = self._feeds.turn

    def _drop(self) -> None:
        while self._chunks:
            self.shed()
        if self._lead is not None:
            self._lead.reader.close()
            self._lead = None


class Feeds:
    """All stores that are being read, and the readers lent to those that lag."""

    def __init__(self, log: Log, clock: Clock, limits: RealmLimits, frame: Frame = as_stored) -> None:
        self.log = log
        self.frame = frame
        self.clock = clock
        self.limits = limits
        self.turn = 0
        self._feeds: dict[int, Feed] = {}
        self.watched: dict[Feed, None] = {}  # at whose end somebody has parked
        self._lagging: list[Cursor] = []  # oldest loan first
        self._again: dict[object, Chunk] = {}  # by durable, what was read again for it; the oldest first
        self.held_bytes = 0

    def feed(self, node: Node) -> Feed:
        feed = self._feeds.get(node.store)
        if feed is None:
            feed = self._feeds[node.store] = Feed(self, node)
        return feed

    def change(self, node: Node | None) -> None:
        """A node has other properties."""
        if node is not None and node.store in self._feeds:
            self._feeds[node.store].change(node)

    def look(self) -> None:
        """Once a turn: read the stores at whose end somebody has parked, each once for all of them."""
        watched, self.watched = self.watched, {}
        for feed in watched:
            if feed.look():
                self.watched[feed] = None

    def forget(self, feed: Feed) -> None:
        self._feeds.pop(feed.node.store, None)

    def lend(self, feed: Feed, cursor: Cursor) -> _Stretch | None:
        """A reader at the cursor; None when all are out and none has been so for a whole turn yet."""
        self.release(cursor)
        now_s = self.clock.monotonic_s()
        if len(self._lagging) >= self.limits.readers:
            oldest = self._lagging[0]
            if oldest.lag is not None and now_s - oldest.lag.opened_s < self.limits.reader_turn_s:
                return None
            self.release(oldest)
        cursor.lag = _Stretch(self, feed, cursor.position, now_s)
        self._lagging.append(cursor)
        return cursor.lag

    def release(self, cursor: Cursor) -> None:
        if cursor.lag is not None:
            self.hold(cursor.lag, None)
            cursor.lag.reader.close()
            cursor.lag = None
            self._lagging.remove(cursor)

    # -- what all of it takes in memory

    def hold(self, lag: _Stretch, chunk: Chunk | None) -> None:
        """A lagging reader's chunk takes the place of the one before."""
        if lag.chunk is not None:
            self.held_bytes -= lag.chunk.size
        lag.chunk = chunk
        if chunk is not None:
            self.held_bytes += chunk.size
            self._fit()

    def read(self, feed: Feed) -> None:
        """A window has grown; those that grew least recently shrink first."""
        if self._feeds.get(feed.node.store) is feed:
            self._feeds[feed.node.store] = self._feeds.pop(feed.node.store)
        self._fit()

    def again(self, durable: object) -> Chunk | None:
        """What was read again for it, unless others needed the room."""
        return self._again.get(durable)

    def keep(self, durable: object, chunk: Chunk | None) -> None:
        known = self._again.pop(durable, None)
        self.held_bytes -= known.size if known is not None else 0
        if chunk is not None:
            self._again[durable] = chunk
            self.held_bytes += chunk.size
            self._fit()

    def _fit(self) -> None:
        """Keep within `feed_bytes`: what was read again long ago goes first, then windows; what was read last stays."""
        while self.held_bytes > self.limits.feed_bytes and len(self._again) > 1:
            self.keep(next(iter(self._again)), None)
        if self.held_bytes <= self.limits.feed_bytes:
            return
        feeds = list(self._feeds.values())
        for feed in feeds:
            keep = feed is feeds[-1]  # one chunk of it: somebody is about to take from that
            while self.held_bytes > self.limits.feed_bytes and feed.window_chunks > keep:
                feed.shed()
