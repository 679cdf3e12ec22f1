"""The contract of the realm, continued: what a transaction or a move brings into a node with a capacity."""

from __future__ import annotations

from native_backend.access import ANONYMOUS
from native_backend.properties import Properties
from tests.contract.test_realm_capacity import FULL, offer
from tests.contract.test_realm_dead_letters import create, entries
from tests.contract.test_realm_units import commit, committed, enlist, posting
from tests.native_backend.gateway import Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


def test_a_transaction_that_would_overfill_a_node_is_refused_as_a_whole(gateway: Gateway) -> None:
    """P-R3b: nothing of it is stored, in no node, and what it would have ended is held as before."""
    source, orders = gateway.create("source"), create(gateway, "orders", FULL)
    news = gateway.create("news", "channel")
    taken = gateway.publish(source, bodies(2))
    taker, listener = gateway.consumer(source), gateway.consumer(news, "durable", "d")
    assert taker.receive(2) == taken
    offer(gateway, orders, 4)
    settlement = enlist(taker, taken[:1])
    brings = [
        posting(gateway, "news", [b"n"]),
        posting(gateway, "orders", bodies(4)),
        posting(gateway, "orders", bodies(3)),
    ]
    answer = committed(gateway, commit(gateway, [settlement], brings))
    assert (answer.answer, answer.native, answer.offsets) == ("capacity-reached", "orders is full", [-1] * 8)
    assert listener.drain() == []
    taker.subscription.unhold(taken[:1])
    taker.acknowledge(taken[:1])
    assert committed(gateway, commit(gateway, [enlist(taker, taken[1:])], brings[:2])).answer == "done"
    assert listener.receive(1)
    assert offer(gateway, orders, 5)[1] == 3


def test_a_node_that_only_transactions_publish_to_is_counted(start: Start) -> None:
    """They leave holes in the log, which are read; what is under way counts, and what failed does not."""
    gateway = start()
    orders = create(gateway, "orders", FULL)
    owners = [commit(gateway, [], [posting(gateway, "orders", bodies(4))]) for _ in range(3)]
    assert [committed(gateway, owner).answer for owner in owners] == ["done", "done", "capacity-reached"]
    assert gateway.realm.may_publish(orders, ANONYMOUS) == "ready"
    assert committed(gateway, commit(gateway, [], [posting(gateway, "orders", bodies(2))])).answer == "done"
    gateway.until(lambda: gateway.realm.may_publish(orders, ANONYMOUS) == "capacity-reached", "the node being full")
    consumer = gateway.consumer(orders)
    consumer.acknowledge(consumer.receive(10)[:3])
    gateway.until(lambda: gateway.realm.may_publish(orders, ANONYMOUS) == "ready", "the room that was made")
    gateway.close()
    later = start()
    assert committed(later, commit(later, [], [posting(later, "orders", bodies(4))])).answer == "capacity-reached"
    assert committed(later, commit(later, [], [posting(later, "orders", bodies(3))])).answer == "done"


def test_what_transactions_bring_makes_a_node_give_up_its_oldest(gateway: Gateway) -> None:
    create(gateway, "orders", Properties(capacity_events=10))
    for _ in range(4):
        assert committed(gateway, commit(gateway, [], [posting(gateway, "orders", bodies(5))])).answer == "done"
    gateway.until(lambda: bool(entries(gateway, "evicted")), "room being made")


def test_a_move_ends_where_its_target_is_full(gateway: Gateway) -> None:
    orders, dead = gateway.create("orders"), create(gateway, "dead", FULL)
    eids = gateway.publish(orders, bodies(15))
    offer(gateway, dead, 4)
    moved = gateway.command("move", orders, to="dead")
    assert (moved.answer, moved.count, moved.detail) == ("done", 6, "dead is full")
    assert offer(gateway, dead, 1) == ([], 1)
    assert gateway.consumer(orders).receive(9) == eids[6:]
    assert len(gateway.consumer(dead).receive(10)) == 10
