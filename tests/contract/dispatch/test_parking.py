"""The contract of the realm, continued: a link that found nothing is woken when there may be something, not before. On
nodes of several stores it waits at each: each store may wake it once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from native_backend.nodes.properties import Properties
from tests.contract.actions import Sleeper, create, in_each_store
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import shard_of
from tests.kit.realm.realm_process import RealmProcess, by_store
from tests.kit.realm.worlds import SimulatedWorld

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def test_a_link_sleeps_until_something_is_published(realm: RealmProcess) -> None:
    news, orders = realm.create("news", "channel"), realm.create("orders")
    sleepers = [Sleeper(realm, news, "durable", "d"), Sleeper(realm, news, "plain"), Sleeper(realm, orders)]
    for sleeper in sleepers:
        sleeper.park().sleeps()
    eids = realm.publish(news, bodies(3))
    assert by_store(sleepers[0].wakes().receive(3)) == by_store(eids)
    assert by_store(sleepers[1].wakes().receive(3)) == by_store(eids)
    assert sleepers[2].woken == 0
    eids = realm.publish(orders, bodies(1))
    assert sleepers[2].wakes().receive(1) == eids
    woken = [sleeper.woken for sleeper in sleepers]
    assert max(woken[:2]) <= news.partitions and woken[2] == 1, "it is woken once, and parks anew if it likes"


def test_what_others_give_back_wakes(realm: RealmProcess) -> None:
    """Returned, left behind by a link that ends, let go by a transaction whose link has gone."""
    node = realm.create("orders")
    eids = realm.publish(node, bodies(3))
    others = [realm.consumer(node) for _ in eids]
    eids = [eid for other in others for eid in other.receive(1)]
    sleeper = Sleeper(realm, node).park()
    sleeper.sleeps()
    assert others[0].settle("return", eids[:1]) == "done"
    assert sleeper.wakes().take() == eids[:1]
    sleeper.park()
    woken = sleeper.woken
    others[1].subscription.close()
    assert sleeper.wakes(woken).take() == eids[1:2]
    sleeper.park()
    woken = sleeper.woken
    assert others[2].subscription.reserve(eids[2:])
    others[2].subscription.close()
    sleeper.sleeps()
    others[2].subscription.unreserve(eids[2:])
    assert sleeper.wakes(woken).take() == eids[2:]
    assert node.partitions > 1 or sleeper.woken == 3


def test_a_delayed_event_wakes_in_its_time(realm: RealmProcess) -> None:
    node = create(realm, "orders", Properties(redelivery_delay_ms=300))
    eids = realm.publish(node, bodies(1))
    sleeper = Sleeper(realm, node)
    assert sleeper.consumer.receive(1) == eids
    sleeper.consumer.start("return", eids, failed=True)  # it parks before the journal has it
    sleeper.park()
    sleeper.wakes()
    given: list[int] = []
    while not given:  # woken by the return, then by its time
        given = sleeper.consumer.take()
        if not given:
            before = sleeper.woken
            sleeper.park()
            sleeper.wakes(before)
    assert given == eids
    assert sleeper.woken <= 2 + node.partitions, "no one asks all the time until then"


def test_those_who_compete_are_woken_as_far_as_it_goes_round(realm: RealmProcess) -> None:
    node = realm.create("orders")
    sleepers = [Sleeper(realm, node) for _ in range(8)]
    for sleeper in sleepers:
        sleeper.park()
    eids = realm.publish(node, bodies(1))
    first = sleepers[0].wakes()
    assert first.take() == eids
    sleepers[1].sleeps()
    assert [sleeper.woken for sleeper in sleepers] == [1] + [0] * 7
    realm.publish(node, bodies(1))
    sleepers[1].wakes()  # and does not want it any more
    sleepers[2].wakes()
    assert sleepers[2].consumer.receive(1)
    sleepers[7].sleeps()


def test_a_durable_is_woken_when_its_place_was_moved(realm: RealmProcess) -> None:
    """What purges, seeks and evicts moves the place where a link waits: it must not sleep there for ever."""
    node = realm.create("orders")
    realm.publish(node, bodies(5))
    sleeper = Sleeper(realm, node)
    consumer = sleeper.consumer
    consumer.acknowledge(consumer.receive(5))
    sleeper.park()
    assert {answer.answer for answer in in_each_store(realm, "purge", node)} == {"done"}
    eids = realm.publish(node, bodies(1))
    assert sleeper.wakes().receive(1) == eids


def test_a_store_is_read_once_a_turn_for_all_who_wait(start: Start, world: Any, monkeypatch: Any) -> None:
    realm = start()
    node = realm.create("news", "channel")
    sleepers = [Sleeper(realm, node, "durable", f"d{at}").park() for at in range(20)]
    if not isinstance(world, SimulatedWorld):
        realm.turn()
    reads = Counter[int]()

    def counted(at: int, read: Any, count_max: int) -> Any:
        reads[at] += 1
        return read(count_max)

    for part in node.parts:
        dispatch = shard_of(realm.realm).opened(part, "d0")
        assert dispatch is not None and dispatch.window is not None and dispatch.window._lead is not None
        lead = dispatch.window._lead
        read = partial(counted, part.partition, lead.reader.read)
        monkeypatch.setattr(lead, "reader", type("Reader", (), {"read": staticmethod(read), "times_ms": []})())
    sleepers[0].sleeps(turns=10)
    assert reads == {part.partition: 10 for part in node.parts}
    monkeypatch.undo()
    eids = realm.publish(node, bodies(1))
    for sleeper in sleepers:
        assert sleeper.wakes().receive(1) == eids


def test_a_lost_link_sleeps_on_and_is_notified(realm: RealmProcess) -> None:
    news = realm.create("news", "channel")
    sleepers = [Sleeper(realm, news, "durable", "d"), Sleeper(realm, news, "plain")]
    for sleeper in sleepers:
        sleeper.park()
        sleeper.consumer.subscription.lose("not-found", "deleted")
        assert sleeper.consumer.take() == []
        assert sleeper.consumer.subscription.park(sleeper.wake)
        sleeper.sleeps()
        sleeper.consumer.subscription.close()
