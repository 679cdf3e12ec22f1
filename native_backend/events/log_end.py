"""Where a store's last event is: for a caller that must know that there is nothing more, not only that nothing has come
yet.

A reader may give nothing although there is something: it fetches, is opened anew, waits to try again, or all readers
are lent. So a link that drains asks here, and gets an answer that holds from when it asked on. Callers that ask about
one store before its look has begun share that look.

A log may answer that an event is stored and show it a little later (Kafka does, behind an open transaction). A look
waits for what this process knows to be stored (`KnownEnds`), for `late_s` at most: a store may have become shorter.
Source: semantics.md U-4.
"""

from __future__ import annotations

from native_backend.events.known_ends import KnownEnds
from native_backend.limits import RealmLimits
from native_backend.log.port import Log, LogError
from native_backend.log.worker import Worker
from native_backend.nodes.node import Node

_STEP = 64  # records: what a log shows at its end are few that are no events


class EndLookup:
    """One look at the end of a store. `begun`: set by the thread that looks, before it does."""

    __slots__ = ("begun", "last", "over")

    def __init__(self) -> None:
        self.begun = self.over = False
        self.last = -1


class LogEnds:
    """All stores of a realm."""

    def __init__(self, log: Log, worker: Worker, limits: RealmLimits, known: KnownEnds) -> None:
        self._log, self._worker, self._deadline_s = log, worker, limits.control_deadline_s
        self._pause_s, self._looks_max = limits.late_look_s, round(limits.late_s / limits.late_look_s)
        self._known_ends = known
        self._looks: dict[int, EndLookup] = {}  # by store, the one that was asked for last
        self._known: dict[int, tuple[int, int]] = {}  # by store that is being asked for: its end, and its last event

    def look(self, node: Node) -> EndLookup:
        look = self._looks.get(node.store)
        if look is not None and not look.begun:
            return look
        look = self._looks[node.store] = EndLookup()

        def find() -> int:
            look.begun = True
            bounds = self.bounds(node)
            end, last = self._known.get(node.store, (-1, -1))
            if bounds[1] != end:
                last = last_event(self._log, node, bounds, self._deadline_s)
                self._known[node.store] = bounds[1], last
            return last

        def found(last: int | LogError) -> None:
            look.over = True
            look.last = -1 if isinstance(last, LogError) else last  # what cannot be read is not there now
            if self._looks.get(node.store) is look:
                del self._looks[node.store]

        self._worker.submit(find, found)
        return look

    def bounds(self, node: Node) -> tuple[int, int]:
        """First kept EID and end of a store, once the log shows what is known to be there. Blocks; raises LogError."""
        place = node.topic, node.partition
        for _ in range(self._looks_max):
            first, end = self._log.control.bounds(*place, self._deadline_s)
            if end >= self._known_ends.of(place):
                return first, end
            self._worker.pause(self._pause_s)
        return self._log.control.bounds(*place, self._deadline_s)

    def forget(self, store: int) -> None:
        self._known.pop(store, None)


class EndSearch:
    """Is a cursor behind everything that was in its store when it was first asked? For one link."""

    __slots__ = ("_ends", "_look", "_node")

    def __init__(self, ends: LogEnds, node: Node) -> None:
        self._ends, self._node = ends, node
        self._look: EndLookup | None = None

    def begin_anew(self) -> None:
        """What it knows is of an earlier question."""
        self._look = None

    def is_over(self, position: int) -> bool:
        """False: not known yet, or there is something at `position` or above; ask again next turn."""
        if self._look is None:
            self._look = self._ends.look(self._node)
        return self._look.over and position > self._look.last


def last_event(log: Log, node: Node, bounds: tuple[int, int], deadline_s: float) -> int:
    """The last event of a store with these bounds; -1: none. Blocks; raises LogError."""
    first, high = bounds
    step = _STEP
    while high > first:
        low = max(first, high - step)
        last = _last_within(log, node, low, high, deadline_s)
        if last >= 0:
            return last
        high, step = low, 2 * step
    return -1


def _last_within(log: Log, node: Node, low: int, high: int, deadline_s: float) -> int:
    last = -1
    while low < high:
        records = log.control.read_range(node.topic, node.partition, low, high - low, deadline_s)
        columns = zip(records.offsets, records.values, strict=True)
        last = max((eid for eid, value in columns if value is not None and eid < high), default=last)
        low = max(records.next, low + 1)
    return last
