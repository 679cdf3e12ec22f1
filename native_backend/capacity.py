"""Nodes with a capacity: one that honours it refuses what does not fit, any other gives up its oldest events.

Only such nodes are counted (`occupancy`). Counting begins at the first publish: what is stored already is read once, a
stretch at a time, on the control thread, and what is published meanwhile waits, in order. A hole in what was appended
(another writer's events, a transaction's marker) is read, too. What is given up is journaled as `evicted`, for all
durables of the store at once, before the log lets go of it.

Source: semantics 3.5 (Capacity, Honour Capacity), row P-R2b. May import: the standard library, `native_backend`
below it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from native_backend.acknowledgement import Acknowledgement
from native_backend.answers import Operation, Published
from native_backend.durables import QUEUE
from native_backend.log import Append, Appended, LogError, Records
from native_backend.nodes import Node
from native_backend.occupancy import Occupancy
from native_backend.services import Services, store_bounds
from native_backend.settlement import Settlement
from native_backend.strings import Strings

_LOG = logging.getLogger(__name__)
_OPERATORS = ("purge", "seek", "delete")
_FIRST_STRETCH = 100  # events, before their size is known
StateOf = Callable[[int, str], Acknowledgement | None]
"""The state of a durable that this process knows, by store and name."""


@dataclass(slots=True, eq=False)
class Share:
    """What of a batch was appended: its beginning. `owner` handed the batch in."""

    bounded: Bounded
    owner: Any
    sizes: list[int]


class Bounded:
    """One node with a capacity. Keeper of its evictions."""

    def __init__(self, services: Services, node: Node, state_of: StateOf, evicted: Callable[[int, int], None]) -> None:
        self.node = node
        self.occupancy: Occupancy | None = None  # None: not counted yet
        self._services, self._state_of, self._evicted = services, state_of, evicted
        self._waiting: deque[tuple[Strings, Strings, Any]] = deque()
        self._appended = 0  # events, not completed or not counted
        self._appended_bytes = 0
        self._uncounted: list[tuple[int, int, int]] = []  # last EID, events, octets: stored behind a hole
        self._scanning = False
        self._evicting = False
        self.is_behind = False  # look again next turn
        self._stretch = _FIRST_STRETCH

    @property
    def pending(self) -> bool:
        """Is anything of it on its way to the log?"""
        return bool(self._waiting or self._appended)

    # -- publishing

    def publish(self, keys: Strings, values: Strings, owner: Any) -> None:
        if self.occupancy is None:
            self._waiting.append((keys, values, owner))
            self._scan()
        else:
            self._admit(self.occupancy, keys, values, owner)

    def _admit(self, occupancy: Occupancy, keys: Strings, values: Strings, owner: Any) -> None:
        sizes = [*map(len, values)]
        fit = len(keys)
        if self.node.properties.honour_capacity:
            fit = self._fit(occupancy, sizes)
        if fit:
            self._appended += fit
            self._appended_bytes += sum(sizes[:fit])
            share = Share(self, owner, sizes[:fit])
            self._services.log.append(Append(self.node.topic, self.node.partition, keys[:fit], values[:fit], share))
        if fit < len(keys):
            native = f"{self.node.name} is full"
            self._services.answer(Published(owner, fit, [-1] * (len(keys) - fit), "capacity-reached", native))

    def _fit(self, occupancy: Occupancy, sizes: list[int]) -> int:
        """How many of them the node has room for."""
        self._settle(occupancy)
        properties, fit = self.node.properties, len(sizes)
        if properties.capacity_events:
            fit = min(fit, max(0, properties.capacity_events - occupancy.count - self._appended))
        if properties.capacity_bytes:
            room = properties.capacity_bytes - occupancy.size_bytes - self._appended_bytes
            for at in range(fit):
                room -= sizes[at]
                if room < 0:
                    return at
        return fit

    def completed(self, share: Share, appended: Appended) -> None:
        """The log has answered about a share."""
        count = len(appended.offsets)
        size = sum(share.sizes[appended.first : appended.first + count])
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

    def ended(self, operation: Operation, runs: Iterable[tuple[int, ...]]) -> None:
        """The journal holds this of one of its durables. What an operator does speaks of EIDs that need not be events:
        then everything is counted anew."""
        if self.occupancy is None or self.node.kind != "queue" or operation == "return":
            return
        if operation in _OPERATORS:
            self.occupancy = None
        else:
            self.occupancy.end(runs)

    def _forget(self, count: int, size: int) -> None:
        self._appended -= count
        self._appended_bytes -= size

    def _ended(self, eids: list[int]) -> int:
        """How many of them have ended before they were counted."""
        state = self._state()
        if state is None or (eids[-1] >= state.position and eids[0] >= state.position):
            return 0
        return sum(eid < state.low or eid in state.acked for eid in eids)

    def _state(self) -> Acknowledgement | None:
        """Whose settlements end events: a queue's. A channel keeps them."""
        return self._state_of(self.node.store, QUEUE) if self.node.kind == "queue" else None

    def _settle(self, occupancy: Occupancy) -> None:
        state = self._state()
        if state is not None:
            occupancy.settle(state.low)

    # -- counting what is there

    def _scan(self) -> None:
        if self._scanning:
            return
        self._scanning = True
        services, node, occupancy, state = self._services, self.node, self.occupancy, self._state()
        low, count = state.low if state is not None else 0, self._stretch
        deadline_s = services.limits.control_deadline_s

        def job() -> tuple[int, Records]:
            start = occupancy.counted_to if occupancy else 0
            start = max(start, low, store_bounds(services.log, node, deadline_s)[0])
            return start, services.log.read_range(node.topic, node.partition, start, count, deadline_s)

        services.control.submit(job, lambda found: self._scanned(found, occupancy is not None))

    def look_again(self) -> None:
        self.is_behind = False
        self._scan()

    def _scanned(self, found: tuple[int, Records] | LogError, continues: bool) -> None:
        self._scanning = False
        if isinstance(found, LogError):
            _LOG.warning("cannot count the events of node %r: %s", self.node.name, found)
            self._refuse_waiting(found)
            return
        start, records = found
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
            limits = self._services.limits
            self._stretch = max(1, min(limits.read_count, limits.chunk_bytes * len(eids) // max(1, size)))
        while self._uncounted and self._uncounted[0][0] < occupancy.counted_to:
            _, count, size = self._uncounted.pop(0)
            self._forget(count, size)
        if not is_last:
            self._scan()
            return
        if self._uncounted:
            self.is_behind = True  # a log may show what is stored a little late
            return
        while self._waiting:
            self._admit(occupancy, *self._waiting.popleft())
        self._evict()

    def _refuse_waiting(self, error: LogError) -> None:
        while self._waiting:
            keys, _, owner = self._waiting.popleft()
            native = error.failure.code or error.failure.cause
            self._services.answer(Published(owner, 0, [-1] * len(keys), "unavailable", native))

    # -- making room

    def _evict(self) -> None:
        occupancy, properties = self.occupancy, self.node.properties
        if occupancy is None or self._evicting or properties.honour_capacity:
            return
        self._settle(occupancy)
        low, acked = self._known()
        bound = occupancy.surplus(properties.capacity_events, properties.capacity_bytes, low, acked)
        if bound:
            self._evicting = True
            first = occupancy.floor
            runs = [(first, bound - 1, 0, first)]
            self._services.journal.add(Settlement(self, None, "evicted", False, False, "capacity", runs, 1, None))

    def _known(self) -> tuple[int, Any]:
        state = self._state() or Acknowledgement(0)
        return state.low, state.acked

    def keys(self) -> tuple[str, str, int]:
        return self.node.name, "", self.node.store

    def settled(self, settlement: Settlement) -> None:
        bound = settlement.runs[0][1] + 1
        if self.occupancy is not None:
            self.occupancy.drop(bound, *self._known())
        self._evicted(self.node.store, bound)
        services, node = self._services, self.node

        def trim() -> None:
            services.log.trim(node.topic, node.partition, bound, services.limits.control_deadline_s)

        services.control.submit(trim, self._trimmed)

    def restore(self, settlement: Settlement) -> None:
        self._evicting = False

    def _trimmed(self, done: LogError | None) -> None:
        self._evicting = False
        if done is not None:
            _LOG.warning("node %r could not be trimmed yet: %s", self.node.name, done)
        self._evict()


class Capacities:
    """The nodes that have one."""

    def __init__(self, services: Services, state_of: StateOf, evicted: Callable[[int, int], None]) -> None:
        self._services, self._state_of, self._evicted = services, state_of, evicted
        self._bounded: dict[int, Bounded] = {}

    @property
    def pending(self) -> bool:
        return any(bounded.pending for bounded in self._bounded.values())

    def of(self, node: Node) -> Bounded | None:
        """The node's, as its properties are now; None when it has none."""
        current = self._services.metadata.stores.get(node.store, node)
        properties = current.properties
        bounded = self._bounded.get(node.store)
        if not properties.capacity_events and not properties.capacity_bytes:
            if bounded is None or bounded.pending:
                return bounded
            self.forget(node.store)
            return None
        if bounded is None:
            bounded = self._bounded[node.store] = Bounded(self._services, current, self._state_of, self._evicted)
            self._services.counted[node.store] = bounded
        bounded.node = current
        return bounded

    def advance(self) -> None:
        """Look again where the log had not shown everything."""
        for bounded in self._bounded.values():
            if bounded.is_behind:
                bounded.look_again()

    def forget(self, store: int) -> None:
        self._bounded.pop(store, None)
        self._services.counted.pop(store, None)


def _dense(offsets: list[int]) -> bool:
    return offsets[-1] - offsets[0] == len(offsets) - 1
