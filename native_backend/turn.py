"""One turn of a realm: what its workers and its log have answered, then what is due, then the links that wait.

A mistake of ours in one step ends that step; the others go on (`Mistakes`, ADR 0091).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import Appended, Transacted
from native_backend.log.worker import Workers
from native_backend.publish.attestation import Attestation
from native_backend.publish.diagnosis import Diagnosis
from native_backend.publish.publisher import Publisher
from native_backend.state.mistakes import Step, Steps

Part = tuple[str, Callable[[], None]]

_LOOK_S = 0.001
"""The turns of a busy gateway follow each other within a fifth of this. What looks at the clock finds nothing to do in
nearly all of them, and together that takes a twentieth of what a message costs. A process that stood still looks first
whether its lease has lapsed, for more time than this has passed then."""


class Turn:
    """Of one realm. Parts by their names: `every`, those that look in every turn whether they have something to do;
    `timed`, those that are due by the clock alone, which look once in `_LOOK_S`, or in every turn where turns are
    rarer. None while closing, which waits for everything that was begun."""

    def __init__(
        self,
        context: RealmContext,
        workers: Workers,
        publisher: Publisher,
        diagnosis: Diagnosis,
        attestation: Attestation,
        every: Iterable[Part],
        timed: Iterable[Part],
    ) -> None:
        self._context, self._publisher = context, publisher
        self._diagnosis, self._attestation = diagnosis, attestation
        self._closing = False
        self._looked_s = 0.0  # when the timed ones looked last
        for part in (context.journal, context.windows, context.wait_lists):
            part.on_mistake = lambda what: context.mistakes.note(what)
        of_workers = [Step("answers of a worker", worker.completed) for worker in workers.each()]
        lease = Step("lease", self._look_at_lease)
        log = [Step("answers of the log", self._complete), Step("journal", self._journal)]
        links = [Step("publisher", publisher.advance), Step("links", self._wake_links)]
        in_every, when_due = ([Step(*part, False) for part in parts] for parts in (every, timed))
        self._steps = Steps(*of_workers, lease, *log, *in_every, *when_due, *links)
        self._steps_between = Steps(*of_workers, *log, *in_every, *links)
        self._last_steps = Steps(*of_workers, lease, *log, *links)

    def take(self, *, closing: bool) -> None:
        context, self._closing = self._context, closing
        context.windows.turn += 1
        if closing:
            context.mistakes.take(self._last_steps)
            return
        now_s = context.clock.monotonic_s()
        if 0.0 < now_s - self._looked_s < _LOOK_S:
            context.mistakes.take(self._steps_between)
            return
        self._looked_s = now_s
        context.mistakes.take(self._steps)

    def _look_at_lease(self) -> None:
        context = self._context
        context.lease.advance()
        if context.lease.lost and not context.journal.fenced:
            context.journal.give_up("fenced", "fenced")

    def _complete(self) -> None:
        for completion in self._context.log.poll():
            try:
                self._completed(completion)
            except Exception:
                self._context.mistakes.note("an answer of the log could not be processed")

    def _completed(self, completion: Appended | Transacted) -> None:
        if completion.failure is not None or self._diagnosis.failing:
            self._diagnosis.saw(completion)
        if isinstance(completion, Appended):
            self._publisher.completed(completion)
        else:
            self._context.journal.completed(completion)

    def _journal(self) -> None:
        self._attestation.advance(self._closing)
        self._context.journal.advance()

    def _wake_links(self) -> None:
        """Those that parked, where there may be something for them now."""
        context, wait_lists = self._context, self._context.wait_lists
        context.windows.look()
        if wait_lists.has_timers:
            wait_lists.notify_due(context.clock.epoch_us() // 1000)
        if wait_lists.pending:
            wait_lists.wake_some()
