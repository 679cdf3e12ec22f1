"""The contract of the realm, continued: what is stored all or none, and what fails by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.access import ANONYMOUS
from native_backend.answers import CommitAnswer, Committed, Settled
from native_backend.limits import RealmLimits
from native_backend.log import Write
from native_backend.logs.simulated.driver import SimulatedLog
from native_backend.realm import Posting
from native_backend.settlement import Settlement, Settling
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.logs.worlds import RECORD_BYTES_MAX, SimulatedWorld
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


def posting(gateway: Gateway, name: str, values: list[bytes]) -> Posting:
    node = gateway.realm.node(name)
    assert node is not None
    return Posting(node, [b"key"] * len(values), values)


def enlist(consumer: Consumer, eids: list[int]) -> Settlement:
    assert consumer.subscription.hold(eids)
    settlement = consumer.subscription.enlist(
        Settling("acknowledge", held=True), eids, [consumer.seqs[eid] for eid in eids]
    )
    assert settlement is not None
    return settlement


def commit(gateway: Gateway, settlements: list[Settlement], postings: list[Posting]) -> object:
    owner = object()
    gateway.realm.commit(settlements, postings, owner)
    return owner


def committed(gateway: Gateway, owner: object) -> Committed:
    return gateway.answer(Committed, lambda answer: answer.owner is owner)


def test_a_unit_of_several_nodes_of_both_kinds_is_done_as_a_whole(start: Start) -> None:
    gateway = start()
    queue, channel = gateway.create("orders"), gateway.create("prices", "channel")
    gateway.create("invoices")
    gateway.create("news", "channel")
    subscriber = gateway.consumer(channel, "durable", "app:prices")
    taker = gateway.consumer(queue)
    queued, priced = gateway.publish(queue, bodies(4)), gateway.publish(channel, bodies(3))
    taker.receive(4)
    subscriber.receive(3)
    settlements = [enlist(taker, queued[:3]), enlist(subscriber, priced[1:])]
    postings = [posting(gateway, "invoices", [b"i1", b"i2"]), posting(gateway, "news", [b"n1"])]
    answer = committed(gateway, commit(gateway, settlements, postings))
    assert answer.answer == "done"
    invoices = gateway.consumer(postings[0].node)
    assert invoices.receive(2) == answer.offsets[:2]
    assert list(invoices.bodies.values()) == [b"i1", b"i2"]
    found = gateway.log.read_range(postings[1].node.topic, 0, answer.offsets[2], 1)
    assert found.values == [b"n1"]
    records = gateway.journal()
    assert {entry["node"] for entry in records[-1]["entries"]} == {"orders", "prices"}
    assert not [answer for answer in gateway.answers if isinstance(answer, Settled)]
    gateway.kill()
    later = start()
    assert later.consumer(queue).receive(1) == queued[3:]
    assert later.consumer(channel, "durable", "app:prices").receive(1) == priced[:1]


def test_nothing_held_is_given_again_until_it_is_let_go(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(6))
    one, other = gateway.consumer(node), gateway.consumer(node)
    one.receive(6)
    assert one.subscription.hold([eids[0], eids[2]]) and one.subscription.hold(eids[3:5])
    assert not one.subscription.hold(eids[:2]), "one of them is held"
    assert one.settle("acknowledge", eids[:1]) == "not-found", "what is held is not outstanding"
    one.subscription.unhold(eids[:1])
    assert one.settle("acknowledge", eids[:1]) == "done", "what is let go is outstanding as before"
    one.subscription.close()
    assert other.receive(2) == [eids[1], eids[5]]
    assert other.drain() == [], "the link has gone, the transaction has not"
    one.subscription.unhold(eids[2:3])
    assert other.receive(1) == eids[2:3]
    assert one.settle("return", eids[3:4], failed=True, held=True) == "done"
    assert one.settle("acknowledge", eids[4:5], held=True) == "done"
    assert other.receive(1) == eids[3:4]
    assert other.failed[eids[3]] == 1
    assert other.drain() == []


def test_what_cannot_be_stored_fails_by_itself(gateway: Gateway) -> None:
    node, gone = gateway.create("orders"), gateway.create("gone")
    eids = gateway.publish(node, bodies(6))
    taker = gateway.consumer(node)
    taker.receive(6)
    lost = enlist(taker, eids[1:2])
    plain = taker.start("acknowledge", eids[2:3])
    units = {
        commit(gateway, [enlist(taker, eids[:1])], [posting(gateway, "orders", [b"fits"])]): "done",
        commit(gateway, [lost], [posting(gateway, "orders", [b"a", b"x" * (RECORD_BYTES_MAX + 1)])]): "too-large",
        commit(gateway, [enlist(taker, eids[3:4])], [posting(gateway, "orders", [b"last"])]): "done",
    }
    answers: dict[object, CommitAnswer] = {owner: committed(gateway, owner).answer for owner in units}
    assert answers == units
    assert gateway.settled(plain) == "done"
    assert [taker.bodies[eid] for eid in taker.receive(2)] == [b"fits", b"last"], (
        "in order, and no part of the failed one"
    )
    assert taker.settle("acknowledge", eids[1:2], held=True) == "done", "what failed is held as before"
    gateway.log.delete_topics([gone.topic])
    gateway.until(lambda: gateway.find("gone") is not None, "the node, whose topic is gone")
    owner = commit(gateway, [], [posting(gateway, "gone", [b"nowhere"])])
    assert committed(gateway, owner).answer == "not-found"
    assert gateway.realm.may_publish(node, ANONYMOUS) == "ready"
    records = [record["n"] for record in gateway.journal()]
    assert records == [*range(1, len(records) + 1)], "no hole in the numbers"


def test_a_settlement_brings_its_own_writes_along(gateway: Gateway) -> None:
    node, dead = gateway.create("orders"), gateway.create("dead")
    eids = gateway.publish(node, bodies(3))
    taker = gateway.consumer(node)
    taker.receive(3)
    settlement = enlist(taker, eids[:2])
    settlement.writes = [Write(dead.topic, 0, b"1", b"first"), Write(dead.topic, 0, b"2", b"second")]
    settlement.not_before_ms = 1_800_000_000_000
    owner = object()
    settlement.owner = owner
    gateway.realm._journal.add(settlement)
    assert gateway.settled(owner) == "done"
    assert gateway.consumer(dead).receive(2) == settlement.offsets
    assert [entry.get("not_before") for record in gateway.journal() for entry in record["entries"]] == [
        1_800_000_000_000
    ]
    too_large = enlist(taker, eids[2:])
    too_large.writes = [Write(dead.topic, 0, b"3", b"x" * (RECORD_BYTES_MAX + 1))]
    too_large.owner = "large"
    gateway.realm._journal.add(too_large)
    assert gateway.settled("large") == "unexpected"
    assert taker.settle("acknowledge", eids[2:], held=True) == "done", "and is held again"


def test_one_transaction_carries_no_more_than_its_octets(start: Start) -> None:
    gateway = start(RealmLimits(transaction_bytes=1_000))
    gateway.create("orders")
    owners = [commit(gateway, [], [posting(gateway, "orders", [b"%d" % at + b"." * 400])]) for at in range(7)]
    large = commit(gateway, [], [posting(gateway, "orders", [b"L" * 3_000])])
    assert [committed(gateway, owner).answer for owner in [*owners, large]] == ["done"] * 8
    records = gateway.journal()
    assert len(records) == 1 + 4 + 1, "two at a time, then the one that is larger, alone"


@pytest.mark.parametrize("seed", range(8))
def test_units_of_unknown_result_are_stored_once_and_their_offsets_are_found(seed: int) -> None:
    world = SimulatedWorld("simulated", seed=seed)
    gateway = Gateway(world, "u").open()
    log = gateway.log
    assert isinstance(log, SimulatedLog)
    node, other = gateway.create("orders"), gateway.create("other")
    eids = gateway.publish(node, bodies(30))
    taker = gateway.consumer(node)
    taker.receive(30)
    log.faults = replace(log.faults, unknown_commit=0.6, control=0.2, lag=0.5, gap=0.5)
    stored: dict[int, bytes] = {}
    for at in range(0, 30, 3):
        values = [b"%d-%d" % (at, part) for part in range(3)]
        postings = [posting(gateway, "orders", values[:2]), posting(gateway, "other", values[2:])]
        answer = committed(gateway, commit(gateway, [enlist(taker, eids[at : at + 3])], postings))
        assert answer.answer == "done"
        stored |= dict(zip(answer.offsets[:2], values[:2], strict=True))
    log.faults = replace(log.faults, unknown_commit=0.0, control=0.0, lag=0.0)
    gateway.until(lambda: log.bounds(node.topic, 0)[1] > max(stored), "the last of them")
    found = log.read_range(node.topic, 0, 0, 1000)
    assert dict(zip(found.offsets[30:], found.values[30:], strict=True)) == stored
    gateway.until(lambda: log.bounds(other.topic, 0)[1] > answer.offsets[2], "the last of the other node")
    values_of_other = log.read_range(other.topic, 0, 0, 1000).values
    assert values_of_other == [b"%d-2" % at for at in range(0, 30, 3)]
    gateway.kill()
    again = Gateway(world, "u").open().consumer(node)
    assert again.receive(20) == sorted(stored)
