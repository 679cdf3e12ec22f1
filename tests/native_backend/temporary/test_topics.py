"""Topics of temporary nodes: few calls for many, nobody waits where there are topics ahead, none stays behind."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from native_backend.control import InlineControl
from native_backend.limits import RealmLimits
from native_backend.log import Failure, LogError, Topic, TopicSpec
from native_backend.services import Services
from native_backend.temporary_topics import CALL_MAX, TemporaryTopics

LIMITS = RealmLimits()


class Ground:
    """A log that keeps what it was asked, and a clock that is set."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.deleted: list[int] = []
        self.there: set[str] = set()
        self.failures: list[Failure] = []
        self.now_s = 0.0
        self.control = InlineControl()
        parts: Any = SimpleNamespace(
            log=self, clock=SimpleNamespace(monotonic_s=lambda: self.now_s), control=self.control, limits=LIMITS
        )
        self.topics = TemporaryTopics(cast("Services", parts), "r.temporary.")
        self.taken: list[Topic | LogError] = []

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
        while self.control.completed():
            pass


def test_who_waits_at_one_time_is_served_by_one_call_and_more_are_made_ahead() -> None:
    ground = Ground()
    ground.take(1 + 10)  # the call for the first has begun when the others come
    assert ground.taken == []
    ground.settle()
    assert len({topic.name for topic in ground.taken if isinstance(topic, Topic)}) == 11
    least = LIMITS.temporary_topics
    assert ground.made == [1 + least, 10 - least + 2 * least]
    ground.take(least)
    assert len(ground.taken) == 11 + least  # at once
    assert len(ground.made) == 3  # and half of them are made anew, in one call
    ground.settle()
    assert len(ground.there) - len(ground.taken) == 2 * least


def test_no_more_are_made_ahead_than_the_limit_and_no_call_is_larger_than_it_may_be() -> None:
    ground = Ground()
    for _ in range(10):
        ground.take(100)
        ground.settle()
    assert len(ground.taken) == 1000
    assert max(ground.made) <= CALL_MAX
    assert len(ground.there) - 1000 <= LIMITS.temporary_topics_max


def test_what_is_dropped_within_a_second_goes_in_one_call() -> None:
    ground = Ground()
    ground.take(7)
    ground.settle()
    for topic in ground.taken[:5]:
        assert isinstance(topic, Topic)
        ground.topics.drop(topic.name)
        ground.topics.advance()
    assert ground.deleted == []
    ground.now_s += LIMITS.temporary_drop_s
    ground.topics.advance()
    ground.topics.drop("r.temporary.later")
    ground.topics.advance()
    ground.settle()
    assert ground.deleted == [5]
    ground.now_s += LIMITS.temporary_drop_s
    ground.topics.advance()
    assert ground.deleted == [5, 1]


def test_a_call_is_full_before_its_time() -> None:
    ground = Ground()
    for number in range(CALL_MAX + 1):
        ground.topics.drop(f"r.temporary.{number}")
    ground.topics.advance()
    assert ground.deleted == [CALL_MAX]


def test_a_failure_is_told_to_those_who_waited_for_that_call() -> None:
    ground = Ground()
    ground.failures = [Failure("unavailable", "away")]
    ground.take(3)
    ground.settle()
    assert [type(each) for each in ground.taken] == [LogError, Topic, Topic]


def test_in_the_end_no_topic_is_left() -> None:
    ground = Ground()
    ground.take(3)
    ground.control.completed()  # the first is served; a call for the others is under way
    mine = [topic.name for topic in ground.taken if isinstance(topic, Topic)]
    ground.topics.drop(mine[0])
    ground.topics.close()
    ground.topics.drop(mine[1])
    ground.settle()
    assert ground.there == set(mine[2:])
