"""Accounts for every EID of every store: which are events, and that nothing else is there.

What this process stored it knows (`store_events.py`), and a log says cheaply whether a stretch holds anything beyond
that. Where it does, or at the start, the stretch is read: a part at a time, one store after the other, on the worker
thread, so a long store holds up neither the others nor what else the thread has to do. Stores that this process writes
to are looked at every `count_interval_s`, all others in rounds; one that has just been made at once, before much is
stored there: what is stored before the first look has to be read.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from native_backend.dispatch.context import RealmContext
from native_backend.events.store_events import StoreEvents
from native_backend.log.port import Log, LogError, Records, Write
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.node import Node
from native_backend.state.ack_state import AckState

_LOG = logging.getLogger(__name__)
_FIRST_READ = 100  # records, before their size is known
_THEIRS = ("not-found", "refused", "retention")  # failures that concern one store only
StateOf = Callable[[int, str], AckState | None]
"""The state of a durable that this process knows, by store and name."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """[start, end) of a store is to be accounted for; so many events and transactions of it are known. `end` -1: up to
    the end that it has now."""

    events: StoreEvents
    start: int
    end: int
    own: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """What was found: the store's bounds, and where the stretch held more than is known, its beginning."""

    first: int
    end: int
    upto: int
    records: Records | None


class Counting:
    """Of one realm. `context.events` has the stores."""

    def __init__(self, context: RealmContext, state_of: StateOf) -> None:
        self._context, self._state_of = context, state_of
        self._work: deque[StoreEvents] = deque()
        self._round: deque[StoreEvents] = deque()
        self._running = False
        self._as_of: tuple[int, int] | None = None
        self._due_s = self._round_s = 0.0
        self._read = _FIRST_READ
        self.timer = context.timers.timer("counting", self._go_on)
        self.timer.soon()
        context.metadata.on_changed.append(self._changed)
        context.metadata.on_made.append(self.timer.soon)

    def _go_on(self) -> None:
        if self._running or self._context.journal.fenced:
            return
        now_s, limits = self._context.clock.monotonic_s(), self._context.limits
        if now_s >= self._due_s:
            self._due_s = now_s + limits.count_interval_s
            self._gather(now_s)
        elif self._as_of is not None:  # else all of them are new, and due
            self._take_up_new()
        if self._work:
            part = [self._work.popleft() for _ in range(min(len(self._work), limits.count_batch))]
            stretches = [self._stretch(events) for events in part]
            log, count, deadline_s = self._context.log, self._read, limits.control_deadline_s
            self._running = True
            self._context.worker.submit(
                lambda: _look_at(log, stretches, count, limits.count_bytes, deadline_s),
                lambda looks: self._looked(stretches, looks),
            )
        else:
            self.timer.by(self._due_s)

    def finish(self, until_s: float) -> None:
        """Account for what was written here before the process ends, as far as there is time. Blocks."""
        log, limits, now_s = self._context.log, self._context.limits, self._context.clock.monotonic_s
        until_s, now_ms = min(until_s, now_s() + limits.count_close_s), self._context.clock.epoch_us() // 1000
        for _ in range(2):  # where it ends; then, what there is up to there
            self._renew()
            self._work = deque(part for part in self._context.events.values() if part.is_open(now_ms) or not part.known)
            while self._work and (left_s := until_s - now_s()) > 0:
                stretches = [self._stretch(self._work.popleft())]
                try:
                    self._looked(stretches, [_look(log, stretch, self._read, left_s) for stretch in stretches])
                except LogError as error:
                    _LOG.info("cannot count events now: %s", error)
                    return

    def _gather(self, now_s: float) -> None:
        """Stores that are written to, and the next few of all."""
        limits, now_ms, known = self._context.limits, self._context.clock.epoch_us() // 1000, self._context.events
        due = dict.fromkeys(self._renew())
        if now_s >= self._round_s and not self._round:
            self._round_s = now_s + limits.count_round_s
            self._round.extend(known.values())
        due.update(dict.fromkeys(self._round.popleft() for _ in range(min(len(self._round), limits.count_stores))))
        for events in known.values():
            if events.is_open(now_ms):
                due[events] = None
        for events in self._work:
            due.pop(events, None)
        self._work.extend(due)

    def _renew(self) -> list[StoreEvents]:
        """Know the stores that there are now. Those that are new."""
        known, metadata = self._context.events, self._context.metadata
        as_of = metadata.position, len(metadata.stores)
        if as_of == self._as_of:
            return []
        self._as_of = as_of
        places = {_place(node): node for node in metadata.stores.values()}
        for place in [place for place, events in known.items() if events.node.store != _store(places.get(place))]:
            del known[place]
        new = {place: StoreEvents(node) for place, node in places.items() if place not in known}
        known.update(new)
        return [*new.values()]

    def _take_up_new(self) -> None:
        """Those that were added last: a look through all of them for each that is made would be quadratic. One that is
        passed over is found by `_renew`."""
        known = self._context.events
        for node in reversed(self._context.metadata.stores.values()):
            if _place(node) in known:
                break
            known[_place(node)] = events = StoreEvents(node)
            self._work.append(events)

    def _changed(self, node: Node | None) -> None:
        """With another time to live other events have expired."""
        events = self._context.events.get((node.topic, node.partition)) if node is not None else None
        if node is not None and events is not None:
            before, events.node = events.node, node
            if before.properties.ttl_ms != node.properties.ttl_ms:
                events.forget()

    def stored(self, writes: list[Write], offsets: list[int]) -> None:
        """A transaction of the journal has stored these events; -1: gone already."""
        now_ms = self._context.clock.epoch_us() // 1000
        by_place: dict[tuple[str, int], tuple[list[int], list[bytes | None]]] = {}
        for write, offset in zip(writes, offsets, strict=True):
            if offset >= 0:
                eids, keys = by_place.setdefault((write.topic, write.partition), ([], []))
                eids.append(offset)
                keys.append(write.key)
        for place, (eids, keys) in by_place.items():
            events = self._context.events.get(place)
            if events is not None:
                events.transacted(eids, keys, now_ms)

    def low(self, node: Node) -> int:
        """Below it no event of the store is a message: a queue's have ended. A channel keeps them."""
        if node.kind != "queue":
            return 0
        state = self._state_of(node.store, QUEUE)
        durable = self._context.metadata.durable(node.part(0), QUEUE)
        return state.low if state is not None else durable.of(node).start if durable is not None else 0

    def _stretch(self, events: StoreEvents) -> Stretch:
        if events.counted_to < 0:
            return Stretch(events, self.low(events.node), -1, (0, 0))
        return Stretch(events, events.counted_to, events.target, events.own(events.target))

    def _looked(self, stretches: list[Stretch], looks: list[Look | None] | LogError) -> None:
        self._running = False
        self.timer.soon()
        if isinstance(looks, LogError):
            _LOG.info("cannot count events now: %s", looks)
            self._work.clear()
            return
        now_ms = self._context.clock.epoch_us() // 1000
        self._work.extendleft(stretch.events for stretch in reversed(stretches[len(looks) :]))
        for stretch, look in zip(stretches, looks, strict=False):
            if look is not None and self._context.events.get(_place(stretch.events.node)) is stretch.events:
                self._found(stretch, look, now_ms)

    def _found(self, stretch: Stretch, look: Look, now_ms: int) -> None:
        events = stretch.events
        if stretch.end >= 0 and look.end < stretch.start:  # the log has lost what it held
            events.forget()
            return
        if events.counted_to < 0:
            if stretch.end >= 0:  # forgotten meanwhile
                return
            events.begin(look.first, stretch.start)
        if look.records is not None:
            events.learn(look.records, now_ms)
            self._fit(look.records)
        elif look.upto > events.counted_to:
            events.confirm(look.upto)
        events.begins_at(look.first, self.low(events.node))
        if events.counted_to < look.upto:
            events.target = look.upto
            self._work.append(events)  # after the others
            return
        if not events.known:
            events.known = True
            events.changes += 1
        events.target = look.end

    def _fit(self, records: Records) -> None:
        """Read so many at a time as their size lets expect to be bearable."""
        limits, size = self._context.limits, _size_bytes(records)
        if records.values:
            fit = limits.count_bytes * len(records.values) // max(1, size)
            self._read = max(1, min(fit, limits.count_records, 8 * self._read))


def _look_at(log: Log, stretches: list[Stretch], count: int, size_bytes: int, deadline_s: float) -> list[Look | None]:
    """The first of them, until so many octets are read. Blocks; raises LogError."""
    looks: list[Look | None] = []
    for stretch in stretches:
        looks.append(look := _look(log, stretch, count, deadline_s))
        if look is not None and look.records is not None:
            size_bytes -= _size_bytes(look.records)
        if size_bytes <= 0:
            break
    return looks


def _size_bytes(records: Records) -> int:
    return sum(len(value or b"") for value in records.values)


def _look(log: Log, stretch: Stretch, count: int, deadline_s: float) -> Look | None:
    """Blocks; raises LogError. None: it cannot be seen."""
    topic, partition = _place(stretch.events.node)
    try:
        first, end = log.control.bounds(topic, partition, deadline_s)
        start, upto = max(stretch.start, first), stretch.end if stretch.end >= 0 else end
        records = None
        if start < upto <= end and not (
            start == stretch.start and log.control.holds_only(topic, partition, start, upto, *stretch.own, deadline_s)
        ):
            records = log.control.read_range(topic, partition, start, count, deadline_s)
        return Look(first, end, min(upto, end), records)
    except LogError as error:
        if error.failure.cause not in _THEIRS:
            raise
        _LOG.info("cannot count the events of %s: %s", topic, error)
        return None


def _place(node: Node) -> tuple[str, int]:
    return node.topic, node.partition


def _store(node: Node | None) -> int:
    return node.store if node is not None else 0
