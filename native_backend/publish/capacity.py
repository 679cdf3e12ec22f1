"""Nodes with a capacity: one that honours it refuses what does not fit, any other gives up its oldest events.

Only such nodes are counted (`occupancy`). Counting begins at the first publish: what is stored already is read once, a
stretch at a time, on the worker thread, and what is published meanwhile waits, in order. A hole in what was appended
(another writer's events, a transaction's marker) is read, too. What the retention of a topic takes is no more in a full
node, whether or not a consumer misses it. What is given up is journaled as `evicted`, for all
durables of the store at once, before the log lets go of it.

Source: semantics 3.5 (Capacity, Honour Capacity), row P-R2b.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from native_backend.dispatch.context import RealmContext, append, store_bounds
from native_backend.journal.each_store import EachStore
from native_backend.log.columns import Strings
from native_backend.log.port import Appended, LogError, Records
from native_backend.nodes.answers import Published
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.node import Node
from native_backend.nodes.words import Operation, PublishAnswer
from native_backend.state.ack_state import AckState
from native_backend.state.occupancy import Occupancy

_LOG = logging.getLogger(__name__)
_OPERATORS = ("purge", "seek", "delete")
_FIRST_STRETCH = 100  # events, before their size is known
StateOf = Callable[[int, str], AckState | None]
"""The state of a durable that this process knows, by store and name."""


@dataclass(slots=True, eq=False)
class AdmittedBatch:
    """What of a batch was appended: its beginning. `owner` handed the batch in."""

    counted_store: CountedStore
    owner: Any
    sizes: list[int]


class CountedStore:
    """One store of a node with a capacity. Keeper of its evictions. `group`: all stores of the node, which share it."""

    def __init__(
        self, context: RealmContext, node: Node, state_of: StateOf, evicted: Callable[[int, int], None]
    ) -> None:
        self._timer = context.timers.timer("capacity", self._scan, ends=True, is_needed=True)
        self.node = node
        self.group = [self]
        self.occupancy: Occupancy | None = None  # None: nothing is counted yet
        self.is_whole = False  # counted to the end of the store, once: below, `occupancy` lacks what is not read yet
        self._context, self._state_of, self._evicted = context, state_of, evicted
        self._waiting: deque[tuple[Strings, Strings, Any]] = deque()
        self._asking: deque[Callable[[LogError | None], None]] = deque()  # who waits until it is counted
        self._appended = 0  # events, not completed or not counted
        self._appended_bytes = 0
        self._uncounted: list[tuple[int, int, int]] = []  # last EID, events, octets: stored behind a hole
        self._scanning = False
        self._evicting = False
        self._hidden_s: float | None = None  # since when the log shows less than is known to be stored
        self._stretch = _FIRST_STRETCH
        self._look_s = float("-inf")  # no look at where the store begins before

    @property
    def pending(self) -> bool:
        """Is anything of it on its way to the log?"""
        return bool(self._waiting or self._asking or self._appended)

    # -- publishing

    def publish(self, keys: Strings, values: Strings, owner: Any) -> None:
        if self._waiting or not self.is_counted():
            self._waiting.append((keys, values, owner))
            self._count_group()
        elif self.occupancy is not None:
            self._admit(self.occupancy, keys, values, owner)

    def is_counted(self) -> bool:
        """All stores of the node, each to its end: one that is read in part would seem to have room."""
        return all(store.is_whole for store in self.group)

    @property
    def size_bytes(self) -> int | None:
        """Octets of what this store keeps; None: it is not counted to its end."""
        return self.occupancy.size_bytes if self.is_whole and self.occupancy is not None else None

    def _count_group(self) -> None:
        """Also where a reading broke off."""
        for store in self.group:
            if not store.is_whole:
                store._scan()

    def _counted(self) -> tuple[int, int]:
        """Events and octets of the whole node, as far as they are counted."""
        counted = [store.occupancy for store in self.group if store.occupancy is not None]
        return sum(occupancy.count for occupancy in counted), sum(occupancy.size_bytes for occupancy in counted)

    def _admit(self, occupancy: Occupancy, keys: Strings, values: Strings, owner: Any) -> None:
        sizes = [*map(len, values)]
        fit = len(keys)
        if self.node.properties.honour_capacity:
            fit = self._fit(sizes)
        if fit:
            self._appended += fit
            self._appended_bytes += sum(sizes[:fit])
            batch = AdmittedBatch(self, owner, sizes[:fit])
            append(self._context, self.node, keys[:fit], values[:fit], batch)
        if fit < len(keys):
            full: PublishAnswer = "capacity-reached"
            self._context.answer(Published(owner, fit, [-1] * (len(keys) - fit), full, full))

    def _fit(self, sizes: list[int]) -> int:
        """How many of them the node has room for, as far as is known."""
        fit = self._room(sizes)
        if fit < len(sizes):
            for store in self.group:
                store._look()
        return fit

    def _room(self, sizes: list[int]) -> int:
        self._settle_all()
        properties, fit = self.node.properties, len(sizes)
        count, size = self._counted()
        if properties.capacity_events:
            under_way = sum(store._appended for store in self.group)
            fit = min(fit, max(0, properties.capacity_events - count - under_way))
        if properties.capacity_bytes:
            room = properties.capacity_bytes - size - sum(store._appended_bytes for store in self.group)
            for at in range(fit):
                room -= sizes[at]
                if room < 0:
                    return at
        return fit

    def completed(self, batch: AdmittedBatch, appended: Appended) -> None:
        """The log has answered about a share."""
        count = len(appended.offsets)
        size = sum(batch.sizes[appended.first : appended.first + count])
        occupancy = self.occupancy
        if appended.failure is not None:
            self._forget(count, size)
        elif occupancy is not None and appended.offsets[0] == occupancy.counted_to and _dense(appended.offsets):
            self._forget(count, size)
            occupancy.store(appended.offsets, size, appended.offsets[-1] + 1, self._ended(appended.offsets))
            self._evict()
        else:
            self._uncounted.append((appended.offsets[-1], count, size))
            self._scan()

    # -- what a transaction of the log brings

    def when_counted(self, when_done: Callable[[LogError | None], None]) -> None:
        """All stores of the node."""
        self._asking.append(when_done)
        self._count_group()

    def reserve(self, sizes: list[int]) -> int:
        """Room for all of these, or for none. How many would fit; to be called once it is counted."""
        fit = self._fit(sizes) if self.node.properties.honour_capacity else len(sizes)
        if fit == len(sizes):
            self._appended += fit
            self._appended_bytes += sum(sizes)
        return fit

    def stored_by_transaction(self, eids: list[int], sizes: list[int]) -> None:
        """They are stored, usually after an offset gap."""
        if max(eids) < 0:  # gone already
            self.release(sizes)
        else:
            self._uncounted.append((max(eids), len(eids), sum(sizes)))
            self._scan()

    def release(self, sizes: list[int], *, certain: bool = True) -> None:
        """They are not stored; unless `certain`, they may be."""
        self._forget(len(sizes), sum(sizes))
        if not certain:
            self._count_anew()

    @property
    def is_full(self) -> bool:
        """As far as that is known: not even an empty event fits."""
        honours = self.node.properties.honour_capacity
        return honours and self.is_counted() and not self._fit([0])

    def ended(self, operation: Operation, runs: Iterable[tuple[int, ...]]) -> None:
        """The journal holds this of one of its durables. What an operator does speaks of EIDs that need not be events:
        then everything is counted anew."""
        if self.occupancy is None or self.node.kind != "queue" or operation == "return":
            return
        if operation in _OPERATORS:
            self._count_anew()
        else:
            self.occupancy.end(runs)

    def lost(self, bound: int) -> None:
        if self.occupancy is not None:
            self.occupancy.drop(bound, *self._known())

    def recount(self) -> None:
        """The log has lost some of its events, and some of those that were stored last may never be counted."""
        self._count_anew()
        for _, count, size in self._uncounted:
            self._forget(count, size)
        self._uncounted.clear()

    def _count_anew(self) -> None:
        self.occupancy, self.is_whole = None, False

    def _forget(self, count: int, size: int) -> None:
        self._appended -= count
        self._appended_bytes -= size

    def _ended(self, eids: list[int]) -> int:
        """How many of them have ended before they were counted."""
        state = self._state()
        if state is None or (eids[-1] >= state.position and eids[0] >= state.position):
            return 0
        return sum(eid < state.low or eid in state.acked for eid in eids)

    def _state(self) -> AckState | None:
        """Whose settlements end events: a queue's. A channel keeps them."""
        return self._state_of(self.node.store, QUEUE) if self.node.kind == "queue" else None

    def _settle_all(self) -> None:
        for store in self.group:
            state = store._state()
            if state is not None and store.occupancy is not None:
                store.occupancy.settle(state.low)

    # -- counting what is there

    def _look(self) -> None:
        """Retention takes events without a word: no answer of the log says so."""
        context, node = self._context, self.node
        if context.clock.monotonic_s() < self._look_s:
            return
        self._look_s = float("inf")  # one at a time
        deadline_s = context.limits.control_deadline_s
        context.worker.submit(lambda: store_bounds(context.log, node, deadline_s)[0], self._looked)

    def _looked(self, first: int | LogError) -> None:
        self._look_s = self._context.clock.monotonic_s() + self._context.limits.full_look_s
        if not isinstance(first, LogError):
            self.lost(first)

    def stop(self) -> None:
        """It is not counted any more."""
        self._timer.stop()

    def _scan(self) -> None:
        if self._scanning:
            return
        self._scanning = True
        context, node, occupancy, state = self._context, self.node, self.occupancy, self._state()
        low, count = state.low if state is not None else 0, self._stretch
        deadline_s = context.limits.control_deadline_s

        def job() -> tuple[int, Records]:
            start = occupancy.counted_to if occupancy else 0
            start = max(start, low, store_bounds(context.log, node, deadline_s)[0])
            return start, context.log.control.read_range(node.topic, node.partition, start, count, deadline_s)

        context.worker.submit(job, lambda scanned: self._scanned(scanned, occupancy is not None))

    def _scanned(self, scanned: tuple[int, Records] | LogError, continues: bool) -> None:
        self._scanning = False
        if isinstance(scanned, LogError):
            _LOG.warning("cannot count the events of node %r: %s", self.node.name, scanned)
            for store in self.group:
                store._refuse_waiting(scanned)
            return
        start, records = scanned
        if self.occupancy is None:
            if continues:  # it was given up meanwhile
                self._scan()
                return
            self.occupancy = Occupancy(start)
        occupancy = self.occupancy
        columns = zip(records.offsets, records.values, strict=True)
        sizes = {eid: len(value) for eid, value in columns if value is not None}
        eids, size = [*sizes], sum(sizes.values())
        occupancy.store(eids, size, max(records.next, start), self._ended(eids) if eids else 0)
        is_last = len(records.offsets) < self._stretch
        if eids:
            limits = self._context.limits
            self._stretch = max(1, min(limits.read_count, limits.chunk_bytes * len(eids) // max(1, size)))
        while self._uncounted and self._uncounted[0][0] < occupancy.counted_to:
            _, count, size = self._uncounted.pop(0)
            self._forget(count, size)
        if not is_last:
            self._scan()
            return
        if self._uncounted or self._is_hidden(occupancy):
            if self._context.counted.get(self.node.store) is self:
                self._timer.soon()  # a log may show what is stored a little late
            return
        self.is_whole = True
        if self.is_counted():
            for store in self.group:
                store._admit_waiting()
        self._evict()

    def _is_hidden(self, occupancy: Occupancy) -> bool:
        """Events above what is counted are known to be stored. For a while only: the store may have become shorter."""
        now_s = self._context.clock.monotonic_s()
        if occupancy.counted_to >= self._context.known.of((self.node.topic, self.node.partition)):
            self._hidden_s = None
            return False
        self._hidden_s = now_s if self._hidden_s is None else self._hidden_s
        return now_s - self._hidden_s < self._context.limits.late_s

    def _admit_waiting(self) -> None:
        while self._waiting and self.occupancy is not None:
            self._admit(self.occupancy, *self._waiting.popleft())
        while self._asking:
            self._asking.popleft()(None)

    def _refuse_waiting(self, error: LogError) -> None:
        for store in self.group:  # they wait for each other
            while store._waiting:
                keys, _, owner = store._waiting.popleft()
                native = error.failure.code or error.failure.cause
                self._context.answer(Published(owner, 0, [-1] * len(keys), "unavailable", native))
            while store._asking:
                store._asking.popleft()(error)

    # -- making room

    def _evict(self) -> None:
        """The store of the node that has most gives up its oldest events, but for the last one."""
        properties = self.node.properties
        if properties.honour_capacity or not self.is_counted() or any(store._evicting for store in self.group):
            return
        self._settle_all()
        count, size = self._counted()
        by_count = bool(properties.capacity_events) and count > properties.capacity_events
        most = max(self.group, key=lambda store: store._weight(by_count))
        if most.occupancy is not None:
            events = properties.capacity_events and max(1, properties.capacity_events - count + most.occupancy.count)
            octets = properties.capacity_bytes and max(1, properties.capacity_bytes - size + most.occupancy.size_bytes)
            most._give_up(most.occupancy, events, octets)

    def _weight(self, by_count: bool) -> int:
        if self.occupancy is None:
            return 0
        return self.occupancy.count if by_count else self.occupancy.size_bytes

    def _give_up(self, occupancy: Occupancy, events: int, octets: int) -> None:
        """The oldest of what is more than that; 0 is no bound."""
        bound = occupancy.surplus(events, octets, *self._known())
        if bound:
            self._evicting = True
            first = occupancy.floor
            note = {(self.node.name, "", self.node.store): (first, bound - 1, 0, first)}
            noted = partial(self._noted, bound)
            EachStore(self._context.journal, noted, self._not_noted).note("evicted", "capacity", note)

    def _known(self) -> tuple[int, Any]:
        state = self._state() or AckState(0)
        return state.low, state.acked

    def _noted(self, bound: int) -> None:
        if self.occupancy is not None:
            self.occupancy.drop(bound, *self._known())
        self._evicted(self.node.store, bound)
        context, node = self._context, self.node

        def trim() -> None:
            context.log.control.trim(node.topic, node.partition, bound, context.limits.control_deadline_s)

        context.journal.afterwards(lambda: context.worker.submit(trim, self._trimmed))  # behind the snapshots

    def _not_noted(self) -> None:
        self._evicting = False

    def _trimmed(self, done: LogError | None) -> None:
        self._evicting = False
        if done is not None:
            _LOG.warning("node %r could not be trimmed yet: %s", self.node.name, done)
        self._evict()


def _dense(offsets: list[int]) -> bool:
    return offsets[-1] - offsets[0] == len(offsets) - 1
