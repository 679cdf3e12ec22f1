"""Which group offsets are committed again, and which are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

from native_backend.dispatch.context import RealmContext
from native_backend.events.message_counts import MessageCounts, Tally
from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError
from native_backend.shard.depths import Depths
from native_backend.shard.group_offset_writer import GroupOffsetWriter
from native_backend.state.ack_state import AckState
from native_backend.state.mistakes import Mistakes
from native_backend.state.timers import Timers


class Setup:
    """One durable without messages, and a control thread whose jobs run when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.committed: list[str] = []
        self.deleted: list[str] = []
        self.failure: Failure | None = None
        self.now_s = 0.0
        self.places = 1
        durable = SimpleNamespace(group="g")
        depths = SimpleNamespace(
            durables=lambda: [(self._node(partition), durable) for partition in range(self.places)],
            version=lambda *_: (1, 1),
            steps=self._steps,
            state=lambda _: AckState(5),
            is_kept=lambda *_: True,
        )
        control = SimpleNamespace(project=self._project, forget=lambda group, _: self.deleted.append(group))
        clock: Any = SimpleNamespace(monotonic_s=lambda: self.now_s)
        self.timers = Timers(clock, Mistakes(clock))
        services = SimpleNamespace(
            timers=self.timers,
            limits=RealmLimits(),
            journal=SimpleNamespace(next=1, fenced=False),
            log=SimpleNamespace(control=control),
            clock=clock,
            projections=SimpleNamespace(submit=lambda job, done: self.jobs.append((job, done))),
        )
        self.projector = GroupOffsetWriter(cast(RealmContext, services), cast(Depths, depths))

    def _node(self, partition: int) -> SimpleNamespace:
        return SimpleNamespace(topic="t", partition=partition, temporary=False)

    def _project(self, group: str, *_: object) -> None:
        self.committed.append(group)
        if self.failure is not None:
            raise LogError(self.failure)

    def _steps(self, *_: object) -> Iterator[Tally]:
        yield Tally(MessageCounts(0, 0, 0, 0), 5)

    def begin(self) -> None:
        """A round; what it commits waits for `end`."""
        self.now_s += 10.0
        for _ in range(5):
            self.timers.run()

    def end(self) -> None:
        while self.jobs:
            job, done = self.jobs.pop(0)
            done(job())


def test_what_is_shown_is_not_committed_again() -> None:
    setup = Setup()
    for _ in range(3):
        setup.begin()
        setup.end()
    assert setup.committed == ["g"]


def test_a_group_that_was_deleted_while_it_was_committed_is_made_anew() -> None:
    setup = Setup()
    setup.begin()
    setup.projector.forget("g")
    setup.end()
    setup.begin()
    setup.end()
    assert setup.committed == ["g", "g"], "the durable that follows has the same numbers"
    assert setup.deleted == ["g"], "the commit may have made it again"


def test_a_coordinator_without_an_answer_is_asked_once_a_round() -> None:
    setup = Setup()
    setup.places = 5
    setup.failure = Failure("unavailable", "no answer within 10 s")
    setup.begin()
    setup.end()
    assert setup.committed == ["g"]
    setup.failure = None
    setup.begin()
    setup.end()
    assert setup.committed == ["g"] * 6


def test_a_queue_that_is_made_anew_is_shown_anew() -> None:
    setup = Setup()
    setup.begin()
    setup.end()
    setup.projector.forget_topic("other")
    setup.projector.forget_topic("t")
    setup.begin()
    setup.end()
    assert setup.committed == ["g", "g"]
    setup.projector.forget("g")
    setup.projector.forget_topic("t")
