"""Events of queues that have ended leave the log once they are older than `retain_s`: until then reconciliation can
compare what was told with what is there.

Every `trim_interval_s` each queue is looked at, one after another: the newest event that is old enough is found by
bisection over the records' times, the journal notes the range as `trimmed`, and then the log lets go of it. A channel's
events are not trimmed for their age: they go when the channel is full. May import: the standard library,
`native_backend` below it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from native_backend.log import Log, LogError
from native_backend.nodes import Node
from native_backend.services import Services, store_bounds
from native_backend.settlement import Settlement

_LOG = logging.getLogger(__name__)
Place = tuple[str, int]  # topic, partition
Lows = Callable[[], list[tuple[Node, int]]]
"""The queues whose state is known, and below which EID everything has ended."""


class Trimmer:
    """Keeper of its notes in the journal."""

    def __init__(self, services: Services, lows: Lows) -> None:
        self._services, self._lows = services, lows
        self._queues: deque[tuple[Node, int]] = deque()
        self._node: Node | None = None  # at work on this one
        self._due_s = services.clock.monotonic_s() + services.limits.trim_interval_s

    def advance(self) -> None:
        now_s = self._services.clock.monotonic_s()
        if self._node is None and now_s >= self._due_s and not self._services.journal.fenced:
            self._due_s = now_s + self._services.limits.trim_interval_s
            self._queues.extend(self._lows())
            self._next()

    def stop(self) -> None:
        """The queues that are left wait for the next process."""
        self._queues.clear()

    def _next(self) -> None:
        self._node = None
        if not self._queues:
            return
        self._node, low = self._queues.popleft()
        services, node = self._services, self._node
        before_ms = services.clock.epoch_us() // 1000 - round(services.limits.retain_s * 1000)
        deadline_s = services.limits.control_deadline_s

        def job() -> tuple[int, int]:
            first = store_bounds(services.log, node, deadline_s)[0]
            return first, older(services.log, (node.topic, node.partition), first, low, before_ms, deadline_s)

        services.control.submit(job, self._found)

    def _found(self, bounds: tuple[int, int] | LogError) -> None:
        if isinstance(bounds, LogError):
            self._failed(bounds)
        elif bounds[1] <= bounds[0]:
            self._next()
        else:
            runs = [(bounds[0], bounds[1] - 1, 0, bounds[0])]
            self._services.journal.add(Settlement(self, None, "trimmed", False, False, "retention", runs, 1, None))

    def _failed(self, error: LogError) -> None:
        assert self._node is not None
        _LOG.warning("node %r could not be trimmed now: %s", self._node.name, error)
        self._next()

    def keys(self) -> tuple[str, str, int]:
        assert self._node is not None
        return self._node.name, "", self._node.store

    def settled(self, settlement: Settlement) -> None:
        assert self._node is not None
        services, node, bound = self._services, self._node, settlement.runs[0][1] + 1

        def trim() -> None:
            services.log.trim(node.topic, node.partition, bound, services.limits.control_deadline_s)

        services.control.submit(trim, lambda error: self._next() if error is None else self._failed(error))

    def restore(self, settlement: Settlement) -> None:
        self._next()


def older(log: Log, place: Place, first: int, end: int, before_ms: int, deadline_s: float) -> int:
    """The offset in [first, end] below which every record was stored at or before `before_ms`. Blocks; raises
    LogError."""
    while first < end:
        middle = (first + end) // 2
        records = log.read_range(*place, middle, 1, deadline_s)
        if records.offsets and records.offsets[0] < end and records.timestamps_ms[0] <= before_ms:
            first = records.offsets[0] + 1
        else:
            end = middle
    return first
