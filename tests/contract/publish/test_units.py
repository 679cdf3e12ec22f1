"""The contract of the realm, continued: what is stored all or none, and what fails by itself; on nodes of one store and
of several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Write
from native_backend.log.simulated.driver import SimulatedLog
from native_backend.nodes.answers import Settled
from native_backend.nodes.grants import ANONYMOUS
from native_backend.nodes.words import CommitAnswer
from native_backend.realm import Posting
from native_backend.subscriptions.partitioned import packed_eid
from tests.contract.actions import commit, committed, posting, retire
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import RealmProcess, by_store
from tests.kit.realm.worlds import RECORD_BYTES_MAX, SimulatedWorld

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def places(posted: Posting, offsets: list[int]) -> list[int]:
    return [packed_eid(posted.node.partition, offset) for offset in offsets]


def test_a_unit_of_several_nodes_of_both_kinds_is_done_as_a_whole(start: Start) -> None:
    realm = start()
    queue, channel = realm.create("orders"), realm.create("prices", "channel")
    realm.create("invoices")
    realm.create("news", "channel")
    subscriber = realm.consumer(channel, "durable", "app:prices")
    taker = realm.consumer(queue)
    queued, priced = realm.publish(queue, bodies(4)), realm.publish(channel, bodies(3))
    taker.receive(4)
    subscriber.receive(3)
    settlements = [*retire(taker, queued[:3]), *retire(subscriber, priced[1:])]
    postings = [posting(realm, "invoices", [b"i1", b"i2"]), posting(realm, "news", [b"n1"])]
    answer = committed(realm, commit(realm, settlements, postings))
    assert answer.answer == "done"
    invoices = realm.consumer(postings[0].node.part(0))
    assert invoices.receive(2) == places(postings[0], answer.offsets[:2])
    assert list(invoices.bodies.values()) == [b"i1", b"i2"]
    news = postings[1].node
    batch = realm.log.control.read_range(news.topic, news.partition, answer.offsets[2], 1)
    assert batch.values == [b"n1"]
    records = realm.journal()
    assert {entry["node"] for entry in records[-1]["entries"]} == {"orders", "prices"}
    assert not [answer for answer in realm.answers if isinstance(answer, Settled)]
    realm.kill()
    later = start()
    assert later.consumer(queue).receive(1) == queued[3:]
    assert later.consumer(channel, "durable", "app:prices").receive(1) == priced[:1]


def test_nothing_held_is_given_again_until_it_is_let_go(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(6))
    consumer, other = realm.consumer(node), realm.consumer(node)
    consumer.receive(6)
    assert consumer.reserve([eids[0], eids[2]]) and consumer.reserve(eids[3:5])
    assert not consumer.reserve(by_store(eids)[0]), "one of them is held"
    assert consumer.settle("acknowledge", eids[:1]) == "not-found", "what is held is not outstanding"
    consumer.unreserve(eids[:1])
    assert consumer.settle("acknowledge", eids[:1]) == "done", "what is let go is outstanding as before"
    consumer.subscription.close()
    assert by_store(other.receive(2)) == by_store([eids[1], eids[5]])
    assert other.drain() == [], "the link has gone, the transaction has not"
    consumer.unreserve(eids[2:3])
    assert other.receive(1) == eids[2:3]
    assert consumer.settle("return", eids[3:4], failed=True, reserved=True) == "done"
    assert consumer.settle("acknowledge", eids[4:5], reserved=True) == "done"
    assert other.receive(1) == eids[3:4]
    assert other.failed[eids[3]] == 1
    assert other.drain() == []


def test_what_cannot_be_stored_fails_by_itself(realm: RealmProcess) -> None:
    node, gone = realm.create("orders"), realm.create("gone")
    eids = realm.publish(node, bodies(6))
    taker = realm.consumer(node)
    taker.receive(6)
    lost = retire(taker, eids[1:2])
    plain = taker.start("acknowledge", eids[2:3])
    units = {
        commit(realm, retire(taker, eids[:1]), [posting(realm, "orders", [b"fits"])]): "done",
        commit(realm, lost, [posting(realm, "orders", [b"a", b"x" * (RECORD_BYTES_MAX + 1)])]): "too-large",
        commit(realm, retire(taker, eids[3:4]), [posting(realm, "orders", [b"last"])]): "done",
    }
    answers: dict[object, CommitAnswer] = {owner: committed(realm, owner).answer for owner in units}
    assert answers == units
    assert realm.settled(plain) == "done"
    assert [taker.bodies[eid] for eid in taker.receive(2)] == [b"fits", b"last"], (
        "in order, and no part of the failed one"
    )
    assert taker.settle("acknowledge", eids[1:2], reserved=True) == "done", "what failed is held as before"
    realm.log.control.delete_topics([gone.topic])
    realm.until(lambda: realm.find("gone") is not None, "the node, whose topic is gone")
    owner = commit(realm, [], [posting(realm, "gone", [b"nowhere"])])
    assert committed(realm, owner).answer == "not-found"
    assert realm.realm.may_publish(node, ANONYMOUS) == "ready"
    records = [record["n"] for record in realm.journal()]
    assert records == [*range(1, len(records) + 1)], "no hole in the numbers"


def test_a_settlement_brings_its_own_writes_along(realm: RealmProcess) -> None:
    node, dead = realm.create("orders"), realm.create("dead")
    eids = by_store(realm.publish(node, bodies(9)))[0]
    taker = realm.consumer(node)
    taker.receive(9)
    [settlement] = retire(taker, eids[:2])
    settlement.writes = [Write(dead.topic, 0, b"1", b"first"), Write(dead.topic, 0, b"2", b"second")]
    settlement.not_before_ms = 1_800_000_000_000
    owner = object()
    settlement.owner = owner
    context_of(realm.realm).journal.add(settlement)
    assert realm.settled(owner) == "done"
    assert realm.consumer(dead).receive(2) == settlement.offsets
    assert [entry.get("not_before") for record in realm.journal() for entry in record["entries"]] == [1_800_000_000_000]
    [too_large] = retire(taker, eids[2:])
    too_large.writes = [Write(dead.topic, 0, b"3", b"x" * (RECORD_BYTES_MAX + 1))]
    too_large.owner = "large"
    context_of(realm.realm).journal.add(too_large)
    assert realm.settled("large") == "unexpected"
    assert taker.settle("acknowledge", eids[2:], reserved=True) == "done", "and is held again"


def test_one_transaction_carries_no_more_than_its_octets(start: Start) -> None:
    realm = start(RealmLimits(transaction_bytes=1_000))
    realm.create("orders")
    owners = [commit(realm, [], [posting(realm, "orders", [b"%d" % at + b"." * 400])]) for at in range(7)]
    large = commit(realm, [], [posting(realm, "orders", [b"L" * 3_000])])
    assert [committed(realm, owner).answer for owner in [*owners, large]] == ["done"] * 8
    records = realm.journal()
    assert len(records) == 1 + 4 + 1, "two at a time, then the one that is larger, alone"


@pytest.mark.parametrize("seed", range(8))
def test_units_of_unknown_result_are_stored_once_and_their_offsets_are_found(seed: int, partitions: int) -> None:
    world = SimulatedWorld("simulated", seed=seed)
    realm = RealmProcess(world, "u", partitions=partitions).open()
    log = realm.log
    assert isinstance(log, SimulatedLog)
    node, other = realm.create("orders"), realm.create("other")
    eids = realm.publish(node, bodies(30))
    last, before = node.parts[-1], len(by_store(eids)[partitions - 1])
    taker = realm.consumer(node)
    taker.receive(30)
    log.faults = replace(log.faults, unknown_commit=0.6, control=0.2, lag=0.5, gap=0.5)
    stored: dict[int, bytes] = {}
    for at in range(0, 30, 3):
        values = [b"%d-%d" % (at, part) for part in range(3)]
        postings = [posting(realm, "orders", values[:2]), posting(realm, "other", values[2:])]
        answer = committed(realm, commit(realm, retire(taker, eids[at : at + 3]), postings))
        assert answer.answer == "done"
        stored |= dict(zip(answer.offsets[:2], values[:2], strict=True))
    log.faults = replace(log.faults, unknown_commit=0.0, control=0.0, lag=0.0)
    realm.until(lambda: log.control.bounds(last.topic, last.partition)[1] > max(stored), "the last of them")
    records = log.control.read_range(last.topic, last.partition, 0, 1000)
    assert dict(zip(records.offsets[before:], records.values[before:], strict=True)) == stored
    beside = other.parts[-1]
    realm.until(
        lambda: log.control.bounds(beside.topic, beside.partition)[1] > answer.offsets[2], "the last of the other node"
    )
    values_of_other = log.control.read_range(beside.topic, beside.partition, 0, 1000).values
    assert values_of_other == [b"%d-2" % at for at in range(0, 30, 3)]
    realm.kill()
    again = RealmProcess(world, "u").open().consumer(node)
    assert again.receive(20) == places(postings[0], sorted(stored))
