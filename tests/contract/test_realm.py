"""The contract of the realm (docs/realm-interface.md) on every log: publish, consume, settle, durables."""

from __future__ import annotations

from random import Random

from tests.native_backend.gateway import Gateway
from tests.native_backend.realm_world import SMALL, Start, bodies, fold, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

# -- publish and consume


def test_a_queue_gives_what_was_published_in_order_with_its_eids(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(1000))
    assert eids == sorted(set(eids))
    consumer = gateway.consumer(node)
    assert consumer.receive(1000) == eids
    assert fold(consumer, eids) == bodies(1000)
    assert not any(consumer.failed.values())
    assert not any(consumer.again.values())
    consumer.acknowledge(eids)
    assert consumer.drain() == []


def test_competing_links_share_a_queue_and_nobody_gets_what_another_has(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(600))
    links = [gateway.consumer(node) for _ in range(3)]
    taken: list[list[int]] = [[], [], []]

    def all_taken() -> bool:
        for link, part in zip(links, taken, strict=True):
            part += link.take(50)
        return sum(map(len, taken)) >= 600

    gateway.until(all_taken, "600 events")
    assert sorted(eid for part in taken for eid in part) == eids
    assert min(map(len, taken)) >= 100  # who asks gets
    for link, part in zip(links, taken, strict=True):
        link.acknowledge(part)
    assert gateway.state(node).low > eids[-1]


def test_take_keeps_to_count_and_bytes_and_lets_a_large_event_pass_alone(gateway: Gateway) -> None:
    node = gateway.create("orders")
    sizes = [100] * 50 + [5000, 100, 100]
    gateway.publish(node, [b"x" * size for size in sizes])
    consumer = gateway.consumer(node)
    seen: list[int] = []

    def all_taken() -> bool:
        eids = consumer.take(10, 450)
        taken = [len(body) for body in fold(consumer, eids)]
        assert len(taken) <= 10
        assert sum(taken) <= 450 or len(taken) == 1
        seen.extend(taken)
        return len(seen) >= len(sizes)

    gateway.until(all_taken, "all events")
    assert seen == sizes


def test_a_channel_copies_to_plain_subscriptions_from_now_on(gateway: Gateway) -> None:
    node = gateway.create("news", "channel")
    gateway.publish(node, bodies(50))
    first, second = gateway.consumer(node, "plain"), gateway.consumer(node, "plain")
    eids = gateway.publish(node, bodies(200))
    # what was answered before Subscribed may or may not be seen; what came after must be
    assert first.drain()[-200:] == eids
    assert second.drain()[-200:] == eids
    second.subscription.close()
    more = gateway.publish(node, bodies(5))
    assert first.receive(5) == more
    assert second.take() == []


def test_events_reach_links_that_lag_behind_a_small_window(start: Start) -> None:
    gateway = start(SMALL)
    node = gateway.create("news", "channel")
    links = [gateway.consumer(node, "durable", f"d{at}") for at in range(5)]
    eids = gateway.publish(node, bodies(600, 100))
    for share, link in enumerate(links):  # five positions, one at the end, two readers for the rest
        link.receive(100 * share + 50)
    for link in links:
        missing = 600 - len(link.bodies)
        link.receive(missing)
        assert sorted(link.bodies) == eids
        assert [link.bodies[eid] for eid in eids] == bodies(600, 100)


# -- settling


def test_released_events_come_back_first_with_their_counts(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(20))
    consumer = gateway.consumer(node)
    consumer.receive(10)
    assert consumer.settle("return", eids[2:4]) == "done"
    assert consumer.settle("return", [eids[5]], failed=True) == "done"
    assert consumer.receive(13) == [eids[2], eids[3], eids[5], *eids[10:]]
    assert [consumer.failed[eid] for eid in (eids[2], eids[3], eids[5], eids[10])] == [0, 0, 1, 0]
    assert [consumer.again[eid] for eid in (eids[2], eids[3], eids[5], eids[10])] == [True, True, True, False]
    assert consumer.settle("return", [eids[5]], failed=True) == "done"
    assert consumer.receive(1) == [eids[5]]
    assert consumer.failed[eids[5]] == 2


def test_returned_events_are_read_again_when_their_window_has_gone(start: Start) -> None:
    gateway = start(SMALL)
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(500, 100))
    consumer = gateway.consumer(node)
    consumer.receive(500)
    back = [eid for at, eid in enumerate(eids) if at % 7 == 0]
    assert consumer.settle("return", back, failed=True) == "done"
    consumer.bodies.clear()
    assert sorted(consumer.receive(len(back))) == back
    assert [consumer.bodies[eid] for eid in back] == bodies(500, 100)[::7]
    consumer.acknowledge([*back, *(eid for at, eid in enumerate(eids) if at % 7)])
    state = gateway.state(node)
    assert (len(state.acked), len(state.returned), state.failed, state.covers) == (0, 0, {}, {})
    assert state.low == eids[-1] + 1


def test_a_rejected_event_is_discarded_and_never_comes_back(start: Start) -> None:
    gateway = start()
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(10))
    consumer = gateway.consumer(node)
    consumer.receive(10)
    assert consumer.settle("discard", eids[:5]) == "done"
    gateway.close()
    later = start().consumer(node)
    assert later.receive(5) == eids[5:]
    assert later.drain() == []


def test_what_a_closed_link_had_goes_to_the_others_uncounted(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(30))
    one, two = gateway.consumer(node), gateway.consumer(node)
    one.receive(30)
    one.acknowledge(eids[10:12])
    one.subscription.close()
    rest = eids[:10] + eids[12:]
    assert two.receive(28) == rest
    assert not any(two.failed.values())
    assert all(two.again.values())


def test_an_event_sent_elsewhere_does_not_come_to_that_link_again(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(6))
    one, two = gateway.consumer(node), gateway.consumer(node)
    one.receive(6)
    assert one.settle("return", [eids[1], eids[2], eids[4]], elsewhere=True, failed=True) == "done"
    assert one.settle("return", [eids[0], eids[3]]) == "done"
    assert one.receive(2) == [eids[0], eids[3]]
    assert one.drain() == []
    assert two.receive(3) == [eids[1], eids[2], eids[4]]
    two.subscription.close()
    assert one.drain() == []
    one.subscription.close()
    three = gateway.consumer(node)
    assert three.receive(6) == eids


def test_only_what_is_outstanding_can_be_settled_and_only_once(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(5))
    one, two = gateway.consumer(node), gateway.consumer(node)
    one.receive(5)
    two.seqs.update(one.seqs)
    assert two.settle("acknowledge", [eids[0]]) == "not-found"
    one.acknowledge([eids[0]])
    assert one.settle("acknowledge", [eids[1], eids[0]]) == "not-found"
    assert one.settle("discard", [eids[1], eids[1]]) == "not-found"
    one.acknowledge(eids[1:])
    assert one.settle("acknowledge", []) == "done"


def test_a_return_is_not_given_again_before_the_journal_holds_it(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(3))
    consumer = gateway.consumer(node)
    consumer.receive(3)
    owner = consumer.start("return", eids)
    assert consumer.take() == []
    gateway.settled(owner)
    assert consumer.receive(3) == eids


# -- durables


def test_a_durable_survives_close_and_reopen_with_individual_acknowledgement(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    gateway.publish(node, bodies(10))
    durable = gateway.consumer(node, "durable", "me:inbox")
    eids = gateway.publish(node, bodies(100))
    assert durable.receive(100) == eids  # it began at its first subscribe, not before
    done = [eid for at, eid in enumerate(eids) if at % 3]
    Random(3).shuffle(done)
    durable.acknowledge(done)
    assert durable.settle("return", [eids[0]], failed=True) == "done"
    gateway.close()

    later = start()
    again = later.consumer(node, "durable", "me:inbox")
    assert again.receive(34) == eids[::3]
    assert again.failed[eids[0]] == 1
    assert again.failed[eids[3]] == 0
    assert all(again.again.values())
    more = later.publish(node, bodies(2))
    assert again.receive(2) == more
    assert not again.again[more[0]]


def test_a_durable_keeps_what_comes_while_nobody_is_there(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    gateway.consumer(node, "durable", "me:inbox").subscription.close()
    eids = gateway.publish(node, bodies(10))
    durable = gateway.consumer(node, "durable", "me:inbox")
    assert durable.receive(10) == eids
    assert not any(durable.again.values())


def test_a_durable_is_exclusive(gateway: Gateway) -> None:
    node = gateway.create("news", "channel")
    durable = gateway.consumer(node, "durable", "me:inbox")
    assert gateway.subscribed(node, "durable", "me:inbox").answer == "in-use"
    gateway.consumer(node, "durable", "you:inbox")
    durable.subscription.close()
    assert gateway.subscribed(node, "durable", "me:inbox").answer == "ready"


def test_a_mode_that_does_not_go_with_the_node_is_refused(gateway: Gateway) -> None:
    assert gateway.subscribed(gateway.create("orders"), "durable", "me:inbox").answer == "unexpected"
    assert gateway.subscribed(gateway.create("news", "channel"), "queue").answer == "unexpected"


def test_a_hole_is_held_and_restored(start: Start) -> None:
    gateway = start()
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(500))
    consumer = gateway.consumer(node)
    consumer.receive(500)
    consumer.acknowledge(eids[1:])
    state = gateway.state(node)
    assert state.low <= eids[0]
    assert len(state.acked) == 1
    gateway.kill()
    later = start()
    again = later.consumer(node)
    assert again.receive(1) == [eids[0]]
    assert again.drain() == []
    again.acknowledge([eids[0]])
    assert later.state(node).low == eids[-1] + 1


def test_all_acknowledged_in_random_order_leaves_nothing(gateway: Gateway) -> None:
    node = gateway.create("orders")
    count = 100_000 if gateway.log.kind != "kafka" else 20_000
    for _ in range(count // 10_000):
        gateway.publish(node, bodies(10_000))
    consumer = gateway.consumer(node)
    eids = consumer.receive(count, 1 << 24)
    Random(4).shuffle(eids)
    owners = [consumer.start("acknowledge", eids[at : at + 5000]) for at in range(0, count, 5000)]
    assert [gateway.settled(owner) for owner in owners] == ["done"] * len(owners)
    state = gateway.state(node)
    assert (state.low, len(state.acked), len(state.returned)) == (max(eids) + 1, 0, 0)
    assert (state.failed, state.covers, len(consumer.subscription.outstanding)) == ({}, {}, 0)
