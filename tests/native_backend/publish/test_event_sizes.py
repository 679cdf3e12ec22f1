"""How large an event of a node may be: asked for once for all who wait, kept for a while, and guessed low where it
cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError
from native_backend.log.simulated.worker import InlineWorker
from native_backend.nodes.node import Node
from native_backend.publish.event_sizes import AROUND_BYTES, KEPT_S, UNKNOWN_BYTES, EventSizes


class _Clock:
    now_s = 100.0

    def monotonic_s(self) -> float:
        return self.now_s


class _Log:
    def __init__(self) -> None:
        self.sizes = {"um.a": 1_048_588, "um.b": 20_000_000}
        self.asked: list[list[str]] = []
        self.away = False

    @property
    def control(self) -> _Log:
        """The realm asks it nothing but control calls here."""
        return self

    def record_bytes_max(self, topics: Sequence[str], deadline_s: float) -> dict[str, int]:
        self.asked.append([*topics])
        if self.away:
            raise LogError(Failure("unavailable", "away"))
        return {topic: self.sizes[topic] for topic in topics}


class World:
    def __init__(self) -> None:
        self.log, self.clock, self.worker = _Log(), _Clock(), InlineWorker()
        self.told: list[Any] = []
        services: Any = SimpleNamespace(
            log=self.log, worker=self.worker, clock=self.clock, limits=RealmLimits(), answer=self.told.append
        )
        self.sizes = EventSizes(services)

    def ask(self, *nodes: Node) -> list[int]:
        """What each of them is answered, in octets."""
        self.told.clear()
        for node in nodes:
            self.sizes.ask(node, self)
        while self.worker.completed():
            pass
        assert all(answer.owner is self for answer in self.told)
        return [answer.bytes_max for answer in self.told]


A, B = (Node(name, "queue", f"um.{name}", name.encode() * 16, store) for store, name in enumerate("ab", 1))


def test_what_is_put_around_an_event_is_left_for_that() -> None:
    world = World()
    assert world.sizes.known(A) is None
    assert world.ask(A) == [1_048_588 - AROUND_BYTES]
    assert world.sizes.known(A) == 1_048_588 - AROUND_BYTES


def test_calls_during_a_look_share_the_next_look() -> None:
    world = World()
    assert world.ask(A, B, A, B) == [world.log.sizes[node.topic] - AROUND_BYTES for node in (A, B, A, B)]
    assert world.log.asked == [["um.a"], ["um.a", "um.b"]]


def test_a_setting_that_is_changed_counts_soon() -> None:
    world = World()
    world.ask(A)
    world.log.sizes["um.a"] = 5_000_000
    assert world.sizes.known(A) == 1_048_588 - AROUND_BYTES
    world.clock.now_s += KEPT_S
    assert world.sizes.known(A) is None
    assert world.ask(A) == [5_000_000 - AROUND_BYTES]


def test_what_cannot_be_read_is_what_was_read_last_else_what_every_log_takes() -> None:
    world = World()
    world.ask(A)
    world.log.away = True
    world.clock.now_s += KEPT_S
    assert world.ask(A, B) == [1_048_588 - AROUND_BYTES, UNKNOWN_BYTES]
    assert world.sizes.known(B) is None, "it is asked for again"


def test_a_node_that_is_gone_is_forgotten() -> None:
    world = World()
    world.ask(A)
    world.sizes.forget(A)
    assert world.sizes.known(A) is None


@pytest.mark.parametrize("size", [1, AROUND_BYTES, AROUND_BYTES + 1])
def test_a_topic_that_takes_next_to_nothing_takes_one_octet(size: int) -> None:
    world = World()
    world.log.sizes["um.a"] = size
    assert world.ask(A) == [1]
