"""Stores that have lost their beginning are judged from sums, too, and as all rows are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from native_backend.nodes.node import Node
from reconciliation.jobs import kept_sums
from reconciliation.model.ranges import EID_SIZE, SEQ_SIZE
from reconciliation.transforms import frames
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.days import BY_SUMS, Days, day, said
from tests.reconciliation.world import GatewayRun, Sent, World

COUNT = EID_SIZE + 500
KEPT = EID_SIZE + 100
"""So many of them are trimmed: one block, and a part of the next."""
Plant = Callable[[World, GatewayRun, Node, list[Sent]], object]


def _end_all(_: World, run: GatewayRun, node: Node, sent: list[Sent]) -> None:
    run.settle(node, sent[:-50], "accepted")


def _leave_one(_: World, run: GatewayRun, node: Node, sent: list[Sent]) -> None:
    run.settle(node, [*sent[:10], *sent[11:-50]], "accepted")


def _end_one_twice(_: World, run: GatewayRun, node: Node, sent: list[Sent]) -> None:
    run.settle(node, sent[:-50], "accepted")
    run.settle(node, sent[10:11], "accepted")


def _store_one_twice(_: World, run: GatewayRun, node: Node, sent: list[Sent]) -> None:
    """Two publishers heard of the same EID, and it was ended twice: both sides have it twice."""
    run.tell_publish(node, run.number(1), [sent[10].eid], "stored")
    run.settle(node, [*sent[:-50], sent[10]], "accepted")


def _end_another(_: World, run: GatewayRun, node: Node, sent: list[Sent]) -> None:
    """One that a stranger wrote before: nothing is left of it but its end."""
    run.settle(node, [*sent[:-50], Sent(0, 0)], "accepted")


def _expire_some(_: World, run: GatewayRun, node: Node, sent: list[Sent]) -> None:
    run.settle(node, sent[20:-50], "accepted")
    run.journal(node, "queue", "expired", [event.eid for event in sent[:20]], [0] * 20, False, "ttl")


PLANTS: dict[str, tuple[Plant, dict[str, int]]] = {
    "plain": (_end_all, {}),
    "left": (_leave_one, {"S1": 1}),
    "twice": (_end_one_twice, {"A4": 1}),
    "doubled": (_store_one_twice, {"A4": 1}),
    "stranger": (_end_another, {}),
    "expired": (_expire_some, {}),
}


@dataclass
class Made:
    """A queue, what it was given, and where the outcome records of that are."""

    node: Node
    sent: list[Sent] = field(default_factory=list)
    outcomes: list[int] = field(default_factory=list)


def _fill(made: dict[str, Made], world: World, run: GatewayRun) -> None:
    """The second half of what the first queue is given begins a block of seqs: no cut is in the block before it."""
    run.publish(world.queue("before"), SEQ_SIZE - EID_SIZE // 2 - run.next_seq)
    run.turn()
    for name, (plant, _) in PLANTS.items():
        there = made[name] = Made(world.queue(name))
        world.append(there.node.topic, [b"not ours"] * (name == "stranger"), [b"x"] * (name == "stranger"))
        for count in (EID_SIZE // 2, COUNT - EID_SIZE // 2):
            there.sent += run.publish(there.node, count)
            there.outcomes.append(world.log.control.bounds("um.outcomes", 0)[1])
            run.turn()
        plant(world, run, there.node, there.sent)
        run.turn()


def _found(result: Result, node: str) -> dict[str, int]:
    classes: Counter[str] = Counter()
    for row in result.rows():
        if row["node"] == node:
            classes[row["class"]] += row["count"]
    return dict(classes)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Topic, first and last offset of what is read where sums do not tell."""
    stretches, records_at = list[tuple[str, int, int]](), frames.records_at

    def noted(spark: Any, landed: Any, chain: Any, kind: Any, places: frames.Stretches) -> DataFrame:
        stretches.extend((topic, *span) for (topic, _), spans in places.items() for span in spans)
        return records_at(spark, landed, chain, kind, places)

    monkeypatch.setattr(frames, "records_at", noted)
    return stretches


def _between_strangers(world: World, run: GatewayRun, orders: Node) -> None:
    """Events of no run on both sides: what they reach over is of several runs."""
    world.append(orders.topic, [b"not ours"], [b"x"])
    day(world, run, orders)


def _keep_sums(days: Days, session: SparkSession) -> None:
    """Of what is there now: nothing of it is trimmed yet."""
    increment = days.landed()
    assert increment.landed.chain is not None
    kept_sums.kept(session, increment.landed, increment.landed.chain)
    increment.keep()


def test_a_store_that_lost_its_first_events_is_judged_by_sums(
    days: Days, session: SparkSession, reconcile: Reconcile
) -> None:
    days.add(3, _between_strangers)
    _keep_sums(days, session)
    days.add(1, _between_strangers)
    days.trim(days.topic, 4)
    result = days.judged(sums=True)
    assert BY_SUMS in result.text and result.classes() == {"P3": 3}, "three strangers are left"
    assert said(result) == said(reconcile(days.realm))
    days.trim(days.topic, 6)
    result = days.judged(sums=True)
    assert BY_SUMS in result.text and result.classes() == {"S1": 1, "P3": 3}, "one was left that is gone"
    assert said(result) == said(reconcile(days.realm))


def test_trimmed_stores_are_judged_by_sums(
    days: Days, session: SparkSession, reconcile: Reconcile, read: list[tuple[str, int, int]]
) -> None:
    made = dict[str, Made]()
    days.add(1, lambda world, run, _: _fill(made, world, run))
    _keep_sums(days, session)
    days.add(1)
    for there in made.values():
        days.trim(there.node.topic, there.sent[KEPT].eid)
    read.clear()
    result = days.judged(sums=True)
    assert BY_SUMS in result.text
    assert said(result) == said(reconcile(days.realm))
    assert {name: _found(result, name) for name in PLANTS} == {name: classes for name, (_, classes) in PLANTS.items()}
    of_outcomes = [(first, last) for topic, first, last in read if topic == "um.outcomes"]
    assert of_outcomes, "the block that is cut has to be read"
    for name, is_read in (("plain", False), ("left", True)):
        assert any(first <= made[name].outcomes[0] <= last for first, last in of_outcomes) is is_read, name
