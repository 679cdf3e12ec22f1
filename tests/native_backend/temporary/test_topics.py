"""Topics of temporary nodes: few calls for many, no one waits where there are topics ahead, none stays behind."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError, Topic, TopicSpec
from native_backend.log.simulated.worker import InlineWorker
from native_backend.state.mistakes import Mistakes
from native_backend.state.timers import Timers
from native_backend.temporary.topics import CALL_MAX, TemporaryTopics

LIMITS = RealmLimits()


class FakeLog:
    """A log that keeps what it was asked, and a clock that is set."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.deleted: list[int] = []
        self.there: set[str] = set()
        self.failures: list[Failure] = []
        self.now_s = 0.0
        self.worker = InlineWorker()
        clock: Any = SimpleNamespace(monotonic_s=lambda: self.now_s)
        self.timers = Timers(clock, Mistakes(clock))
        parts: Any = SimpleNamespace(log=self, clock=clock, worker=self.worker, limits=LIMITS, timers=self.timers)
        self.topics = TemporaryTopics(cast(Any, parts), "r.temporary.")
        self.taken: list[Topic | LogError] = []

    @property
    def control(self) -> FakeLog:
        """The realm asks it nothing but control calls here."""
        return self

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float) -> list[Topic]:
        self.made.append(len(specs))
        if self.failures:
            raise LogError(self.failures.pop())
        self.there |= {spec.name for spec in specs}
        return [Topic(spec.name, b"\x07" * 16, 1) for spec in specs]

    def delete_topics(self, names: Sequence[str], deadline_s: float) -> None:
        self.deleted.append(len(names))
        self.there -= set(names)

    def take(self, count: int) -> None:
        for _ in range(count):
            self.topics.take(self.taken.append)

    def settle(self) -> None:
        while self.worker.completed():
            pass


def test_who_waits_at_one_time_is_served_by_one_call_and_more_are_made_ahead() -> None:
    fake = FakeLog()
    fake.take(1 + 10)  # the call for the first has begun when the others come
    assert fake.taken == []
    fake.settle()
    assert len({topic.name for topic in fake.taken if isinstance(topic, Topic)}) == 11
    least = LIMITS.temporary_topics
    assert fake.made == [1 + least, 10 - least + 2 * least]
    fake.take(least)
    assert len(fake.taken) == 11 + least  # at once
    assert len(fake.made) == 3  # and half of them are made anew, in one call
    fake.settle()
    assert len(fake.there) - len(fake.taken) == 2 * least


def test_no_more_are_made_ahead_than_the_limit_and_no_call_is_larger_than_it_may_be() -> None:
    fake = FakeLog()
    for _ in range(10):
        fake.take(100)
        fake.settle()
    assert len(fake.taken) == 1000
    assert max(fake.made) <= CALL_MAX
    assert len(fake.there) - 1000 <= LIMITS.temporary_topics_max


def test_what_is_dropped_within_a_second_goes_in_one_call() -> None:
    fake = FakeLog()
    fake.take(7)
    fake.settle()
    for topic in fake.taken[:5]:
        assert isinstance(topic, Topic)
        fake.topics.drop(topic.name)
        fake.timers.run()
    assert fake.deleted == []
    fake.now_s += LIMITS.temporary_drop_s
    fake.timers.run()
    fake.topics.drop("r.temporary.later")
    fake.timers.run()
    fake.settle()
    assert fake.deleted == [5]
    fake.now_s += LIMITS.temporary_drop_s
    fake.timers.run()
    assert fake.deleted == [5, 1]


def test_a_call_is_full_before_its_time() -> None:
    fake = FakeLog()
    for number in range(CALL_MAX + 1):
        fake.topics.drop(f"r.temporary.{number}")
    fake.timers.run()
    assert fake.deleted == [CALL_MAX]


def test_a_failure_reaches_those_who_waited_for_that_call() -> None:
    fake = FakeLog()
    fake.failures = [Failure("unavailable", "away")]
    fake.take(3)
    fake.settle()
    assert [type(outcome) for outcome in fake.taken] == [LogError, Topic, Topic]


def test_in_the_end_no_topic_is_left() -> None:
    fake = FakeLog()
    fake.take(3)
    fake.worker.completed()  # the first is served; a call for the others is under way
    mine = [topic.name for topic in fake.taken if isinstance(topic, Topic)]
    fake.topics.drop(mine[0])
    fake.topics.close()
    fake.topics.drop(mine[1])
    fake.settle()
    assert fake.there == set(mine[2:])
