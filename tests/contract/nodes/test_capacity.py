"""The contract of the realm, continued: a full node refuses, or gives up its oldest events; counts are right after
whatever happens."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from native_backend.dispatch.retention_loss import ALARM
from native_backend.limits import RealmLimits
from native_backend.log.port import Append, Appended, Failure, LogError, Records
from native_backend.nodes.answers import Commanded, Published
from native_backend.nodes.commands import Command
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.nodes.words import NodeKind
from tests.contract.actions import FULL, await_shown, create, entries, offer, stored
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import RealmProcess

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def test_a_full_queue_refuses_until_there_is_room(realm: RealmProcess) -> None:
    node = create(realm, "orders", FULL)
    eids, refused = offer(realm, node, 14)
    assert (len(eids), refused) == (10, 4)
    assert offer(realm, node, 1) == ([], 1)
    consumer = realm.consumer(node)
    assert consumer.receive(10) == eids
    assert offer(realm, node, 1) == ([], 1)  # given is not done with
    consumer.acknowledge([eids[3], eids[7]])
    assert consumer.settle("return", [eids[0]]) == "done"
    more, refused = offer(realm, node, 5)
    assert (len(more), refused) == (2, 3)


def test_what_is_under_way_counts_too(realm: RealmProcess) -> None:
    node = create(realm, "orders", FULL)
    offer(realm, node, 1)
    owners = [object() for _ in range(6)]
    for owner in owners:
        realm.realm.publish(node, [b"key"] * 3, bodies(3), owner)
    replies = [realm.answer(Published, lambda answer, owner=owner: answer.owner is owner) for owner in owners]  # type: ignore[misc]
    assert [reply.answer for reply in replies] == ["stored"] * 3 + ["capacity-reached"] * 3


@pytest.mark.parametrize("orderly", [False, True])
def test_the_count_is_right_after_a_restart(start: Start, orderly: bool) -> None:
    """Of all stores, each of which is read in more than one stretch."""
    realm = start()
    node = create(realm, "orders", replace(FULL, capacity_events=700))
    eids = realm.publish(node, bodies(690))
    await_shown(realm, node, eids)
    consumer = realm.consumer(node)
    consumer.receive(690)
    consumer.acknowledge(eids[5:250:2])
    if orderly:
        realm.close()
    else:
        realm.kill()
    later = start()
    there = later.find("orders") or node
    left = 690 - len(eids[5:250:2])
    more, refused = offer(later, there, 700)
    assert (len(more), refused) == (700 - left, left)
    again = later.consumer(there)
    got = again.receive(700)
    again.acknowledge(got[:100])
    assert len(offer(later, there.parts[-1], 120)[0]) == 100


def test_a_count_that_broke_off_goes_on(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read in part seems to have room, and has no size."""
    realm = start()
    node = create(realm, "orders", replace(FULL, capacity_events=700))
    await_shown(realm, node, realm.publish(node, bodies(690)))
    realm.kill()
    later = start()
    there = later.find("orders") or node
    read, times = later.log.control.read_range, count(1)

    def breaks_off(*where: Any) -> Records:
        if next(times) > there.partitions:
            raise LogError(Failure("unavailable", "for now", "LATER"))
        return read(*where)

    with monkeypatch.context() as broken:
        broken.setattr(later.log.control, "read_range", breaks_off)
        later.realm.publish(there, [b"key"] * 30, bodies(30), "early")
        refused = later.answer(Published, lambda answer: answer.owner == "early")
        assert (refused.answer, len(refused.eids)) == ("unavailable", 30)
        assert [row.size_bytes for row in later.realm.metrics.nodes() if row is not None] == [None] * there.partitions
    assert offer(later, there, 30)[1] == 20


@pytest.mark.parametrize("kind", ["queue", "channel"])
def test_a_full_node_has_room_once_retention_took_its_events(start: Start, kind: NodeKind) -> None:
    """Also where no consumer misses them."""
    realm = start(RealmLimits(full_look_s=0.01))
    node = create(realm, "orders", FULL, kind)
    eids, refused = offer(realm, node, 12)
    assert (len(eids), refused) == (10, 2)
    retention_takes(realm, node, eids)
    realm.until(lambda: bool(offer(realm, node, 1)[0]), "room")
    eids, refused = offer(realm, node, 12)
    assert (len(eids), refused) == (9, 3)


def test_a_full_queue_has_room_once_a_consumer_misses_its_events(realm: RealmProcess) -> None:
    node = create(realm, "orders", FULL)
    retention_takes(realm, node, offer(realm, node, 10)[0])
    consumer = realm.consumer(node)
    assert consumer.drain() == []
    eids, refused = offer(realm, node, 12)
    assert (len(eids), refused) == (10, 2)
    consumer.acknowledge(consumer.receive(10)[:4])
    assert len(offer(realm, node, 12)[0]) == 4


def retention_takes(realm: RealmProcess, node: Node, places: list[int]) -> None:
    """These, all that the node has."""
    await_shown(realm, node, places)
    for part in node.parts:
        realm.log.control.trim(part.topic, part.partition, realm.log.control.bounds(part.topic, part.partition)[1])


def test_events_of_other_writers_count(realm: RealmProcess) -> None:
    node = create(realm, "orders", FULL)
    offer(realm, node, 3)
    log = realm.world.open()
    log.append(Append(node.topic, 0, [b"native"] * 4, bodies(4)))
    answers: list[Appended] = []

    def there() -> bool:
        answers.extend(answer for answer in log.poll() if isinstance(answer, Appended))
        return bool(answers)

    realm.until(there, "they are stored")
    stored(realm, node, 7)
    offer(realm, node, 1)  # shows the hole
    realm.until(lambda: not realm.workers.pending, "it is counted")
    eids, refused = offer(realm, node, 9)
    assert (len(eids), refused) == (2, 7)


def test_octets_bound_a_node_too(realm: RealmProcess) -> None:
    node = create(realm, "orders", Properties(capacity_bytes=1000, honour_capacity=True))
    eids, refused = offer(realm, node, 12, 100)
    assert (len(eids), refused) == (10, 2)
    consumer = realm.consumer(node)
    consumer.receive(10)
    consumer.acknowledge(eids)
    assert offer(realm, node, 12, 100)[1] == 2


def test_an_event_that_is_given_up_makes_room(realm: RealmProcess) -> None:
    realm.create("dead")
    node = create(realm, "orders", replace(FULL, dead_letter="dead"))
    eids, _ = offer(realm, node, 10)
    consumer = realm.consumer(node)
    consumer.receive(10)
    assert consumer.settle("dead-letter", eids[:4], reason="rejected") == "done"
    assert len(offer(realm, node, 10)[0]) == 4


def test_a_queue_that_does_not_honour_it_gives_up_its_oldest(start: Start) -> None:
    realm = start()
    node = create(realm, "orders", Properties(capacity_events=10))
    consumer = realm.consumer(node)
    eids, refused = offer(realm, node, 8)
    assert refused == 0
    consumer.receive(2)
    consumer.acknowledge(eids[1:2])
    eids += offer(realm, node, 30)[0]
    realm.until(
        lambda: bool(entries(realm, "evicted")) and not context_of(realm.realm).journal.busy, "they are given up"
    )
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[0] >= eids[-10], "the log lets go of them")
    assert realm.log.control.bounds(node.topic, 0)[0] == eids[-10]
    assert consumer.settle("return", eids[:1]) == "done"  # it was in a consumer's hands: told, and gone all the same
    assert consumer.receive(10) == eids[-10:]
    assert consumer.drain() == []
    realm.kill()
    later = start()
    assert later.consumer(node).receive(10) == eids[-10:]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_was_given_up_before_any_consumer_came_is_not_lost_by_retention(start: Start, is_restarted: bool) -> None:
    realm = start()
    node = create(realm, "orders", Properties(capacity_events=10))
    eids, _ = offer(realm, node, 30)
    realm.until(
        lambda: bool(entries(realm, "evicted")) and not context_of(realm.realm).journal.busy, "they are given up"
    )
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[0] >= eids[-10], "the log lets go of them")
    if is_restarted:
        realm.kill()
        realm = start()
    assert realm.consumer(node).receive(10) == eids[-10:]
    assert context_of(realm.realm).alarms[ALARM] == 0
    assert not entries(realm, "lost")


def test_what_is_acknowledged_beside_a_first_eviction_is_not_given_again(start: Start) -> None:
    """The journal takes the note and the acknowledgements in one transaction. The new state gets its snapshot then."""
    realm = start(RealmLimits(journal_interval_s=0.2))
    jobs, ring = realm.create("jobs"), create(realm, "ring", Properties(capacity_events=10))
    eids, consumer = realm.publish(jobs, bodies(20)), realm.consumer(jobs)
    consumer.receive(20)
    offer(realm, ring, 10)
    consumer.acknowledge(eids[:1])  # a transaction has just begun: the next one waits
    journal = context_of(realm.realm).journal
    before = journal.records
    realm.realm.publish(ring, [b"key"], bodies(1), object())
    realm.until(lambda: journal.busy or journal.records > before, "something is to be given up")
    owner = consumer.start("acknowledge", eids[1:])
    assert realm.settled(owner) == "done"
    realm.until(lambda: bool(entries(realm, "evicted")) and not realm.workers.pending, "the snapshot")
    realm.kill()
    assert start().consumer(jobs).drain() == []


def test_a_channel_keeps_its_newest_whether_or_not_they_were_seen(realm: RealmProcess) -> None:
    node = create(realm, "news", Properties(capacity_events=10), "channel")
    durable = realm.consumer(node, "durable", "a:b")
    eids, _ = offer(realm, node, 6)
    durable.receive(6)
    durable.acknowledge(eids)
    eids += offer(realm, node, 9)[0]
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[0] >= eids[-10], "the oldest go")
    assert realm.log.control.bounds(node.topic, 0)[0] == eids[-10]
    assert durable.drain() == eids[6:]


def test_a_capacity_is_set_and_lifted_while_publishers_are_there(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.01))
    node = realm.create("orders")
    realm.publish(node, bodies(8))
    log = realm.world.open()
    full, lifted = (replace(setting, partitions=realm.partitions) for setting in (FULL, Properties()))
    for properties, stored_then in ((full, 2), (lifted, 5), (full, 0)):
        set_properties(log, realm.prefix, "orders", lambda _, to=properties: to, realm.clock)  # type: ignore[misc]
        realm.until(lambda to=properties: realm.realm.node("orders").properties == to, "it is seen")  # type: ignore[misc,union-attr]
        assert len(offer(realm, node, 5)[0]) == stored_then


def test_a_purge_makes_room(realm: RealmProcess) -> None:
    node = create(realm, "orders", FULL)
    offer(realm, node, 10)
    dispatch_of = realm.consumer(node)
    dispatch_of.subscription.close()
    owner = object()
    realm.realm.execute(Command("1", "purge", "orders", node.store, "queue", realm.clock.epoch_us() + 10**8), owner)
    assert realm.answer(Commanded, lambda answer: answer.owner is owner).answer == "done"
    assert len(offer(realm, node, 12)[0]) == 10
