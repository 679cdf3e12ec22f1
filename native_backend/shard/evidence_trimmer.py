"""Evidence, journal and history leave the log when their time is over: outcome records older than `limits.evidence_s`,
of the journal what is older still and what no snapshot needs, records of the history older than `limits.history_s`.

Outcome records go when there are younger ones: those say from where on reconciliation can judge. The journal follows
them, `_LONGER_S` behind (where evidence is kept for less, as long again), so that what an outcome record tells of is
there while that is, however late it was written. A process that lost the shard and does not know it yet takes nothing
that another one needs: snapshots only move forward. Nothing is noted: the first offset that is kept tells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import Log, LogError, TopicPartition
from native_backend.log.time_search import first_at
from native_backend.nodes.words import history_topic

_LOG = logging.getLogger(__name__)
_LONGER_S = 3600.0
Needed = Callable[[], int | None]
"""Recovery reads the journal from here; None: that is not known, or about to change."""


class EvidenceTrimmer:
    """See the module's docstring. Looks every `limits.trim_interval_s`, at most a thousand times in a record's life."""

    def __init__(self, context: RealmContext, needed: Needed) -> None:
        self._context, self._needed = context, needed
        self._interval_s = max(context.limits.trim_interval_s, context.limits.evidence_s / 1000)
        self._timer = context.timers.timer("old evidence", self._look)
        self._timer.after(self._interval_s)

    def _look(self) -> None:
        context = self._context
        if context.journal.fenced:
            return
        needed, evidence_s = self._needed(), context.limits.evidence_s
        now_ms = context.clock.epoch_us() // 1000
        before_ms = now_ms - round(evidence_s * 1000)
        longer_ms = round(min(_LONGER_S, evidence_s) * 1000)
        outcomes, journal = (f"{context.prefix}.outcomes", 0), (context.journal.topic, 0)
        history, history_before_ms = (history_topic(context.prefix), 0), now_ms - round(context.limits.history_s * 1000)
        log, deadline_s = context.log, context.limits.control_deadline_s

        def job() -> None:
            _trim_old(log, history, history_before_ms, deadline_s)
            if _trim_old(log, outcomes, before_ms, deadline_s) and needed is not None:
                first, _ = log.control.bounds(*journal, deadline_s)
                bound = _bound(log, journal, first, needed, before_ms - longer_ms, deadline_s)
                if bound > first:
                    trim(log, journal, bound, deadline_s)

        context.worker.submit(job, self._looked)

    def _looked(self, error: LogError | None) -> None:
        self._timer.after(self._interval_s)
        if error is not None:
            _LOG.warning("old evidence could not be trimmed now: %s", error)


def _trim_old(log: Log, place: TopicPartition, before_ms: int, deadline_s: float) -> bool:
    """Whether all that is kept now is young. Blocks; raises LogError."""
    first, end = log.control.bounds(*place, deadline_s)
    bound = _bound(log, place, first, end, before_ms, deadline_s)
    if bound == first:
        return True
    if not log.control.read_range(*place, bound, 1, deadline_s).offsets:
        return False
    trim(log, place, bound, deadline_s)
    return True


def trim(log: Log, place: TopicPartition, bound: int, deadline_s: float) -> None:
    """The log lets go of what lies below `bound`; nothing else says so."""
    log.control.trim(*place, bound, deadline_s)


def _bound(log: Log, place: TopicPartition, first: int, end: int, before_ms: int, deadline_s: float) -> int:
    """What lies below it, and below `end`, was stored at or before `before_ms`. Blocks; raises LogError."""
    oldest = log.control.read_range(*place, first, 1, deadline_s)
    if not oldest.offsets or oldest.timestamps_ms[0] > before_ms:
        return first  # as nearly always
    return first_at(log, *place, (first, end), before_ms + 1, deadline_s)
