"""The lease: this process may give out the shard's events for `lease_s` from each look that found it to be the owner.

The owner reads `<prefix>.lease` every `lease_look_s`, and writes only to answer a question. A process that wants the
shard takes it when it is free or when it can see that the owner's process has ended. Else it writes a question, and
takes the shard when no answer came for `lease_s`, counted while the log could be read. The owner counts from the
beginning of its look and the other from the end of its question, so the owner has stopped by then, whatever the two
clocks show. Beneath it the log's claim fences: a lease keeps two processes from giving out the same events, the fence
keeps the journal true.

Blocking calls raise LogError, `fenced` when another process owns the shard. Intervals are seconds of the monotonic
clock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

from native_backend.clock import Clock
from native_backend.journal.lease_records import LeaseRecords, What, encode_lease, lease_topic
from native_backend.journal.process_liveness import Process, ProcessLiveness
from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, Log, LogError
from native_backend.log.worker import Worker
from native_backend.state.timers import Timers

_LOG = logging.getLogger(__name__)
_TRIM_RECORDS = 100
_CALL_S = 2.0  # for one call at least
_STEP_S = 0.1  # between two looks of a process that waits


class Owner:
    """Who owns the shard: `str()` is for an operator."""

    def __init__(self, run: str, process: Process) -> None:
        self.run = run
        self.process = process

    def __str__(self) -> str:
        where = f"process {self.process.get('pid', '?')} on {self.process.get('host', '?')}"
        return f"gateway {self.run} ({where})"


Standby = Callable[[Owner], None]  # told once of each owner who makes it wait


class Lease:
    """One process's claim to be the owner. `release`, `acquire` and `confirm` block."""

    def __init__(
        self,
        log: Log,
        prefix: str,
        run: str,
        clock: Clock,
        worker: Worker,
        limits: RealmLimits,
        liveness: ProcessLiveness,
        timers: Timers,
        trims: Worker,
    ) -> None:
        """`trims`: where the topic is trimmed, so that no look waits for that."""
        self.lost = False
        self.on_lost: Callable[[], None] = lambda: None
        self._timer = timers.timer("lease", self._advance, ends=True, is_needed=True)
        self._log, self._prefix, self._run, self._clock, self._worker = log, prefix, run, clock, worker
        self._limits, self._liveness = limits, liveness
        self._records = LeaseRecords()
        self._deadline_s = limits.control_deadline_s  # of one call; once there is a lease to be lost, a part of it
        self._began_s = float("-inf")  # of the last look that found us to be the owner
        self._was_held = False  # as of the last turn
        self._looking = False
        self._trims, self._trimming = trims, False
        self._look_s = 0.0  # when to look again
        self.failure: Failure | None = None  # since the last look that went well

    # -- blocking, before the first turn

    def acquire(self, standby: Standby | None) -> None:
        """Become the owner, of a realm whose topics exist. While another one lives: wait, or without `standby` raise
        `fenced`."""
        named = ""
        while not self._try():
            owner = self._answered()
            if owner is None:
                continue
            if standby is None:
                raise LogError(Failure("fenced", f"{owner} owns the realm"))
            if named != owner.run:
                named = owner.run
                standby(owner)

    def _try(self) -> bool:
        """Take it if it is free."""
        began_s = self._read()
        if self._records.run != self._run and self._is_free():
            self._take()
            began_s = self._read()
        if self._records.run != self._run:
            return False
        self._began_s, self._was_held, self.lost = began_s, True, False
        self._timer.soon()
        self._deadline_s = min(self._limits.control_deadline_s, max(self._limits.lease_s / 2, _CALL_S))
        return True

    def _answered(self, *, take: bool = True) -> Owner | None:
        """Ask the owner and wait: for its answer, for its end, or for the lease to lapse, and then take it."""
        records = self._records
        question = self._put("ask")
        since_s = self._clock.monotonic_s()
        while True:
            self._worker.pause(_STEP_S)
            began_s = self._read()
            if self._is_free() or records.run == self._run:
                return None
            if records.at > question:
                return Owner(records.run, records.process)
            if began_s - since_s >= records.lease_s:
                if take:
                    _LOG.warning("%s gave no sign of life", Owner(records.run, records.process))
                    self._take()
                return None

    def _is_free(self) -> bool:
        return self._records.free or self._liveness.gone(self._records.process)

    def _take(self) -> None:
        self._put("take")

    # -- turns

    @property
    def held(self) -> bool:
        """Events may be given out. Asked of the clock each time: a process that was stopped for longer than its lease
        may find a peer's credit waiting for it, before its first turn."""
        return not self.lost and self._clock.monotonic_s() < self._began_s + self._limits.lease_s

    @property
    def term(self) -> int:
        """How many owners the shard has had, this one among them."""
        return self._records.term

    def _advance(self) -> None:
        """Look, when it is time to; and say so when the lease lapsed or is held again."""
        if self.lost:
            self.on_lost()
            return
        now_s = self._clock.monotonic_s()
        if not self._looking and now_s >= self._look_s:
            self._looking, self._look_s = True, now_s + self._limits.lease_look_s
            self._worker.submit(self._look, self._looked)
        held = self.held
        if held != self._was_held:
            _LOG.warning("the lease is held" if held else "the lease lapsed: no delivery until it is held")
        self._was_held = held
        if not self._looking:
            self._timer.by(self._look_s)
        if held:
            self._timer.by(self._began_s + self._limits.lease_s)  # it lapses

    @property
    def unanswered_s(self) -> float:
        """Since the beginning of the last look that went well."""
        return max(0.0, self._clock.monotonic_s() - self._began_s)

    def prove(self, done: Callable[[int | LogError], None]) -> None:
        """Have a sign of life written, to learn whether the log takes records."""
        self._worker.submit(lambda: self._put("hold"), done)

    def keep(self) -> AbstractContextManager[None]:
        """Held while this thread is busy, with recovery."""
        return self._worker.repeated(self._look, self._learn, self._limits.lease_look_s)

    def _look(self) -> float:
        """Read on; answer who asked; when it began, if all that worked. Runs where the worker runs jobs."""
        records = self._records
        began_s = self._read()
        if records.run == self._run and records.asked > records.at:
            self._put("hold")
        return began_s

    def _looked(self, began_s: float | LogError) -> None:
        self._looking = False
        self._timer.soon()
        self._learn(began_s)
        if self._records.records > _TRIM_RECORDS and self._records.run == self._run and not self._trimming:
            self._trim(self._records.at)

    def _trim(self, before: int) -> None:
        """Let go of what lies below a record of ours. The lease does not depend on it: where it fails, it is tried
        again with so many records more."""
        self._trimming, self._records.records = True, 0

        def trimmed(error: LogError | None) -> None:
            self._trimming = False
            if error is not None:
                _LOG.warning("the lease's topic could not be trimmed now: %s", error)

        self._trims.submit(
            lambda: self._log.control.trim(lease_topic(self._prefix), 0, before, self._deadline_s), trimmed
        )

    def _learn(self, began_s: float | LogError) -> None:
        """Also on another thread, before the first turn."""
        failure = began_s.failure if isinstance(began_s, LogError) else None
        self.failure = (self.failure or failure) if failure is not None else None  # what came first says most
        if isinstance(began_s, LogError):
            _LOG.debug("cannot look at the lease: %s", began_s)  # said as a trouble, once
        elif self._records.run != self._run:
            self.lost = True
        else:
            self._began_s = began_s

    # -- blocking, from any thread

    def confirm(self, deadline_s: float | None = None) -> None:
        """Read anew whether this process is still the owner; raises `fenced` when it is not. None: it has the time of
        a call while there is a lease to be lost."""
        records = LeaseRecords()
        records.read(self._log, self._prefix, deadline_s or self._deadline_s)
        if records.run != self._run:
            raise LogError(Failure("fenced", f"{Owner(records.run, records.process)} took over the realm"))

    def release(self) -> None:
        """Hand over at once. A failure is logged: the lease lapses."""
        try:
            self._read()
            if self._records.run == self._run:
                self._put("release")
        except LogError as error:
            _LOG.warning("the lease is not released, it lapses in %s s: %s", self._limits.lease_s, error)

    # -- the log

    def _read(self) -> float:
        """Read on to the end; when that began."""
        began_s = self._clock.monotonic_s()
        self._records.read(self._log, self._prefix, self._deadline_s)
        return began_s

    def _put(self, what: What) -> int:
        now_us, lease_s = self._clock.epoch_us(), self._limits.lease_s
        value = encode_lease(what, self._records, self._run, self._liveness.this_process(), now_us, lease_s)
        return self._log.control.put(lease_topic(self._prefix), self._run.encode(), value, self._deadline_s)
