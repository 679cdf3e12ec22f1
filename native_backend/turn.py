"""One turn of a realm: what its workers have answered, what is due by the clock, what the log has answered, then the
links that wait.

A mistake of ours in one step ends that step; the others go on (`Mistakes`, ADR 0091).
"""

from __future__ import annotations

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import Appended, Transacted
from native_backend.log.worker import Workers
from native_backend.publish.diagnosis import Diagnosis
from native_backend.publish.publisher import Publisher
from native_backend.state.mistakes import Step, Steps


class Turn:
    """Of one realm. A process that stood still first takes the answers of its workers and looks at its lease, which
    may have lapsed."""

    def __init__(self, context: RealmContext, workers: Workers, publisher: Publisher, diagnosis: Diagnosis) -> None:
        self._context, self._publisher, self._diagnosis = context, publisher, diagnosis
        for part in (context.journal, context.windows, context.wait_lists):
            part.on_mistake = lambda what: context.mistakes.note(what)
        self._steps = Steps(
            *[Step("answers of a worker", worker.completed) for worker in workers.each()],
            Step("timers", context.timers.run),
            Step("answers of the log", self._complete),
            Step("journal", context.journal.advance),
            Step("links", self._wake_links),
        )

    def take(self) -> None:
        self._context.windows.turn += 1
        self._context.mistakes.take(self._steps)

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

    def _wake_links(self) -> None:
        """Those that parked, where there may be something for them now."""
        context, wait_lists = self._context, self._context.wait_lists
        context.windows.look()
        if wait_lists.has_timers:
            wait_lists.notify_due(context.clock.epoch_us() // 1000)
        if wait_lists.pending:
            wait_lists.wake_some()
