"""The contract of the realm, continued: what events ask of their delivery by the marks in their keys; on nodes of
one store and of several."""

from __future__ import annotations

import pytest

from native_backend.events.selection import Selection
from native_backend.limits import RealmLimits
from native_backend.nodes.node import Node
from native_backend.nodes.words import NodeKind
from native_backend.subscriptions.subscription import Mode
from tests.contract.actions import in_each_store, visible, wait
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD

DELAY_MS = 300


def now_ms(realm: RealmProcess) -> int:
    return realm.clock.epoch_us() // 1000


def publish(realm: RealmProcess, node: Node, *marks: str) -> list[int]:
    """One event each, with those marks."""
    keys = [b"1;basic;run;%d;1;4;;0;;0%s" % (at, mark.encode()) for at, mark in enumerate(marks, 1)]
    return realm.publish(node, bodies(len(keys)), keys)


def publish_each(realm: RealmProcess, node: Node, *marks: str) -> list[list[int]]:
    """One event each with those marks, in every store: a group of messages is in one. The places by mark."""
    count = node.partitions  # what is published goes to all stores before any gets its next
    places = publish(realm, node, *(mark for mark in marks for _ in range(count)))
    return [places[at : at + count] for at in range(0, len(places), count)]


def due_in(realm: RealmProcess, ms: int) -> str:
    return f";D{now_ms(realm) + ms}"


@pytest.mark.parametrize("selecting", [False, True])
@pytest.mark.parametrize(("kind", "mode"), [("queue", "queue"), ("channel", "plain"), ("channel", "durable")])
def test_what_is_not_due_is_passed_over_until_it_is(
    realm: RealmProcess, kind: str, mode: Mode, selecting: bool
) -> None:
    node = realm.create("news", kind)  # type: ignore[arg-type]
    selection = Selection("all", lambda values: [True] * len(values)) if selecting else None
    consumer = realm.consumer(node, mode, "d" if mode == "durable" else None, selection=selection)
    begun = now_ms(realm)
    eids = publish(realm, node, due_in(realm, DELAY_MS), "", f";D+{DELAY_MS}", "", ";D1")
    came: dict[int, int] = {}

    def all_came() -> bool:
        came.update(dict.fromkeys(consumer.take(), now_ms(realm)))
        return len(came) == len(eids)

    realm.until(all_came, "all of them")
    assert min(came[eids[0]], came[eids[2]]) >= begun + DELAY_MS
    assert by_store([eid for eid in came if eid not in (eids[0], eids[2])]) == by_store([eids[1], *eids[3:]])
    assert not any(consumer.again.values()) and not any(consumer.failed.values())


def test_an_event_that_is_not_due_outlives_a_kill_and_blocks_no_other(start: Start) -> None:
    first = start()
    node = first.create("orders")
    consumer = first.consumer(node)
    due = due_in(first, 60_000)
    eids = publish(first, node, due, "", due, "")
    given = consumer.receive(2)
    assert sorted(given) == sorted([eids[1], eids[3]])
    consumer.acknowledge(given)
    first.kill()
    second = start()
    queue = second.find("orders")
    assert queue is not None
    again = second.consumer(queue)
    assert again.drain() == []
    wait(second, 60_000)
    assert by_store(again.receive(2)) == by_store([eids[0], eids[2]])


def test_no_more_waits_than_there_is_room_for(start: Start) -> None:
    realm = start(RealmLimits(delayed_ranges=3))
    node = realm.create("orders")
    consumer = realm.consumer(node)
    far = [due_in(realm, 400 + 100 * at) for at in range(6)]
    eids = publish_each(realm, node, *far, "")
    for at, got in by_store(consumer.receive(7 * node.partitions)).items():
        assert len(got) == 7
        last = [*by_store(eids[-2])[at], *by_store(eids[-1])[at]]
        assert got[-1] in last, "what lies behind comes when there is room, and nothing is lost"


def test_a_group_is_one_links_and_what_waits_for_it_comes_in_order(realm: RealmProcess) -> None:
    node = realm.create("orders")
    consumer, other = realm.consumer(node), realm.consumer(node)
    stores = node.partitions
    (first,) = publish_each(realm, node, ";Ga")
    assert sorted(consumer.receive(stores)) == first
    a, b, more_a, none, more_b = publish_each(realm, node, ";Ga", ";Gb", ";Ga", "", ";Gb")
    assert by_store(other.receive(3 * stores)) == by_store([*b, *none, *more_b])
    assert consumer.settle("return", first) == "done"
    assert other.drain() == [], "it is looked at, and kept for the one"
    assert by_store(consumer.receive(3 * stores)) == by_store([*first, *a, *more_a])
    consumer.subscription.close()
    assert by_store(other.receive(3 * stores)) == by_store([*first, *a, *more_a]), "with its link a group is anybody's"


def test_what_a_link_sent_elsewhere_leaves_its_group(realm: RealmProcess) -> None:
    node = realm.create("orders")
    consumer, other = realm.consumer(node), realm.consumer(node)
    first, second = publish_each(realm, node, ";Ga", ";Ga")
    assert by_store(consumer.receive(2 * node.partitions)) == by_store([*first, *second])
    assert consumer.settle("return", first, failed=True, undeliverable_here=True) == "done"
    assert by_store(other.receive(node.partitions)) == by_store(first)


def test_a_purge_takes_what_is_kept_for_a_link_and_what_is_not_due(realm: RealmProcess) -> None:
    node = realm.create("orders")
    consumer, other = realm.consumer(node), realm.consumer(node)
    (first,) = publish_each(realm, node, ";Ga")
    assert by_store(consumer.receive(node.partitions)) == by_store(first)
    publish_each(realm, node, ";Ga", due_in(realm, 60_000), ";Ga")
    assert other.drain() == []
    in_each_store(realm, "purge", node)
    assert consumer.drain() == [] and other.drain() == []


@pytest.mark.parametrize(("kind", "mode"), [("queue", "queue"), ("channel", "plain"), ("channel", "durable")])
@pytest.mark.parametrize("whose", ["with a time to live", "another program's"])
def test_a_drain_is_not_over_while_its_reader_is_opened_anew(
    realm: RealmProcess, kind: NodeKind, mode: Mode, whose: str
) -> None:
    """Times and headers are read only once an event needs them; then the same events are read again."""
    node = realm.create("orders", kind)
    consumer = realm.consumer(node, mode, "d" if mode == "durable" else None)
    for part in node.parts if whose == "another program's" else ():
        realm.append(part, bodies(3))
    eids = realm.publish(node, bodies(6), [b"1;basic;run;%d;1;4;T3600000;0;;0" % at for at in range(1, 7)])
    visible(realm, node, eids)
    got: list[int] = []

    def searched() -> bool:
        got.extend(more := consumer.take())
        return not more and consumer.subscription.is_searched()

    realm.until(searched, "the end of the search")
    assert set(got) >= set(eids)
    assert len(got) == len(eids) + (3 * node.partitions if whose == "another program's" else 0)


def test_a_drain_is_over_when_all_that_was_stored_was_looked_at(realm: RealmProcess) -> None:
    """Also where the reader lags: never before the link was given what had been published."""
    node, news = realm.create("orders"), realm.create("news", "channel")
    for target, mode in ((node, "queue"), (news, "plain")):
        consumer = realm.consumer(target, mode)  # type: ignore[arg-type]
        for _ in range(5):
            (eids,) = publish_each(realm, target, "")
            visible(realm, target, eids)
            got: list[int] = []

            def searched(got: list[int] = got, consumer: object = consumer) -> bool:
                got += consumer.take()  # type: ignore[attr-defined]
                return bool(consumer.subscription.is_searched())  # type: ignore[attr-defined]

            realm.until(searched, "the end of the search")
            consumer.subscription.search_anew()
            assert by_store(got) == by_store(eids)
