"""The contract of the realm, continued: what a transaction or a move brings into a node with a capacity."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from native_backend.limits import RealmLimits
from native_backend.nodes.grants import ANONYMOUS
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.properties import Properties
from tests.contract.actions import FULL, commit, committed, create, entries, in_each_store, offer, posting, retire
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def test_a_transaction_that_would_overfill_a_node_is_refused_as_a_whole(realm: RealmProcess) -> None:
    """P-R3b: nothing of it is stored, in no node, and what it would have ended is held as before."""
    source, orders = realm.create("source"), create(realm, "orders", FULL)
    news = realm.create("news", "channel")
    taken = realm.publish(source, bodies(2))
    taker, listener = realm.consumer(source), realm.consumer(news, "durable", "d")
    assert by_store(taker.receive(2)) == by_store(taken)
    offer(realm, orders, 4)
    settlements = retire(taker, taken[:1])
    brings = [
        posting(realm, "news", [b"n"]),
        posting(realm, "orders", bodies(4)),
        posting(realm, "orders", bodies(3)),
    ]
    answer = committed(realm, commit(realm, settlements, brings))
    assert (answer.answer, answer.native, answer.node) == ("capacity-reached", "capacity-reached", "orders")
    assert answer.offsets == [-1] * 8
    assert listener.drain() == []
    taker.subscription.unreserve(taken[:1])
    taker.acknowledge(taken[:1])
    assert committed(realm, commit(realm, retire(taker, taken[1:]), brings[:2])).answer == "done"
    assert listener.receive(1)
    assert offer(realm, orders, 5)[1] == 3


def test_a_node_that_only_transactions_publish_to_is_counted(start: Start) -> None:
    """They leave holes in the log, which are read; what is under way counts, and what failed does not."""
    realm = start()
    orders = create(realm, "orders", FULL)
    owners = [commit(realm, [], [posting(realm, "orders", bodies(4))]) for _ in range(3)]
    assert [committed(realm, owner).answer for owner in owners] == ["done", "done", "capacity-reached"]
    assert realm.realm.may_publish(orders, ANONYMOUS) == "ready"
    assert committed(realm, commit(realm, [], [posting(realm, "orders", bodies(2))])).answer == "done"
    realm.until(lambda: realm.realm.may_publish(orders, ANONYMOUS) == "capacity-reached", "the node being full")
    consumer = realm.consumer(orders)
    consumer.acknowledge(consumer.receive(10)[:3])
    realm.until(lambda: realm.realm.may_publish(orders, ANONYMOUS) == "ready", "the room that was made")
    realm.close()
    later = start()
    assert committed(later, commit(later, [], [posting(later, "orders", bodies(4))])).answer == "capacity-reached"
    assert committed(later, commit(later, [], [posting(later, "orders", bodies(3))])).answer == "done"


def test_a_full_node_that_got_room_by_its_properties_takes_transactions(start: Start) -> None:
    """A transaction asks before it brings something: nothing else looks at the properties then."""
    realm = start(RealmLimits(metadata_interval_s=0.01))
    orders = create(realm, "orders", FULL)
    assert committed(realm, commit(realm, [], [posting(realm, "orders", bodies(10))])).answer == "done"
    realm.until(lambda: realm.realm.may_publish(orders, ANONYMOUS) == "capacity-reached", "the node being full")
    stores = realm.partitions
    for wanted in (replace(FULL, capacity_events=12, partitions=stores), Properties(partitions=stores)):
        with closing(realm.world.open()) as log:
            set_properties(log, realm.prefix, "orders", lambda _, to=wanted: to, realm.clock)  # type: ignore[misc]
        realm.until(lambda: realm.realm.may_publish(orders, ANONYMOUS) == "ready", "the room by the new properties")
        assert committed(realm, commit(realm, [], [posting(realm, "orders", bodies(2))])).answer == "done"


def test_what_transactions_bring_makes_a_node_give_up_its_oldest(realm: RealmProcess) -> None:
    create(realm, "orders", Properties(capacity_events=10))
    for _ in range(4):
        assert committed(realm, commit(realm, [], [posting(realm, "orders", bodies(5))])).answer == "done"
    realm.until(lambda: bool(entries(realm, "evicted")), "room being made")


def test_a_move_ends_where_its_target_is_full(realm: RealmProcess) -> None:
    """A command is about one store. The stores of the target share its capacity: the first moves fill it, the others
    move nothing."""
    orders, dead = realm.create("orders"), create(realm, "dead", FULL)
    eids = by_store(realm.publish(orders, bodies(15)))
    offer(realm, dead, 4)
    left: list[int] = []
    room = 6
    for part, moved in zip(orders.parts, in_each_store(realm, "move", orders, to="dead"), strict=True):
        some = eids[part.partition]
        count = min(room, len(some))
        assert (moved.answer, moved.count) == ("done", count)
        assert moved.detail == ("dead is full" if count < len(some) else "")
        room, left = room - count, left + some[count:]
    assert not room
    assert offer(realm, dead, 1) == ([], 1)
    assert by_store(realm.consumer(orders).receive(9)) == by_store(left)
    assert len(realm.consumer(dead).receive(10)) == 10
