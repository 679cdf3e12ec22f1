"""The events of one store in memory: a window of chunks that all its subscriptions share.

One leading reader fills the window at its end, only when a subscription has taken what is there; the oldest chunks go
when it exceeds its bytes. A subscription below the window gets a reader of its own until it has caught up, out of a
small number that they share in turn. Events are columns; a slice costs no object per event.

What a read finds missing is asked for once a turn (a turn is a `Realm.poll`). A `Failure` is a value: the caller
decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from native_backend.clock import Clock
from native_backend.events.chunk import Chunk
from native_backend.events.delivery_marks import DeliveryMarks, are_marked, count_from_storage
from native_backend.events.event_kind import Frame, are_ours, are_published, as_stored, framed
from native_backend.events.expiry import expiries, may_expire
from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, Log
from native_backend.nodes.node import Node
from native_backend.state.mistakes import unforeseen

_FIRST_READ = 100  # events, before their size is known
_BEGIN_S = 10.0  # a lent reader that has brought nothing for so long goes to another that waits
Notify = Callable[[], None]


class Cursor:
    """One subscription's position in a store. `tail`: its own reader while it is below the window. `on_cut` gets the
    end of a store that has become shorter."""

    __slots__ = ("on_cut", "position", "tail")

    def __init__(self, position: int) -> None:
        self.position = position
        self.tail: TailReader | None = None
        self.on_cut: Callable[[int], None] | None = None


class TailReader:
    """A reader and what it read last."""

    __slots__ = ("chunk", "end", "has_read", "headed", "opened_s", "reader", "stamped", "turn")

    def __init__(self, windows: StoreWindows, window: StoreWindow, position: int, now_s: float) -> None:
        self.stamped, self.headed = window.stamped, window.headed
        node = window.node
        self.reader = windows.log.open_reader(node.topic, node.partition, position, self.stamped, self.headed)
        self.end = position  # one past the last event read: a gap begins here
        self.chunk: Chunk | None = None
        self.turn = -1  # the turn in which it had nothing
        self.opened_s = now_s
        self.has_read = False

    def is_over(self, now_s: float, turn_s: float) -> bool:
        """A loan lasts a turn, and until it has brought something: a reader that is taken away before it has begun
        leaves its subscription where it was, and the next one too."""
        return now_s - self.opened_s >= (turn_s if self.has_read else max(turn_s, _BEGIN_S))


class StoreWindow:
    """The window of one store."""

    def __init__(self, windows: StoreWindows, node: Node) -> None:
        self.node = node
        self.count = _FIRST_READ  # events of the next read
        self._windows = windows
        self._cursors: list[Cursor] = []
        self._parked: dict[Cursor, Notify] = {}  # at the end, to be woken when there is more
        self._failure: Failure | None = None  # of a look, for the next read
        self._chunks: list[Chunk] = []
        self._ends: list[int] = []
        self._bytes = 0
        self._lead: TailReader | None = None
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
                self._windows.release(cursor)

    def cut(self, end: int) -> None:
        """The store has become shorter: what was read of what it lost is not there any more."""
        self._drop()
        for cursor in self._cursors:
            self._windows.release(cursor)
            cursor.position = min(cursor.position, end)
            if cursor.on_cut is not None:
                cursor.on_cut(end)
        self._notify()

    def join(self, position: int) -> Cursor:
        cursor = Cursor(position)
        self._cursors.append(cursor)
        return cursor

    def leave(self, cursor: Cursor) -> None:
        """The window goes with its last cursor."""
        self._windows.release(cursor)
        self._cursors.remove(cursor)
        self._parked.pop(cursor, None)
        if not self._cursors:
            self._drop()
            self._windows.forget(self)

    def held(self, eid: int) -> Chunk | None:
        """The chunk of the window whose range has this EID."""
        if not self._chunks or not self._chunks[0].start <= eid < self._ends[-1]:
            return None
        return self._chunks[bisect_right(self._ends, eid)]

    def is_at_end(self, cursor: Cursor) -> bool:
        """The cursor is at the end, where a read found nothing this turn."""
        lead = self._lead
        return lead is not None and lead.turn == self._windows.turn and cursor.position == lead.end

    def available(self, cursor: Cursor, many: int) -> int:
        """How many events there are at or above the cursor without another read; `many` where only a read can tell."""
        held = self.held(cursor.position)
        if held is not None:
            return len(held.eids) - held.index(cursor.position)
        return 0 if self._lead is not None and cursor.position == self._lead.end else many

    def park(self, cursor: Cursor, notify: Notify) -> None:
        """It has nothing at hand: call once, when there may be something."""
        self._parked[cursor] = notify
        self._windows.watched[self] = None

    def look(self) -> bool:
        """Read for the cursors that parked; False when none waits any more."""
        if self._parked and self._lead is not None:
            chunk = self._read_lead(self._lead)
            if chunk is None:
                return True
            if isinstance(chunk, Failure):
                self._failure = chunk
        self._notify()
        return False

    def fail(self, failure: Failure) -> None:
        """A mistake of ours ended a look: the next read says so, and those that follow begin anew."""
        self._failure = failure
        self._retry_s = self._windows.clock.monotonic_s() + self._windows.limits.retry_interval_s
        self._drop()
        self._notify()

    def _notify(self) -> None:
        parked, self._parked = self._parked, {}
        for notify in parked.values():
            notify()

    def next(self, cursor: Cursor) -> Chunk | Failure | None:
        """The chunk with the first event at or above the cursor; None when there is none at the moment."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            return failure
        position = cursor.position
        tail = cursor.tail
        if tail is not None and tail.chunk is not None and tail.chunk.start <= position < tail.chunk.end:
            return tail.chunk
        held = self.held(position)
        if held is not None:
            self._windows.release(cursor)
            return held
        lead = self._lead
        if lead is None or position > lead.end or (position < lead.end and self._alone(cursor)):
            lead = self._restart(position)
        if lead is None:
            return None
        if position == lead.end:
            self._windows.release(cursor)
            return self._read_lead(lead)
        return self._read_lag(cursor)

    def _alone(self, cursor: Cursor) -> bool:
        """No other cursor is in the window or at its end."""
        start = self._chunks[0].start if self._chunks else self._lead.end if self._lead else 0
        return not any(other.position >= start for other in self._cursors if other is not cursor)

    def _restart(self, position: int) -> TailReader | None:
        """Lead from somewhere else."""
        now_s = self._windows.clock.monotonic_s()
        if now_s < self._retry_s:
            return None
        self._drop()
        self._lead = TailReader(self._windows, self, position, now_s)
        return self._lead

    def _read_lead(self, lead: TailReader) -> Chunk | Failure | None:
        chunk = self._read(lead)
        if isinstance(chunk, Failure):
            self._drop()
        elif chunk is not None:
            self._chunks.append(chunk)
            self._ends.append(chunk.end)
            self._bytes += chunk.size
            self._windows.held_bytes += chunk.size
            if self._parked:  # one read serves all that wait
                self._notify()
            while self._bytes > self._windows.limits.window_bytes and len(self._chunks) > 1:
                self.drop_oldest()
            self._windows.read(self)
        return chunk

    @property
    def window_chunks(self) -> int:
        return len(self._chunks)

    def drop_oldest(self) -> None:
        """The window drops its oldest chunk; a cursor that needs it reads it again."""
        size = self._chunks.pop(0).size
        del self._ends[0]
        self._bytes -= size
        self._windows.held_bytes -= size

    def _read_lag(self, cursor: Cursor) -> Chunk | Failure | None:
        tail = cursor.tail
        if tail is None or tail.end != cursor.position:  # none yet, or the cursor was moved
            if self._windows.clock.monotonic_s() < self._retry_s:
                return None
            tail = self._windows.lend_reader(self, cursor)
        if tail is None:
            return None
        self._windows.keep_lag(tail, None)
        chunk = self._read(tail)
        if isinstance(chunk, Failure):
            self._windows.release(cursor)
        else:
            self._windows.keep_lag(tail, chunk)
        return chunk

    def _read(self, stretch: TailReader) -> Chunk | Failure | None:
        if stretch.turn == self._windows.turn:
            return None
        columns = stretch.reader.read(self.count)
        if columns is None:
            stretch.turn = self._windows.turn
            return None
        if isinstance(columns, Failure):
            self._retry_s = self._windows.clock.monotonic_s() + self._windows.limits.retry_interval_s
            return columns
        eids, values, keys = columns
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
            values = framed(keys, values, self._windows.frame)
        chunk = Chunk(stretch.end, eids[-1] + 1, eids, values, expire)
        chunk.marks = DeliveryMarks(keys, stretch.reader.times_ms) if marked else None
        stretch.end, stretch.has_read = chunk.end, True
        limits = self._windows.limits
        self.count = max(1, min(limits.read_count, limits.chunk_bytes * len(eids) // max(1, chunk.size)))
        return chunk

    def _read_again(self, stretch: TailReader) -> None:
        """The first events whose times or headers matter: read them again with those, and all that follow."""
        stretch.stamped, stretch.headed = self.stamped, self.headed
        stretch.reader.close()
        log, node = self._windows.log, self.node
        stretch.reader = log.open_reader(node.topic, node.partition, stretch.end, self.stamped, self.headed)
        stretch.turn = self._windows.turn

    def _drop(self) -> None:
        while self._chunks:
            self.drop_oldest()
        if self._lead is not None:
            self._lead.reader.close()
            self._lead = None


class StoreWindows:
    """All stores that are being read, and the readers lent to those that lag."""

    def __init__(self, log: Log, clock: Clock, limits: RealmLimits, frame: Frame = as_stored) -> None:
        self.log = log
        self.frame = frame
        self.clock = clock
        self.limits = limits
        self.turn = 0
        self.on_mistake: Callable[[str], str] = unforeseen
        self._windows: dict[int, StoreWindow] = {}
        self.watched: dict[StoreWindow, None] = {}  # at whose end a cursor has parked
        self._lagging: list[Cursor] = []  # oldest loan first
        self._again: dict[object, Chunk] = {}  # by durable, what was read again for it; the oldest first
        self.held_bytes = 0

    def window(self, node: Node) -> StoreWindow:
        if node.store not in self._windows:
            self._windows[node.store] = StoreWindow(self, node)
        return self._windows[node.store]

    def change(self, node: Node | None) -> None:
        """A node has other properties."""
        if node is not None and node.store in self._windows:
            self._windows[node.store].change(node)

    def cut(self, store: int, end: int) -> None:
        """A store ends there, and had more."""
        if store in self._windows:
            self._windows[store].cut(end)

    def look(self) -> None:
        """Once a turn: read the stores at whose end cursors have parked, each store once for all of them."""
        watched, self.watched = self.watched, {}
        for window in watched:
            try:
                if window.look():
                    self.watched[window] = None
            except Exception:
                why = self.on_mistake(f"events of node {window.node.name!a} could not be read")
                window.fail(Failure("unexpected", why))

    def forget(self, window: StoreWindow) -> None:
        self._windows.pop(window.node.store, None)

    def lend_reader(self, window: StoreWindow, cursor: Cursor) -> TailReader | None:
        """A reader at the cursor; None when all are out and the loan of none is over yet."""
        self.release(cursor)
        now_s, turn_s = self.clock.monotonic_s(), self.limits.reader_turn_s
        if len(self._lagging) >= self.limits.readers:
            over = (taker for taker in self._lagging if taker.tail is not None and taker.tail.is_over(now_s, turn_s))
            if (oldest := next(over, None)) is None:
                return None
            self.release(oldest)
        cursor.tail = TailReader(self, window, cursor.position, now_s)
        self._lagging.append(cursor)
        return cursor.tail

    def release(self, cursor: Cursor) -> None:
        if cursor.tail is not None:
            self.keep_lag(cursor.tail, None)
            cursor.tail.reader.close()
            cursor.tail = None
            self._lagging.remove(cursor)

    # -- what all of it takes in memory

    def keep_lag(self, tail: TailReader, chunk: Chunk | None) -> None:
        """A lagging reader's chunk takes the place of the one before."""
        if tail.chunk is not None:
            self.held_bytes -= tail.chunk.size
        tail.chunk = chunk
        if chunk is not None:
            self.held_bytes += chunk.size
            self._fit()

    def read(self, window: StoreWindow) -> None:
        """A window has grown; those that grew least recently shrink first."""
        if self._windows.get(window.node.store) is window:
            self._windows[window.node.store] = self._windows.pop(window.node.store)
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
        windows = list(self._windows.values())
        for window in windows:
            keep = window is windows[-1]  # one chunk of it: a cursor is about to take from that
            while self.held_bytes > self.limits.feed_bytes and window.window_chunks > keep:
                window.drop_oldest()
