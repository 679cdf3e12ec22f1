"""The contract of the realm, continued: what a plain subscription gives back comes again to it, while it lives, and the
journal hears nothing of it; on nodes of one store and of several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.events.selection import Selection
from native_backend.limits import RealmLimits
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.subscriptions.partitioned import eids_of
from tests.contract.actions import LONG_MS, Sleeper, commit, committed, posting, publish, wait
from tests.kit.realm.fixtures import SMALL, SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def subscriber(realm: RealmProcess, properties: Properties | None = None) -> tuple[Node, Consumer]:
    node = realm.create("news", "channel", properties or Properties())
    return node, realm.consumer(node, "plain")


def current(realm: RealmProcess, node: Node) -> Node:
    latest = realm.realm.node(node.name)
    assert latest is not None
    return latest


def settled_in_the_journal(realm: RealmProcess) -> int:
    return sum(len(record["entries"]) for record in realm.journal())


def test_it_comes_again_to_that_link_lowest_first_and_ahead_of_new_ones(realm: RealmProcess) -> None:
    node, consumer = subscriber(realm)
    other = realm.consumer(node, "plain")
    eids = realm.publish(node, bodies(20))
    assert by_store(consumer.receive(20)) == by_store(eids)
    first = {eid: consumer.bodies[eid] for eid in eids}
    assert consumer.settle("return", [eids[8], eids[3], eids[4]]) == "done"
    assert consumer.settle("return", [eids[6]], failed=True) == "done"
    more = realm.publish(node, bodies(5))
    back = sorted([eids[3], eids[4], eids[6], eids[8]])
    consumer.bodies.clear()
    assert by_store(consumer.receive(9)) == by_store([*back, *more])
    assert {eid: consumer.bodies[eid] for eid in back} == {eid: first[eid] for eid in back}
    assert [consumer.failed[eid] for eid in (eids[3], eids[4], eids[6], eids[8])] == [0, 0, 1, 0]
    assert {eid for eid, again in consumer.again.items() if again} == set(back)
    assert consumer.settle("return", [eids[6]], failed=True) == "done"
    assert consumer.receive(1) == [eids[6]]
    assert consumer.failed[eids[6]] == 2
    assert consumer.drain() == []
    assert by_store(other.receive(25)) == by_store([*eids, *more])
    assert not any(other.again.values()) and not any(other.failed.values())
    assert other.drain() == []
    assert settled_in_the_journal(realm) == 0


def test_it_is_read_again_when_its_window_has_gone_and_nothing_new_goes_ahead(start: Start) -> None:
    realm = start(SMALL)
    node, consumer = subscriber(realm)
    beside = realm.consumer(node, "plain")  # the window is not this one's alone
    eids = realm.publish(node, bodies(500, 100))
    consumer.receive(500)
    back = eids[::7]
    assert consumer.settle("return", back[::-1], failed=True) == "done"
    more = realm.publish(node, bodies(20, 100))
    consumer.bodies.clear()
    got = consumer.receive(len(back) + 20)
    assert by_store(got) == by_store([*sorted(back), *more])
    assert [consumer.bodies[eid] for eid in back] == bodies(500, 100)[::7]
    assert by_store(beside.receive(520)) == by_store([*eids, *more])


def test_what_it_has_dealt_with_is_forgotten_and_so_is_all_when_it_goes(realm: RealmProcess) -> None:
    node, consumer = subscriber(realm)
    eids = realm.publish(node, bodies(6))
    consumer.receive(6)
    assert consumer.settle("return", eids, failed=True) == "done"
    assert by_store(consumer.receive(6)) == by_store(eids)
    for some in by_store(eids[:3]).values():
        consumer.subscription.forget(some)
    assert consumer.settle("return", eids[:4], failed=True) == "done"  # not that anybody would
    assert by_store(consumer.receive(4)) == by_store(eids[:4])
    assert [consumer.failed[eid] for eid in eids[:4]] == [1, 1, 1, 2]
    consumer.subscription.close()
    assert consumer.settle("return", eids, failed=True) == "done", "no one is there to be given it"
    assert realm.consumer(node, "plain").drain() == []


def test_what_has_expired_meanwhile_is_not_given_again(realm: RealmProcess) -> None:
    node, consumer = subscriber(realm)
    eids = publish(realm, node, [LONG_MS, 0] * 3)
    assert by_store(consumer.receive(6)) == by_store(eids)
    set_properties(realm.log, realm.prefix, node.name, lambda old: replace(old, ttl_ms=1), realm.clock)
    realm.until(lambda: current(realm, node).properties.ttl_ms == 1, "the node's time to live")
    wait(realm, 1)
    assert consumer.settle("return", eids, failed=True) == "done"
    assert by_store(consumer.receive(3)) == by_store(eids[::2])
    assert consumer.drain() == []


def test_what_was_trimmed_meanwhile_is_not_given_again(start: Start) -> None:
    realm = start(SMALL)
    node, consumer = subscriber(realm)
    realm.consumer(node, "plain")
    eids = realm.publish(node, bodies(600, 100))
    consumer.receive(600)
    kept = []
    for at, some in by_store(eids).items():
        realm.world.open().control.trim(node.topic, at, eids_of(some)[5])
        kept += some[5:10]
    early = [eid for some in by_store(eids).values() for eid in some[:10]]
    assert consumer.settle("return", early, failed=True) == "done"
    assert by_store(consumer.receive(len(kept))) == by_store(kept)
    assert consumer.drain() == []


def test_a_selector_holds_for_what_comes_again(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    tens = Selection("tens", lambda values: [int(value) % 10 == 0 for value in values])
    consumer = realm.consumer(node, "plain", selection=tens)
    eids = realm.publish(node, bodies(100))
    assert by_store(consumer.receive(10)) == by_store(eids[::10])
    assert consumer.settle("return", eids[20:60:10], failed=True) == "done"
    assert by_store(consumer.receive(4)) == by_store(eids[20:60:10])
    assert consumer.drain() == []


def test_a_failed_one_rests_as_its_node_says_and_no_longer_than_there_is_room(start: Start) -> None:
    realm = start(RealmLimits(returned_events=2))
    node, consumer = subscriber(realm, Properties(redelivery_delay_ms=300))
    eids = by_store(realm.publish(node, bodies(9)))[0][:3]  # each store counts for itself
    consumer.receive(9)
    began_ms = realm.clock.epoch_us() // 1000
    assert consumer.settle("return", eids[:2], failed=True) == "done"
    assert consumer.settle("return", eids[2:], failed=True) == "done"
    late = realm.publish(node, bodies(1))
    assert by_store(consumer.receive(2)) == by_store([eids[2], *late]), "no room to let it rest"
    assert consumer.receive(2) == eids[:2]
    assert realm.clock.epoch_us() // 1000 >= began_ms + 300
    assert consumer.settle("return", eids[:2]) == "done"
    assert consumer.receive(2) == eids[:2], "what is released comes at once"


def test_the_last_attempt_is_known(realm: RealmProcess) -> None:
    node, consumer = subscriber(realm, Properties(attempts=2))
    eids = by_store(realm.publish(node, bodies(9)))[0][:2]
    consumer.receive(9)
    assert consumer.subscription.last_attempts(eids) is None
    assert consumer.settle("return", eids[:1], failed=True) == "done"
    assert consumer.receive(1) == eids[:1]
    assert consumer.subscription.last_attempts(eids) == [True, False]


def test_who_sleeps_is_woken_by_what_it_gives_back(realm: RealmProcess) -> None:
    node = realm.create("news", "channel", Properties(redelivery_delay_ms=500))
    sleeper = Sleeper(realm, node, "plain")
    consumer = sleeper.consumer
    eids = realm.publish(node, bodies(3))
    consumer.receive(3)
    before = sleeper.park().woken
    assert consumer.settle("return", eids) == "done"
    assert by_store(sleeper.wakes(before).receive(3)) == by_store(eids)
    sleeper.park()
    assert consumer.settle("return", eids, failed=True) == "done"
    got: list[int] = []

    def all_again() -> bool:
        """Asked only when it was woken: at once, to look when there will be something, and then."""
        nonlocal before
        if sleeper.woken > before:
            before = sleeper.woken
            while more := consumer.take():
                got.extend(more)
            if not consumer.subscription.park(sleeper.wake):
                before -= 1  # asked again next turn
        return len(got) >= 3

    realm.until(all_again, "what rested")
    assert by_store(got) == by_store(eids)


def test_a_drain_ends_when_all_that_came_back_was_given(start: Start) -> None:
    realm = start(SMALL)
    node, consumer = subscriber(realm)
    realm.consumer(node, "plain")
    eids = realm.publish(node, bodies(300, 100))
    consumer.receive(300)
    assert consumer.settle("return", eids[:30]) == "done"
    got: list[int] = []

    def drained() -> bool:
        got.extend(more := consumer.take(7))
        return not more and consumer.subscription.is_searched()

    realm.until(drained, "the end of the drain")
    assert by_store(got) == by_store(eids[:30])


@pytest.mark.parametrize("operation", ["acknowledge", "discard", "dead-letter"])
def test_nothing_else_can_be_settled(realm: RealmProcess, operation: str) -> None:
    node, consumer = subscriber(realm)
    eids = realm.publish(node, bodies(2))
    consumer.receive(2)
    assert consumer.settle(operation, eids) == "not-found"  # type: ignore[arg-type]
    assert consumer.drain() == []


def waiting_for(realm: RealmProcess, consumer: Consumer, count: int | None) -> None:
    realm.until(lambda: consumer.subscription.waiting() == count, f"{count} that wait for it")


def test_it_counts_what_it_was_not_given_without_a_read(realm: RealmProcess) -> None:
    node, consumer = subscriber(realm)
    waiting_for(realm, consumer, 0)
    realm.publish(node, bodies(20))
    waiting_for(realm, consumer, 20)
    consumer.receive(13)
    waiting_for(realm, consumer, 7)
    assert committed(realm, commit(realm, [], [posting(realm, node.name, bodies(3))])).answer == "done"
    waiting_for(realm, consumer, 10)
    consumer.receive(10)
    waiting_for(realm, consumer, 0)
    late = realm.consumer(node, "plain")
    waiting_for(realm, late, 0)
    realm.publish(node, bodies(1))
    waiting_for(realm, late, 1)
    waiting_for(realm, consumer, 1)


def test_what_is_not_to_be_given_does_not_wait(realm: RealmProcess) -> None:
    node, consumer = subscriber(realm)
    publish(realm, node, [LONG_MS, 0, LONG_MS, 0])
    waiting_for(realm, consumer, 4)
    wait(realm, LONG_MS)
    waiting_for(realm, consumer, 2)


def test_what_has_expired_before_it_is_due_counts_once(realm: RealmProcess) -> None:
    node, consumer = subscriber(realm)
    due_ms = realm.clock.epoch_us() // 1000 + 2 * LONG_MS
    keys = [b"1;basic;run;%d;1;4;T%d;0;;0;D%d" % (at, LONG_MS, due_ms) for at in range(1, 6)]
    realm.publish(node, bodies(5), keys)
    publish(realm, node, [0] * 3)
    waiting_for(realm, consumer, 3)
    wait(realm, LONG_MS)
    waiting_for(realm, consumer, 3)


def test_what_a_selector_would_give_is_not_known(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    some = realm.consumer(node, "plain", selection=Selection("some", lambda values: [True] * len(values)))
    realm.publish(node, bodies(3))
    assert some.subscription.waiting() is None
    some.receive(3)
    assert some.subscription.waiting() is None
