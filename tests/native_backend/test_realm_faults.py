"""The realm over a log that can be told to fail: unknown results, refusals, rivals, and the answers they become."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from native_backend.journal.journal import tail
from native_backend.journal.settlement import Settlement
from native_backend.log.simulated.driver import SimulatedLog
from native_backend.log.simulated.faults import Faults
from native_backend.nodes.answers import NodeFound, Published, Settled
from native_backend.nodes.durable_terms import EXCLUSIVE
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.kit.realm.fixtures import bodies
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import Consumer, RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

# -- only where the log can be told to fail


@pytest.fixture
def simulated() -> Iterator[SimulatedWorld]:
    yield SimulatedWorld("simulated", seed=7)


def log_of(realm: RealmProcess) -> SimulatedLog:
    assert isinstance(realm.log, SimulatedLog)
    return realm.log


def holding(world: SimulatedWorld) -> tuple[RealmProcess, SimulatedLog, Consumer, list[int]]:
    """A realm with a queue `orders`, and a consumer that holds its four events."""
    realm = RealmProcess(world, "u").open()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(4))
    consumer = realm.consumer(node)
    consumer.receive(4)
    return realm, log_of(realm), consumer, eids


@pytest.mark.parametrize("seed", range(8))
def test_a_transaction_of_unknown_result_is_resolved_before_any_answer(seed: int) -> None:
    world = SimulatedWorld("simulated", seed=seed)
    realm = RealmProcess(world, "u").open()
    log = log_of(realm)
    node = realm.create("orders")
    eids = realm.publish(node, bodies(200))
    consumer = realm.consumer(node)
    consumer.receive(200)
    log.faults = replace(log.faults, unknown_commit=0.6, control=0.2, lag=0.5)
    for at in range(0, 100, 5):
        consumer.acknowledge(eids[at : at + 5])
    for eid in eids[100:110]:
        assert consumer.settle("return", [eid], failed=True) == "done"
    log.faults = replace(log.faults, unknown_commit=0.0, control=0.0, lag=0.0)
    records = [record for _, record in tail(log, "u.journal", 0)]
    assert sorted({record["n"] for record in records}) == [*range(1, records[-1]["n"] + 1)]
    realm.kill()
    later = RealmProcess(world, "u").open()
    again = later.consumer(node)
    assert again.receive(100) == eids[100:]
    assert [again.failed[eid] for eid in eids[100:111]] == [1] * 10 + [0]


def test_a_refused_transaction_is_answered_and_its_events_stay_outstanding(simulated: SimulatedWorld) -> None:
    realm, log, consumer, eids = holding(simulated)
    for refusal, answer in (("refused", "access-denied"), ("unexpected", "unexpected"), ("not-found", "not-found")):
        log.faults = Faults(refuse=1.0, refusals=(refusal,))  # type: ignore[arg-type]
        assert consumer.settle("acknowledge", eids[:2]) == answer
    owner = consumer.start("acknowledge", eids[:2])
    log.faults = Faults()
    assert realm.settled(owner) == "done"
    log.faults = Faults(refuse=1.0, refusals=("unavailable",))
    owner = consumer.start("acknowledge", eids[2:3])
    for _ in range(1000):
        realm.turn()
    assert not [answer for answer in realm.answers if isinstance(answer, Settled)]
    log.faults = Faults()
    assert realm.settled(owner) == "done"
    assert [record["n"] for _, record in tail(log, "u.journal", 0)] == [1, 2, 3]
    consumer.subscription.close()
    assert realm.consumer(realm.create("orders")).receive(1) == eids[3:]


def test_closing_names_what_the_log_did_not_answer(simulated: SimulatedWorld, caplog: pytest.LogCaptureFixture) -> None:
    realm, log, consumer, eids = holding(simulated)
    log.faults = Faults(refuse=1.0, refusals=("unavailable",))
    for eid in eids[:2]:
        consumer.start("acknowledge", [eid])
    realm.close()
    assert "closing with 2 settlements of unknown result" in caplog.text
    later = RealmProcess(simulated, "v").open()
    keeper: Any = SimpleNamespace(keys=lambda: ("news", "", 0), restore=lambda _: None)
    log_of(later).faults = Faults(refuse=1.0, refusals=("unavailable",))
    act = Settlement(keeper, None, "filtered", False, False, "selector", [], 0, None)
    context_of(later.realm).journal.add(act)
    caplog.clear()
    later.close()
    assert "noted of its own acts" in caplog.text and "unknown result" not in caplog.text


def test_a_rival_that_took_over_during_an_unknown_result_is_not_robbed(simulated: SimulatedWorld) -> None:
    realm, log, consumer, eids = holding(simulated)
    log.faults = Faults(unknown_commit=1.0, control=1.0)  # unknown, and cannot be asked
    owner = consumer.start("acknowledge", eids[:1])
    for _ in range(300):
        realm.turn()
    RealmProcess(simulated, "u").open()
    log.faults = Faults()
    assert realm.settled(owner) == "unexpected"
    assert realm.answer(SubscriptionLost).answer == "in-use"


@pytest.mark.parametrize(
    ("cause", "answer"),
    [
        ("not-found", "not-found"),
        ("too-large", "too-large"),
        ("refused", "access-denied"),
        ("indeterminate", "indeterminate"),
        ("unavailable", "unavailable"),
        ("fenced", "unexpected"),
        ("unexpected", "unexpected"),
    ],
)
def test_a_publish_that_fails_is_answered_by_its_cause(simulated: SimulatedWorld, cause: str, answer: str) -> None:
    realm = RealmProcess(simulated, "u").open()
    log = log_of(realm)
    node = realm.create("orders")
    log.faults = Faults(refuse=1.0, refusals=(cause,))  # type: ignore[arg-type]
    realm.realm.publish(node, [b"k"] * 3, bodies(3), "mine")
    published = realm.answer(Published)
    assert (published.owner, published.first, published.eids) == ("mine", 0, [-1, -1, -1])
    assert published.answer == answer
    realm.realm.append_evidence("outcomes", b"run", b"{}")
    if cause == "unavailable":  # certainly not stored, and not for ever
        log.faults = Faults()
        realm.until(lambda: not realm.realm.busy, "evidence that is tried again")
        assert realm.realm.evidence_failed == 0
    else:
        realm.until(lambda: realm.realm.evidence_failed == 1, "the failure of evidence")


def test_a_log_that_cannot_be_asked_at_an_attach_is_unavailable_and_then_is_there(simulated: SimulatedWorld) -> None:
    realm = RealmProcess(simulated, "u").open()
    log = log_of(realm)
    node = realm.create("news", "channel")
    log.faults = Faults(control=1.0)
    lookup, durable = object(), object()
    realm.realm.find_node("news", lookup)
    assert realm.answer(NodeFound, lambda answer: answer.owner is lookup).answer == "unavailable"
    realm.ask(node, "durable", "me:inbox", durable, EXCLUSIVE, None, None)
    assert realm.subscribed_to(durable).answer == "unavailable"
    log.faults = Faults()
    assert realm.find("news") == node
    assert realm.subscribed(node, "durable", "me:inbox").answer == "ready"
