"""The contract of the realm (docs/realm-interface.md) on every log: publish, consume, settle, durables; on nodes of one
store and of several."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from native_backend.subscriptions.subscription import Mode
from tests.kit.realm.fixtures import SMALL, SPREAD, Start, bodies, fold, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD

# -- publish and consume


def test_a_queue_gives_what_was_published_in_order_with_its_eids(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(1000))
    assert all(some == sorted(set(some)) for some in by_store(eids).values())
    consumer = realm.consumer(node)
    assert by_store(consumer.receive(1000)) == by_store(eids)
    assert fold(consumer, eids) == bodies(1000)
    assert not any(consumer.failed.values())
    assert not any(consumer.again.values())
    consumer.acknowledge(eids)
    assert consumer.drain() == []


def test_competing_links_share_a_queue_and_no_link_gets_what_another_has(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(600))
    links = [realm.consumer(node) for _ in range(3)]
    taken: list[list[int]] = [[], [], []]

    def all_taken() -> bool:
        for link, part in zip(links, taken, strict=True):
            part += link.take(50)
        return sum(map(len, taken)) >= 600

    realm.until(all_taken, "600 events")
    assert sorted(eid for part in taken for eid in part) == sorted(eids)
    assert min(map(len, taken)) >= 100  # who asks gets
    for link, part in zip(links, taken, strict=True):
        link.acknowledge(part)
    assert realm.has_ended(node, eids)


def test_take_keeps_to_count_and_bytes_and_lets_a_large_event_pass_alone(realm: RealmProcess) -> None:
    node = realm.create("orders")
    sizes = [100] * 50 + [5000, 100, 100]
    realm.publish(node, [b"x" * size for size in sizes])
    consumer = realm.consumer(node)
    seen: list[int] = []

    def all_taken() -> bool:
        eids = consumer.take(10, 450)
        taken = [len(body) for body in fold(consumer, eids)]
        assert len(taken) <= 10
        assert sum(taken) <= 450 or len(taken) == 1
        seen.extend(taken)
        return len(seen) >= len(sizes)

    realm.until(all_taken, "all events")
    assert sorted(seen) == sorted(sizes)
    assert seen == sizes or node.partitions > 1


def test_a_channel_copies_to_plain_subscriptions_from_now_on(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    realm.publish(node, bodies(50))
    first, second = realm.consumer(node, "plain"), realm.consumer(node, "plain")
    eids = realm.publish(node, bodies(200))
    # what was answered before Subscribed may or may not be seen; what came after must be
    for consumer in (first, second):
        got = by_store(consumer.drain())
        assert all(got[at][-len(some) :] == some for at, some in by_store(eids).items())
    second.subscription.close()
    more = realm.publish(node, bodies(5))
    assert by_store(first.receive(5)) == by_store(more)
    assert second.take() == []


def test_events_reach_links_that_lag_behind_a_small_window(start: Start, partitions: int) -> None:
    realm = start(replace(SMALL, readers=SMALL.readers * partitions))  # each store of a link reads for itself
    node = realm.create("news", "channel")
    links = [realm.consumer(node, "durable", f"d{at}") for at in range(5)]
    eids = realm.publish(node, bodies(600, 100))
    for share, link in enumerate(links):  # five positions, one at the end, two readers for the rest
        link.receive(100 * share + 50)
    for link in links:
        missing = 600 - len(link.bodies)
        link.receive(missing)
        assert sorted(link.bodies) == sorted(eids)
        assert [link.bodies[eid] for eid in eids] == bodies(600, 100)


# -- settling


def test_released_events_come_back_first_with_their_counts(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(20))
    consumer = realm.consumer(node)
    had = consumer.receive(10)
    kept = {had[at]: consumer.bodies[had[at]] for at in (2, 3, 5)}
    assert consumer.settle("return", had[2:4]) == "done"
    assert consumer.settle("return", [had[5]], failed=True) == "done"
    back = sorted(kept)
    got = by_store(consumer.receive(13))
    wanted = by_store([*back, *(eid for eid in eids if eid not in had)])
    assert got == wanted
    assert [consumer.failed[eid] for eid in had[2:4]] == [0, 0]
    assert consumer.failed[had[5]] == 1
    assert {eid: again for eid, again in consumer.again.items() if again} == dict.fromkeys(back, True)
    assert {eid: consumer.bodies[eid] for eid in kept} == kept
    assert consumer.settle("return", [had[5]], failed=True) == "done"
    assert consumer.receive(1) == [had[5]]
    assert consumer.failed[had[5]] == 2


def test_returned_events_are_read_again_when_their_window_has_gone(start: Start) -> None:
    realm = start(SMALL)
    node = realm.create("orders")
    eids = realm.publish(node, bodies(500, 100))
    consumer = realm.consumer(node)
    consumer.receive(500)
    back = [eid for at, eid in enumerate(eids) if at % 7 == 0]
    assert consumer.settle("return", back, failed=True) == "done"
    consumer.bodies.clear()
    assert by_store(consumer.receive(len(back))) == by_store(back)
    assert [consumer.bodies[eid] for eid in back] == bodies(500, 100)[::7]
    consumer.acknowledge([*back, *(eid for at, eid in enumerate(eids) if at % 7)])
    for state in realm.states(node):
        assert (len(state.acked), len(state.returned), state.failed, state.covers) == (0, 0, {}, {})
    assert realm.has_ended(node, eids)


def test_a_rejected_event_is_discarded_and_never_comes_back(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(10))
    consumer = realm.consumer(node)
    consumer.receive(10)
    assert consumer.settle("discard", eids[:5]) == "done"
    realm.close()
    later = start().consumer(node)
    assert by_store(later.receive(5)) == by_store(eids[5:])
    assert later.drain() == []


def test_what_a_closed_link_had_goes_to_the_others_uncounted(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(30))
    consumer, two = realm.consumer(node), realm.consumer(node)
    consumer.receive(30)
    consumer.acknowledge(eids[10:12])
    consumer.subscription.close()
    rest = eids[:10] + eids[12:]
    assert by_store(two.receive(28)) == by_store(rest)
    assert not any(two.failed.values())
    assert all(two.again.values())


def test_an_event_sent_elsewhere_does_not_come_to_that_link_again(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(6))
    consumer, two = realm.consumer(node), realm.consumer(node)
    consumer.receive(6)
    assert consumer.settle("return", [eids[1], eids[2], eids[4]], undeliverable_here=True, failed=True) == "done"
    assert consumer.settle("return", [eids[0], eids[3]]) == "done"
    assert by_store(consumer.receive(2)) == by_store([eids[0], eids[3]])
    assert consumer.drain() == []
    assert by_store(two.receive(3)) == by_store([eids[1], eids[2], eids[4]])
    two.subscription.close()
    assert consumer.drain() == []
    consumer.subscription.close()
    three = realm.consumer(node)
    assert by_store(three.receive(6)) == by_store(eids)


def test_only_what_is_outstanding_can_be_settled_and_only_once(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = by_store(realm.publish(node, bodies(9)))[0]
    consumer, two = realm.consumer(node), realm.consumer(node)
    consumer.receive(9)
    two.seqs.update(consumer.seqs)
    assert two.settle("acknowledge", [eids[0]]) == "not-found"
    consumer.acknowledge([eids[0]])
    assert consumer.settle("acknowledge", [eids[1], eids[0]]) == "not-found"
    assert consumer.settle("discard", [eids[1], eids[1]]) == "not-found"
    consumer.acknowledge(eids[1:])
    assert consumer.settle("acknowledge", []) == "done"


def test_a_return_is_not_given_again_before_the_journal_holds_it(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(3))
    consumer = realm.consumer(node)
    consumer.receive(3)
    owner = consumer.start("return", eids)
    assert consumer.take() == []
    realm.settled(owner)
    assert by_store(consumer.receive(3)) == by_store(eids)


@pytest.mark.parametrize("kind", ["queue", "durable"])
def test_a_drain_waits_for_what_the_link_gave_back(realm: RealmProcess, kind: Mode) -> None:
    node = realm.create("node", "queue" if kind == "queue" else "channel")
    consumer = realm.consumer(node, kind, "d" if kind == "durable" else None)
    eids = realm.publish(node, bodies(9))
    consumer.receive(9)
    owner = consumer.start("return", eids)
    got: list[int] = []

    def drained() -> bool:
        got.extend(more := consumer.take())
        return not more and consumer.subscription.is_searched()

    realm.until(drained, "the end of the drain")
    assert by_store(got) == by_store(eids)
    assert realm.settled(owner) == "done"


# -- durables


def test_a_durable_survives_close_and_reopen_with_individual_acknowledgement(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    realm.publish(node, bodies(10))
    durable = realm.consumer(node, "durable", "me:inbox")
    eids = realm.publish(node, bodies(100))
    assert by_store(durable.receive(100)) == by_store(eids)  # it began at its first subscribe, not before
    done = [eid for at, eid in enumerate(eids) if at % 3]
    Random(3).shuffle(done)
    durable.acknowledge(done)
    assert durable.settle("return", [eids[0]], failed=True) == "done"
    realm.close()

    later = start()
    again = later.consumer(node, "durable", "me:inbox")
    assert by_store(again.receive(34)) == by_store(eids[::3])
    assert again.failed[eids[0]] == 1
    assert again.failed[eids[3]] == 0
    assert all(again.again.values())
    more = later.publish(node, bodies(2))
    assert by_store(again.receive(2)) == by_store(more)
    assert not again.again[more[0]]


def test_a_durable_keeps_events_while_no_consumer_is_attached(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "me:inbox").subscription.close()
    eids = realm.publish(node, bodies(10))
    durable = realm.consumer(node, "durable", "me:inbox")
    assert by_store(durable.receive(10)) == by_store(eids)
    assert not any(durable.again.values())


def test_a_durable_is_exclusive(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    durable = realm.consumer(node, "durable", "me:inbox")
    assert realm.subscribed(node, "durable", "me:inbox").answer == "in-use"
    realm.consumer(node, "durable", "you:inbox")
    durable.subscription.close()
    assert realm.subscribed(node, "durable", "me:inbox").answer == "ready"


def test_a_mode_that_does_not_go_with_the_node_is_refused(realm: RealmProcess) -> None:
    assert realm.subscribed(realm.create("orders"), "durable", "me:inbox").answer == "unexpected"
    assert realm.subscribed(realm.create("news", "channel"), "queue").answer == "unexpected"


def test_a_hole_is_held_and_restored(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(500))
    consumer = realm.consumer(node)
    consumer.receive(500)
    consumer.acknowledge(eids[1:])
    state = realm.state(node)  # of the store of the first event
    assert state.low <= eids[0]
    assert len(state.acked) == 1
    realm.kill()
    later = start()
    again = later.consumer(node)
    assert again.receive(1) == [eids[0]]
    assert again.drain() == []
    again.acknowledge([eids[0]])
    assert later.has_ended(node, eids)


def test_all_acknowledged_in_random_order_leaves_nothing(realm: RealmProcess) -> None:
    node = realm.create("orders")
    count = 100_000 if realm.log.kind != "kafka" and node.partitions == 1 else 20_000
    for _ in range(count // 10_000):
        realm.publish(node, bodies(10_000))
    consumer = realm.consumer(node)
    eids = consumer.receive(count, 1 << 24)
    Random(4).shuffle(eids)
    owners = [consumer.start("acknowledge", eids[at : at + 5000]) for at in range(0, count, 5000)]
    assert [realm.settled(owner) for owner in owners] == ["done"] * len(owners)
    assert realm.has_ended(node, eids)
    for state in realm.states(node):
        assert (len(state.acked), len(state.returned), state.failed, state.covers) == (0, 0, {}, {})
    assert len(consumer.subscription.outstanding) == 0


def test_a_turn_after_the_end_does_nothing(realm: RealmProcess) -> None:
    """The loop may have been woken before the realm was closed."""
    node = realm.create("orders")
    realm.publish(node, bodies(10))
    realm.close()
    assert realm.realm.poll() == []  # a mistake in a step would be raised here
