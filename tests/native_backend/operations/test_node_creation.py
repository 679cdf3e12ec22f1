"""Attaches that want the same node: how often it is created, and what each of them is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from native_backend.log.port import Failure, LogError, Records, Topic, TopicSpec
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.words import NodeKind
from tests.kit.realm.inside import context_of
from tests.kit.realm.other_control import OtherControl, answer_control
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld


class CreatingControl(OtherControl):
    """Counts the topics that are made, and lets that fail."""

    def __init__(self, log: Any) -> None:
        super().__init__(log.control)
        self.topics: list[str] = []
        self.failure: Exception | None = None
        self.reads: list[int] = []

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        if topic == "u.realm":
            self.reads.append(start)
        records: Records = self._control.read_range(topic, partition, start, count_max, deadline_s)
        return records

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        self.topics += [spec.name for spec in specs if ".node." in spec.name]
        if self.failure is not None:
            raise self.failure
        made: list[Topic] = self._control.create_topics(specs, deadline_s)
        return made


class Creating:
    """A realm whose creations are counted."""

    def __init__(self) -> None:
        self.process = RealmProcess(SimulatedWorld("simulated", seed=7), "u").open()
        self.control = CreatingControl(self.process.log)
        answer_control(self.process, self.control)

    def create(self, count: int, kind: NodeKind = "queue", name: str = "orders") -> list[object]:
        owners = [object() for _ in range(count)]
        for owner in owners:
            self.process.realm.create_node(name, kind, owner)
        return owners

    def answers(self, owners: list[object]) -> set[tuple[str, str, bool]]:
        """Of all of them: answer, native code, whether there is a node."""
        answers = [self.process.answer(NodeFound) for _ in owners]
        assert {id(answer.owner) for answer in answers} == {id(owner) for owner in owners}
        return {(answer.answer, answer.native, answer.node is not None) for answer in answers}


@pytest.fixture
def realm() -> Creating:
    return Creating()


def test_all_that_want_a_node_share_its_creation(realm: Creating) -> None:
    assert realm.answers(realm.create(160)) == {("ready", "", True)}
    assert len(realm.control.topics) == 1


def test_a_creation_reads_no_metadata_that_an_earlier_one_has_read(realm: Creating) -> None:
    assert realm.answers(realm.create(1)) == {("ready", "", True)}
    end = realm.process.log.control.bounds("u.realm", 0)[1]
    realm.control.reads.clear()
    assert realm.answers(realm.create(1, "channel")) == {("unexpected", "node-not-made", False)}, "of another kind"
    for name in ("letters", "prices", "orders"):
        assert realm.answers(realm.create(1, name=name)) == {("ready", "", True)}
    assert min(realm.control.reads) >= end
    assert len(realm.control.topics) == 3


def test_one_that_wants_another_kind_is_answered_by_itself(realm: Creating) -> None:
    queues, channels = realm.create(2), realm.create(2, "channel")
    answers = realm.answers(queues + channels)
    assert ("ready", "", True) in answers and ("unexpected", "node-not-made", False) in answers


def test_a_creation_that_fails_has_failed_for_all_and_the_next_is_another(realm: Creating) -> None:
    realm.control.failure = LogError(Failure("unavailable", "the broker is away", "BROKER_AWAY"))
    assert realm.answers(realm.create(5)) == {("unavailable", "BROKER_AWAY", False)}
    realm.control.failure = None
    assert realm.answers(realm.create(1)) == {("ready", "", True)}


def test_a_mistake_of_ours_is_answered_and_ends_the_creation(realm: Creating) -> None:
    del realm.process.realm.mistakes.note  # as while serving: they are noted
    realm.control.failure = KeyError("a mistake of ours")
    assert realm.answers(realm.create(5)) == {("unexpected", "node-not-made", False)}
    assert context_of(realm.process.realm).alarms["mistakes"] >= 1
    realm.control.failure = None
    assert realm.answers(realm.create(1)) == {("ready", "", True)}
