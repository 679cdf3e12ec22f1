"""Who asks for what the realm's metadata says now: how many looks that takes, who shares one, and how they fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError
from native_backend.nodes.admin import create_node, delete_node
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.metadata import realm_topic
from native_backend.nodes.node import Node
from tests.kit.patience import HANG_S
from tests.kit.realm.inside import context_of, looks_of
from tests.kit.realm.other_control import OtherControl, answer_control
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld, SqliteWorld, World

PREFIX = "u"
SELDOM = RealmLimits(metadata_interval_s=3600.0)  # by the clock


class CountingControl(OtherControl):
    """Counts the looks at the realm's metadata, and lets them fail."""

    def __init__(self, log: Any) -> None:
        super().__init__(log.control)
        self.count = 0
        self.failure: Exception | None = None

    def bounds(self, topic: str, partition: int, deadline_s: float = 10.0) -> tuple[int, int]:
        if topic == realm_topic(PREFIX):
            self.count += 1
            if self.failure is not None:
                raise self.failure
        bounds: tuple[int, int] = self._control.bounds(topic, partition, deadline_s)
        return bounds


class LookedAt:
    """A realm whose looks are counted."""

    def __init__(self, world: World) -> None:
        self.process = RealmProcess(world, PREFIX, SELDOM).open()
        self.process.until(lambda: not self.process.realm.busy, "the looks of the start")
        self.other = world.open()
        self.control = CountingControl(self.process.log)
        answer_control(self.process, self.control)

    def create(self, name: str) -> Node:
        """As another process does."""
        return create_node(self.other, PREFIX, name, "queue", self.process.clock)

    def ask(self, name: str = "orders", count: int = 1) -> list[object]:
        owners = [object() for _ in range(count)]
        for owner in owners:
            self.process.realm.find_node(name, owner)
        return owners

    def answers(self, owners: list[object]) -> list[NodeFound]:
        """In the order of asking."""
        by_owner = {id(answer.owner): answer for answer in (self.process.answer(NodeFound) for _ in owners)}
        return [by_owner[id(owner)] for owner in owners]

    def count_mistakes(self) -> None:
        """As while serving: they are noted."""
        del self.process.realm.mistakes.note

    @property
    def troubles(self) -> list[str]:
        return [trouble.kind for trouble in context_of(self.process.realm).troubles.present()]


@pytest.fixture
def realm() -> LookedAt:
    return LookedAt(SimulatedWorld("simulated", seed=7))


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[LookedAt]:
    """Its jobs have a thread of their own."""
    world = SqliteWorld(tmp_path)
    realm = LookedAt(world)
    yield realm
    realm.process.close()
    world.close()


def test_all_that_ask_during_a_look_share_the_next_one(realm: LookedAt) -> None:
    node = realm.create("orders")
    owners = realm.ask(count=200)
    assert realm.control.count == 1, "it has begun with the first"
    assert {(answer.answer, answer.node) for answer in realm.answers(owners)} == {("ready", node)}
    assert realm.control.count == 2
    assert realm.answers(realm.ask())[0].node == node
    assert realm.control.count == 3, "none is under way, so there is another one at once"


def test_what_was_stored_during_a_look_is_seen_by_who_asks_then(realm: LookedAt) -> None:
    early = realm.ask("late")
    node = realm.create("late")
    late = realm.ask("late", 3)
    assert [answer.node for answer in realm.answers(early + late)] == [None, node, node, node]


def test_who_asks_out_of_an_answer_sees_what_was_stored_before(realm: LookedAt) -> None:
    """A node is made in a job of the realm, and found by a look behind it."""
    owners = realm.ask(count=2)
    made = object()
    realm.process.realm.create_node("mine", "queue", made)
    realm.answers(owners)
    [answer] = realm.answers([made])
    assert answer.node is not None and answer.node.name == "mine"


def test_a_look_that_waits_for_the_worker_is_shared_by_all_that_ask_until_it_begins(threaded: LookedAt) -> None:
    free = threading.Event()
    worker = context_of(threaded.process.realm).worker
    worker.submit(lambda: free.wait(HANG_S), lambda _: None)
    owners = threaded.ask("late")
    node = threaded.create("late")
    owners += threaded.ask("late", 50)
    free.set()
    assert {answer.node for answer in threaded.answers(owners)} == {node}
    assert threaded.control.count == 1


def test_a_look_that_fails_has_failed_for_all_who_wait_and_the_next_is_another(realm: LookedAt) -> None:
    node = realm.create("orders")
    realm.control.failure = LogError(Failure("unavailable", "the broker is away", "BROKER_AWAY"))
    owners = realm.ask(count=20)
    answers = realm.answers(owners)
    assert {(answer.answer, answer.native, answer.node) for answer in answers} == {("unavailable", "BROKER_AWAY", None)}
    assert realm.control.count == 1 and realm.troubles == ["metadata-unread"]
    realm.control.failure = None
    assert [answer.node for answer in realm.answers(realm.ask())] == [node]
    assert not realm.troubles


@pytest.mark.parametrize("where", ["read", "fold"])
def test_a_mistake_of_ours_ends_a_look_as_a_failure_does(
    threaded: LookedAt, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the worker, or where it is taken in: all who wait are answered, and the next look is another."""
    node = threaded.create("orders")
    threaded.count_mistakes()
    metadata = context_of(threaded.process.realm).metadata
    if where == "read":
        threaded.control.failure = KeyError("a mistake of ours")
    else:
        monkeypatch.setattr(type(metadata), "fold", _mistaken)
    assert {answer.answer for answer in threaded.answers(threaded.ask(count=5))} == {"unexpected"}
    assert threaded.troubles == ["metadata-unread"]
    assert context_of(threaded.process.realm).alarms["mistakes"] >= 1
    threaded.control.failure = None
    monkeypatch.undo()
    assert [answer.node for answer in threaded.answers(threaded.ask())] == [node]
    assert not threaded.troubles


def _mistaken(*_: object) -> list[Node]:
    raise KeyError("a mistake of ours")


def test_a_mistake_with_one_deleted_node_spares_the_others_and_who_waits(realm: LookedAt) -> None:
    first, second = realm.create("first"), realm.create("second")
    assert realm.answers(realm.ask("second"))[0].node == second
    lost: list[str] = []
    realm.process.realm.on_deleted.append(_failing_at(first, lost))
    realm.count_mistakes()
    for node in (first, second):
        delete_node(realm.other, PREFIX, node.name)
    assert [answer.answer for answer in realm.answers(realm.ask("second", 2))] == ["ready", "ready"]
    assert lost == ["first", "second"] and context_of(realm.process.realm).alarms["mistakes"] == 1


def _failing_at(node: Node, lost: list[str]) -> Callable[[Node], None]:
    def hear(gone: Node) -> None:
        lost.append(gone.name)
        if gone.name == node.name:
            raise KeyError("a mistake of ours")

    return hear


def test_a_mistake_of_one_who_waits_spares_the_others(realm: LookedAt) -> None:
    node = realm.create("orders")
    realm.count_mistakes()
    looks = looks_of(realm.process.realm)
    for _ in range(2):
        looks.follow(lambda error: [][0])
    assert [answer.node for answer in realm.answers(realm.ask(count=3))] == [node] * 3
    assert context_of(realm.process.realm).alarms["mistakes"] == 2
