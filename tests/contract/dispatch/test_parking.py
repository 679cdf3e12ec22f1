"""The contract of the realm, continued: a link that found nothing is woken when there may be something, not before."""

from __future__ import annotations

from typing import Any

from native_backend.nodes import Node
from native_backend.properties import Properties
from native_backend.subscription import Mode
from tests.contract.test_realm_dead_letters import create
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.logs.worlds import SimulatedWorld
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


class Sleeper:
    """A consumer that parks."""

    def __init__(self, gateway: Gateway, node: Node, mode: Mode = "queue", durable: str | None = None) -> None:
        self.gateway = gateway
        self.consumer = gateway.consumer(node, mode, durable)
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    def park(self) -> Sleeper:
        """Once there is nothing for it; some logs have to look first."""

        def parked() -> bool:
            assert not self.consumer.take(1)
            return self.consumer.subscription.park(self.wake)

        self.gateway.until(parked, "a place to wait")
        return self

    def sleeps(self, turns: int = 30) -> None:
        before = self.woken
        for _ in range(turns):
            self.gateway.turn()
        assert self.woken == before, "woken for nothing"

    def wakes(self, before: int = 0) -> Consumer:
        self.gateway.until(lambda: self.woken > before, "being woken")
        return self.consumer


def test_a_link_sleeps_until_something_is_published(gateway: Gateway) -> None:
    news, orders = gateway.create("news", "channel"), gateway.create("orders")
    sleepers = [Sleeper(gateway, news, "durable", "d"), Sleeper(gateway, news, "plain"), Sleeper(gateway, orders)]
    for sleeper in sleepers:
        sleeper.park().sleeps()
    eids = gateway.publish(news, bodies(3))
    assert sleepers[0].wakes().receive(3) == eids
    assert sleepers[1].wakes().receive(3) == eids
    assert sleepers[2].woken == 0
    eids = gateway.publish(orders, bodies(1))
    assert sleepers[2].wakes().receive(1) == eids
    assert [sleeper.woken for sleeper in sleepers] == [1, 1, 1], "it is woken once, and parks anew if it likes"


def test_what_others_give_back_wakes(gateway: Gateway) -> None:
    """Returned, left behind by a link that ends, let go by a transaction whose link has gone."""
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(3))
    others = [gateway.consumer(node) for _ in eids]
    for other, eid in zip(others, eids, strict=True):
        assert other.receive(1) == [eid]
    sleeper = Sleeper(gateway, node).park()
    sleeper.sleeps()
    assert others[0].settle("return", eids[:1]) == "done"
    assert sleeper.wakes().take() == eids[:1]
    sleeper.park()
    others[1].subscription.close()
    assert sleeper.wakes(before=1).take() == eids[1:2]
    sleeper.park()
    assert others[2].subscription.hold(eids[2:])
    others[2].subscription.close()
    sleeper.sleeps()
    others[2].subscription.unhold(eids[2:])
    assert sleeper.wakes(before=2).take() == eids[2:]


def test_a_delayed_event_wakes_in_its_time(gateway: Gateway) -> None:
    node = create(gateway, "orders", Properties(redelivery_delay_ms=300))
    eids = gateway.publish(node, bodies(1))
    sleeper = Sleeper(gateway, node)
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
    assert sleeper.woken <= 3, "nobody asks all the time until then"


def test_those_who_compete_are_woken_as_far_as_it_goes_round(gateway: Gateway) -> None:
    node = gateway.create("orders")
    sleepers = [Sleeper(gateway, node) for _ in range(8)]
    for sleeper in sleepers:
        sleeper.park()
    eids = gateway.publish(node, bodies(1))
    first = sleepers[0].wakes()
    assert first.take() == eids
    sleepers[1].sleeps()
    assert [sleeper.woken for sleeper in sleepers] == [1] + [0] * 7
    gateway.publish(node, bodies(1))
    sleepers[1].wakes()  # and does not want it any more
    sleepers[2].wakes()
    assert sleepers[2].consumer.receive(1)
    sleepers[7].sleeps()


def test_a_durable_is_woken_when_its_place_was_moved(gateway: Gateway) -> None:
    """What purges, seeks and evicts moves the place where a link waits: it must not sleep there for ever."""
    node = gateway.create("orders")
    gateway.publish(node, bodies(5))
    sleeper = Sleeper(gateway, node)
    consumer = sleeper.consumer
    consumer.acknowledge(consumer.receive(5))
    sleeper.park()
    assert gateway.command("purge", node).answer == "done"
    eids = gateway.publish(node, bodies(1))
    assert sleeper.wakes().receive(1) == eids


def test_a_store_is_read_once_a_turn_for_all_who_wait(start: Start, world: Any, monkeypatch: Any) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    sleepers = [Sleeper(gateway, node, "durable", f"d{at}").park() for at in range(20)]
    dispatch = gateway.realm._shard.opened(node, "d0")
    assert dispatch is not None and dispatch.feed is not None and dispatch.feed._lead is not None
    lead, reads = dispatch.feed._lead, []
    if not isinstance(world, SimulatedWorld):
        gateway.turn()
    read = lead.reader.read

    def counted(count_max: int) -> Any:
        reads.append(count_max)
        return read(count_max)

    monkeypatch.setattr(lead, "reader", type("Reader", (), {"read": staticmethod(counted), "times_ms": []})())
    sleepers[0].sleeps(turns=10)
    assert len(reads) == 10
    monkeypatch.undo()
    eids = gateway.publish(node, bodies(1))
    for sleeper in sleepers:
        assert sleeper.wakes().receive(1) == eids


def test_a_lost_link_sleeps_on_and_is_told(gateway: Gateway) -> None:
    news = gateway.create("news", "channel")
    sleepers = [Sleeper(gateway, news, "durable", "d"), Sleeper(gateway, news, "plain")]
    for sleeper in sleepers:
        sleeper.park()
        sleeper.consumer.subscription.lose("not-found", "deleted")
        assert sleeper.consumer.take() == []
        assert sleeper.consumer.subscription.park(sleeper.wake)
        sleeper.sleeps()
        sleeper.consumer.subscription.close()
