"""The contract of the realm, continued: what is written (docs/records.md), and what is true after a kill, a fence or a
loss by retention; on nodes of one store and of several."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from random import Random

import orjson
import pytest

from native_backend.dispatch.retention_loss import ALARM
from native_backend.journal.snapshot import state_topic
from native_backend.limits import RealmLimits
from native_backend.log.port import Log
from native_backend.nodes import admin
from native_backend.nodes.answers import Settled
from native_backend.nodes.group_offset import low_of, parse_projection
from native_backend.nodes.node import Node
from native_backend.subscriptions.partitioned import eids_of, packed_eid
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.contract.actions import entries, places_in, visible
from tests.kit.realm.fixtures import SMALL, SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of, publisher_of
from tests.kit.realm.realm_process import RealmProcess, by_store, stores_of

__all__ = ["realm", "start", "world"]  # fixtures

# -- what is written


def has_records(log: Log, topic: str) -> bool:
    return log.control.bounds(topic, 0)[1] > 0


@SPREAD
def test_the_journal_holds_every_settlement_with_its_seq_and_gap(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids: list[int] = []
    for _ in range(6):
        eids += realm.publish(node, bodies(5))
    eids = [eid for some in stores_of(eids) for eid in some]
    consumer = realm.consumer(node)
    consumer.receive(30)
    consumer.acknowledge(eids[:10])
    assert consumer.settle("return", eids[10:12], failed=True, cause="lost") == "done"
    assert consumer.settle("discard", [eids[20]], cause="unstated") == "done"
    records = realm.journal()
    assert [record["n"] for record in records] == [*range(1, len(records) + 1)]
    assert {record["run"] for record in records} == {realm.run}
    entries = [entry for record in records for entry in record["entries"]]
    partitions = {part.store: part.partition for part in node.parts}
    outcomes = {
        packed_eid(partitions[entry["store"]], eid): (
            *(entry[it] for it in ("operation", "failed", "cause")),
            seq + eid - first,
        )
        for entry in entries
        for first, last, seq, _ in entry["runs"]
        for eid in range(first, last + 1)
    }
    assert {eid: outcomes[eid][3] for eid in outcomes} == {eid: consumer.seqs[eid] for eid in outcomes}
    assert [outcomes[eid][:3] for eid in (eids[0], eids[10], eids[20])] == [
        ("acknowledge", 0, "disposition"),
        ("return", 1, "lost"),
        ("discard", 0, "unstated"),
    ]
    assert sorted(outcomes) == sorted([*eids[:12], eids[20]])
    before = {
        at: {eid: previous + 1 for previous, eid in pairwise([-1, *eids_of(some)])}
        for at, some in by_store(eids).items()
    }
    for entry in entries:
        assert (entry["node"], entry["durable"]) == ("orders", "queue")
        covers = before[partitions[entry["store"]]]
        assert all(cover == covers[first] for first, _, _, cover in entry["runs"])


@SPREAD
def test_group_offsets_show_low_and_name_their_journal_position(start: Start) -> None:
    realm = start(RealmLimits(projection_interval_s=0.05))
    node = realm.create("orders")
    eids = by_store(realm.publish(node, bodies(10 * node.partitions)))
    consumer = realm.consumer(node)
    consumer.receive(10 * node.partitions)
    consumer.acknowledge([eid for some in eids.values() for eid in some[:7]])
    lows = {at: eids_of(some)[6] + 1 for at, some in eids.items()}
    group = f"{realm.prefix}.queue.orders"

    def shown() -> bool:
        offsets = realm.log.control.projected(group)
        for at, low in lows.items():
            position = offsets.get((node.topic, at))
            if position is None or parse_projection(position) is None or low_of(position) != low:
                return False
            if realm.log.control.bounds(node.topic, at)[1] - position[0] != 3:
                return False
        return True

    realm.until(shown, "the group offset")
    shown_node = admin.show_node(realm.log, realm.prefix, "orders")
    assert shown_node is not None
    rows = sorted((durable.name, durable.partition, durable.low) for durable in shown_node.durables)
    assert rows == [("queue", at, low) for at, low in sorted(lows.items())]


def test_evidence_is_stored_and_asked_nothing(realm: RealmProcess) -> None:
    realm.realm.append_evidence("outcomes", b"run", b'{"n":1}')
    realm.realm.append_evidence("tables", b"digest", b"{}")
    realm.until(lambda: not publisher_of(realm.realm).evidence.pending, "evidence")
    assert realm.realm.evidence_failed == 0
    for topic, key in (("outcomes", b"run"), ("tables", b"digest")):
        name = f"{realm.prefix}.{topic}"
        realm.until(partial(has_records, realm.log, name), topic)
        assert realm.log.control.read_range(name, 0, 0, 10).keys == [key]


# -- killed


@SPREAD
@pytest.mark.parametrize("seed", range(3))
def test_a_kill_loses_nothing_and_repeats_nothing_that_was_answered(start: Start, seed: int) -> None:
    random = Random(seed)
    limits = RealmLimits(snapshot_records=random.choice([2, 1000]), journal_runs=random.choice([7, 8000]))
    realm = start(limits)
    node = realm.create("orders")
    stored = realm.publish(node, bodies(400))
    done: set[int] = set()
    for life in range(4):
        consumer = realm.consumer(node)
        assert realm.realm.node("orders") == node
        eids = consumer.receive(60 + random.randrange(40))
        assert not done & set(eids), "acknowledged, answered, and given again"
        assert not any(consumer.failed.values()), "an attempt cut short is not counted"
        owners = {}
        for _ in range(random.randrange(8)):
            some = random.sample(eids, k=min(len(eids), random.randrange(1, 15)))
            eids = [eid for eid in eids if eid not in some]
            for part in stores_of(some):  # each store answers for itself
                owners[consumer.start("acknowledge", part)] = part
            for _ in range(random.randrange(6)):
                realm.turn()
        for answer in realm.answers:
            if isinstance(answer, Settled) and answer.answer == "done":
                done |= set(owners[answer.owner])
        realm.kill()
        realm = start(limits)
        if life == 1:
            stored += realm.publish(node, bodies(50))
    rest = realm.consumer(node).drain()
    assert len(rest) == len(set(rest))
    assert not done & set(rest)
    acknowledged = journaled(realm, node)
    assert done <= acknowledged
    assert sorted(rest) == sorted(set(stored) - acknowledged)


def journaled(realm: RealmProcess, node: Node) -> set[int]:
    """The places of all that the journal calls terminal."""
    endings = [entry for record in realm.journal() for entry in record["entries"] if entry["operation"] != "return"]
    return set(places_in(node, endings))


@SPREAD
def test_counts_survive_a_kill(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    count = 3 * node.partitions
    eids = realm.publish(node, bodies(count))
    consumer = realm.consumer(node)
    for _ in range(3):
        consumer.receive(count)
        assert consumer.settle("return", eids[1::3], failed=True) == "done"
        assert consumer.settle("return", [eid for eid in eids if eid not in eids[1::3]]) == "done"
    realm.kill()
    again = start().consumer(node)
    assert by_store(again.receive(count)) == by_store(eids)
    assert [again.failed[eid] for eid in eids] == [0, 3, 0] * node.partitions
    assert all(again.again.values())


@SPREAD
def test_after_a_kill_whatever_may_have_been_given_says_so(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(10))
    assert by_store(realm.consumer(node).receive(10)) == by_store(eids)  # the journal knows nothing of it
    realm.kill()
    later = start()
    consumer = later.consumer(node)
    assert by_store(consumer.receive(10)) == by_store(eids)
    assert all(consumer.again.values())
    more = later.publish(node, bodies(1))
    assert consumer.receive(1) == more
    assert not consumer.again[more[0]]


@SPREAD
def test_recovery_needs_only_the_journal_above_the_snapshots(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(20))
    consumer = realm.consumer(node)
    consumer.receive(20)
    consumer.acknowledge(eids[5:15])
    realm.close()
    later = start()
    values = later.log.control.read_range(state_topic(later.prefix), 0, 0, 100).values
    records = [orjson.loads(value) for value in values if value is not None]
    snapshots = {snapshot["store"]: snapshot for snapshot in records}  # the last one of each store
    assert [snapshots[part.store]["closed"] for part in node.parts] == [1] * node.partitions
    later.log.control.trim(f"{later.prefix}.journal", 0, min(snapshot["journal"] for snapshot in snapshots.values()))
    later.kill()
    last = start()
    again = last.consumer(node)
    assert by_store(again.receive(10)) == by_store(eids[:5] + eids[15:])
    assert again.drain() == []


@SPREAD
def test_what_a_snapshot_holds_is_not_counted_again_from_the_journal(start: Start) -> None:
    realm = start()
    early, late = realm.create("early"), realm.create("late")
    realm.consumer(early)
    eids = realm.publish(late, bodies(6))
    realm.close()  # the snapshot of `early` stays this old: recovery reads the journal from here
    second = start()
    consumer = second.consumer(late)
    consumer.receive(6)
    assert consumer.settle("return", eids, failed=True) == "done"
    second.close()
    again = start().consumer(late)
    assert by_store(again.receive(6)) == by_store(eids)
    assert [again.failed[eid] for eid in eids] == [1] * 6


# -- fenced


@SPREAD
def test_a_fenced_gateway_says_so_and_writes_nothing_more(start: Start) -> None:
    realm = start()
    queue, channel = realm.create("orders"), realm.create("news", "channel")
    eids = realm.publish(queue, bodies(10))
    consumer, plain = realm.consumer(queue), realm.consumer(channel, "plain")
    consumer.receive(10)
    consumer.acknowledge(eids[:2])
    rival = start(follows=True)  # the other one is not polled: it gives no sign of life
    assert consumer.settle("acknowledge", [eids[2]]) == "unexpected"
    lost = realm.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (consumer.subscription, "in-use")
    assert consumer.settle("acknowledge", [eids[3]]) == "unexpected"
    assert consumer.take() == []
    assert realm.subscribed(queue, "queue").answer == "in-use"
    realm.publish(channel, bodies(3))  # publishing needs no owner
    plain.receive(3)
    again = rival.consumer(queue)
    assert by_store(again.receive(8)) == by_store(eids[2:])
    again.acknowledge(eids[2:])
    realm.close()
    assert rival.has_ended(queue, eids)


# -- the log loses events


@SPREAD
def test_what_retention_took_is_skipped_and_stays_a_hole(start: Start, partitions: int) -> None:
    """It is noted once: not again by each process that finds the hole, with a snapshot of the loss or without."""
    end = "close" if partitions == 2 else "kill"
    realm = start(SMALL)
    node = realm.create("orders")
    eids = by_store(realm.publish(node, bodies(100 * node.partitions, 100)))
    consumer = realm.consumer(node)
    had = consumer.receive(10)
    assert all(eids[at][: len(some)] == some for at, some in by_store(had).items())
    visible(realm, node, [some[-1] for some in eids.values()])
    for at, some in eids.items():
        realm.log.control.trim(node.topic, at, eids_of(some)[60])
    assert consumer.settle("return", had[:5]) == "done"
    received = consumer.drain()
    assert {at: some[-40:] for at, some in by_store(received).items()} == {at: some[60:] for at, some in eids.items()}
    assert len(received) == len(set(received))
    consumer.acknowledge([eid for some in eids.values() for eid in some[60:]])
    assert all(state.low <= eids_of(eids[at])[0] for at, state in enumerate(realm.states(node)))
    getattr(realm, end)()
    later = start(SMALL)
    assert later.consumer(node).drain() == []
    wanted = {(part.store, "queue", eids_of(eids[part.partition])[60] - 1) for part in node.parts}

    def noted() -> bool:
        losses = {(entry["store"], entry["durable"], entry["runs"][0][1]) for entry in entries(later, "lost")}
        assert losses <= wanted
        return losses == wanted

    later.until(noted, "a note in the journal for each store")
    assert sum(context_of(process.realm).alarms[ALARM] for process in (realm, later)) >= 50 * node.partitions
    getattr(later, end)()
    last = start(SMALL)
    assert last.consumer(node).drain() == []
    assert context_of(last.realm).alarms[ALARM] == 0
    assert len(entries(last, "lost")) == node.partitions
    assert all(state.low <= eids_of(eids[at])[0] for at, state in enumerate(last.states(node)))
