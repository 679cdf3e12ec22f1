"""Looks what keeps the realm as a whole from its work: the log takes no records, does not answer, the lease has lapsed,
evidence waits.

What the log says of the realm's own records is heard of as it comes (`saw`); where nothing of them is under way, a
record of the lease is written to learn that the log takes them again. Monotonic seconds.
"""

from __future__ import annotations

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import Appended, Completion, Failure, LogError
from native_backend.publish.evidence import Evidence, Record

_OF_ITS_OWN = ("fenced", "not-found", "too-large", "invalid", "indeterminate", "retention")
"""Causes for which one record or transaction fails although the log takes others."""
_OF_THE_TOPIC = (*_OF_ITS_OWN, "refused", "unexpected")
"""The same of a record of evidence, whose topic is no other's."""


class Diagnosis:
    """See the module's docstring."""

    def __init__(self, context: RealmContext, evidence: Evidence) -> None:
        self._context, self._evidence = context, evidence
        self._timer = context.timers.timer("diagnosis", self._look)
        self._timer.soon()
        self._probe_s = 0.0
        self._probing = False
        self._refuses = False  # the log: records of the realm's own
        self._refuses_evidence = False
        self.failing = False  # either

    def saw(self, completion: Completion) -> None:
        """A completion that failed, or any while `failing`."""
        failure = completion.failure
        if isinstance(completion, Appended):
            if type(completion.batch.owner) is Record:
                self._saw_evidence(failure)
        elif failure is None:
            self._took()
        elif failure.cause not in _OF_ITS_OWN:
            self._refused(failure)

    def _saw_evidence(self, failure: Failure | None) -> None:
        troubles = self._context.troubles
        if failure is None:
            self._refuses_evidence = False
            troubles.end("evidence-refused")
            self._took()
        elif failure.cause in _OF_THE_TOPIC:
            self.failing = self._refuses_evidence = True
            troubles.begin("evidence-refused", _words(failure))
        else:
            self._refused(failure)

    def _took(self) -> None:
        self._refuses = False
        self.failing = self._refuses_evidence
        self._context.troubles.end("cannot-write")

    def _refused(self, failure: Failure) -> None:
        self.failing = self._refuses = True
        self._probe_s = self._context.clock.monotonic_s() + self._context.limits.diagnosis_probe_s
        self._context.troubles.begin("cannot-write", _words(failure))

    def _look(self) -> None:
        context = self._context
        now_s = context.clock.monotonic_s()
        self._timer.at(now_s + context.limits.diagnosis_s)
        self._look_at_lease()
        waits_s = self._evidence.stalled_s
        if waits_s >= context.limits.evidence_stalled_s:
            detail = f"{self._evidence.pending} records wait to be stored, for {waits_s:.0f} s"
            context.troubles.begin("evidence-waits", detail)
        else:
            context.troubles.end("evidence-waits")
        under_way = self._evidence.pending or context.journal.busy
        if self._refuses and not under_way and not self._probing and now_s >= self._probe_s:
            self._probing = True
            context.lease.prove(self._proved)

    def _look_at_lease(self) -> None:
        lease, troubles = self._context.lease, self._context.troubles
        if lease.failure is not None:
            troubles.begin("log-unreachable", _words(lease.failure))
        else:
            troubles.end("log-unreachable")
        if lease.held or lease.lost:
            troubles.end("lease-lapsed")
        else:
            why = f" ({_words(lease.failure)})" if lease.failure is not None else ""
            troubles.begin("lease-lapsed", f"the log has not answered for {lease.unanswered_s:.0f} s{why}")

    def _proved(self, result: int | LogError) -> None:
        self._probing = False
        if isinstance(result, LogError):
            self._refused(result.failure)
        else:
            self._took()


def _words(failure: Failure) -> str:
    return ": ".join(word for word in (failure.code or failure.cause, failure.detail) if word)[:300]
