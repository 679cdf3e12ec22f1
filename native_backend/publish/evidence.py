"""The gateway's evidence on its way to the log: no peer waits for it, and it is not lost because a disk was full.

A record that is certainly not stored is kept, and what comes behind it too, so that the order stays; one at a time is
tried again, and when it is stored all others follow. A record of unknown result is not: twice is no evidence either.
Octets, counts, monotonic seconds.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import Append, Appended, Failure
from native_backend.state.durations import Durations

_LOG = logging.getLogger(__name__)
ALARM = "evidence not stored"
_NOT_NOW = ("unavailable", "capacity-reached")  # certainly not stored; it may be later


@dataclass(slots=True, eq=False)
class Record:
    """The owner of its append."""

    topic: str
    key: bytes
    value: bytes
    began_s: float
    number: int  # of its topic's records, from 1: an outcome record's `n`


class Evidence:
    """See the module's docstring. `limits.evidence_bytes` bounds what is kept."""

    def __init__(self, context: RealmContext) -> None:
        self.pending = 0  # records that are neither stored nor given up
        self.failed = 0  # records that were given up, ever
        self.seconds = Durations()  # of stored records, from the first hand-over
        self.stored: Counter[str] = Counter()  # by topic, the highest number that is stored
        self._numbers: Counter[str] = Counter()
        self._context = context
        self._kept: deque[Record] = deque()
        self._kept_bytes = 0
        self._tried: Record | None = None  # of those kept, the one that is tried again
        self._timer = context.timers.timer("evidence", self._try, ends=True, is_needed=True)
        self.on_stored: Callable[[], None] = lambda: None
        self._stored_s = 0.0  # when something was stored last, or began to wait for that

    @property
    def stalled_s(self) -> float:
        """How long records have waited without any of them being stored; 0: none waits."""
        return self._context.clock.monotonic_s() - self._stored_s if self.pending else 0.0

    def append(self, topic: str, key: bytes, value: bytes) -> None:
        if not self.pending:
            self._stored_s = self._context.clock.monotonic_s()
        self.pending += 1
        name, began_s = f"{self._context.prefix}.{topic}", self._context.clock.monotonic_s()
        self._numbers[name] += 1
        record = Record(name, key, value, began_s, self._numbers[name])
        if self._kept or self._tried is not None:
            self._keep(record)
        else:
            self._submit(record)

    def _submit(self, record: Record) -> None:
        self._context.log.append(Append(record.topic, 0, [record.key], [record.value], record, aside=True))

    def _keep(self, record: Record) -> None:
        if self._kept_bytes + len(record.value) > self._context.limits.evidence_bytes:
            self._give_up(record, "there is no room to keep it")
            return
        self._kept.append(record)
        self._kept_bytes += len(record.value)

    def _take_back(self) -> Record:
        record = self._kept.popleft()
        self._kept_bytes -= len(record.value)
        return record

    def completed(self, record: Record, appended: Appended) -> None:
        was_tried = record is self._tried
        if was_tried:
            self._tried = None
        failure = appended.failure
        if failure is not None and failure.cause in _NOT_NOW:
            self._refused(record, failure, was_tried)
            return
        if failure is None:
            self.pending -= 1
            self._stored_s = self._context.clock.monotonic_s()
            self.stored[record.topic] = max(self.stored[record.topic], record.number)
            self.seconds.add(self._stored_s - record.began_s)
            self.on_stored()
        else:
            self._give_up(record, str(failure))
        if was_tried:
            while self._kept:
                self._submit(self._take_back())

    def _refused(self, record: Record, failure: Failure, was_tried: bool) -> None:
        """Certainly not stored; it may be later."""
        if was_tried:
            self._kept.appendleft(record)
            self._kept_bytes += len(record.value)
        else:
            if not self._kept:
                _LOG.warning("evidence waits for %s: %s", record.topic, failure)
            self._keep(record)
        self._timer.after(self._context.limits.retry_interval_s)

    def _try(self) -> None:
        if self._kept and self._tried is None:
            self._tried = self._take_back()
            self._submit(self._tried)

    def close(self) -> None:
        """The gateway ends: give up what is still not stored."""
        while self._kept:
            self._give_up(self._take_back(), "the gateway ends")

    def _give_up(self, record: Record, why: str) -> None:
        self.pending -= 1
        self.failed += 1
        self._context.alarms[ALARM] += 1
        _LOG.error("a record of %s was not stored: %s", record.topic, why)
