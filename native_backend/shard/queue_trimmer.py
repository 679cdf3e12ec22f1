"""Events of queues that have ended leave the log once they are older than `retain_s`: until then reconciliation can
compare the outcomes with the stored events.

Every `trim_interval_s` each queue is looked at, one after another: the newest event that is old enough is found by
bisection over the records' times, the journal notes the range as `trimmed`, and then the log deletes it. A channel's
events are not trimmed for their age: they go when the channel is full.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from native_backend.dispatch.context import RealmContext, store_bounds
from native_backend.journal.each_store import EachStore
from native_backend.log.port import LogError
from native_backend.log.time_search import first_at
from native_backend.nodes.node import Node

_LOG = logging.getLogger(__name__)
Lows = Callable[[], list[tuple[Node, int]]]
"""The queues whose state is known, and below which EID everything has ended."""


class QueueTrimmer:
    """See the module's docstring."""

    def __init__(self, context: RealmContext, lows: Lows) -> None:
        self._context, self._lows = context, lows
        self._queues: deque[tuple[Node, int]] = deque()
        self._node: Node | None = None  # at work on this one
        self._timer = context.timers.timer("old events", self._begin)
        self._timer.after(context.limits.trim_interval_s)

    def _begin(self) -> None:
        self._timer.after(self._context.limits.trim_interval_s)
        if self._node is None and not self._context.journal.fenced:
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
        context, node = self._context, self._node
        before_ms = context.clock.epoch_us() // 1000 - round(context.limits.retain_s * 1000)
        deadline_s = context.limits.control_deadline_s

        def job() -> tuple[int, int]:
            first = store_bounds(context.log, node, deadline_s)[0]
            return first, first_at(context.log, node.topic, node.partition, (first, low), before_ms + 1, deadline_s)

        context.worker.submit(job, self._found)

    def _found(self, bounds: tuple[int, int] | LogError) -> None:
        if isinstance(bounds, LogError):
            self._failed(bounds)
        elif bounds[1] <= bounds[0]:
            self._next()
        else:
            assert self._node is not None
            note = {(self._node.name, "", self._node.store): (bounds[0], bounds[1] - 1, 0, bounds[0])}
            noted = partial(self._noted, self._node, bounds[1])
            EachStore(self._context.journal, noted, self._next).note("trimmed", "retention", note)

    def _failed(self, error: LogError) -> None:
        assert self._node is not None
        _LOG.warning("node %r could not be trimmed now: %s", self._node.name, error)
        self._next()

    def _noted(self, node: Node, bound: int) -> None:
        context = self._context

        def trim() -> None:
            context.log.control.trim(node.topic, node.partition, bound, context.limits.control_deadline_s)

        context.worker.submit(trim, lambda error: self._next() if error is None else self._failed(error))
