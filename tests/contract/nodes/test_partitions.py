"""The contract of nodes with several stores, on every log: plain partitions and priority levels."""

from __future__ import annotations

import pytest

from native_backend.admin import create_node, delete_node, show_node
from native_backend.answers import Published
from native_backend.journal import journal_topic, tail
from native_backend.limits import RealmLimits
from native_backend.metadata_writer import set_properties
from native_backend.nodes import Node
from native_backend.properties import Properties, PropertyError
from native_backend.selection import Selection
from native_backend.spread import SpreadSubscription, by_partition, partition_of, place
from native_backend.subscription import Mode
from native_backend.terms import Terms
from tests.contract.test_realm_parking import Sleeper
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import Start, bodies, fold, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


def wide(gateway: Gateway, kind: str = "queue", partitions: int = 3, levels: int = 0, name: str = "wide") -> Node:
    properties = Properties(priority_levels=levels) if levels else Properties(partitions=partitions)
    create_node(gateway.log, gateway.prefix, name, kind, gateway.clock, properties)  # type: ignore[arg-type]
    node = gateway.find(name)
    assert node is not None
    return node


def fill(gateway: Gateway, node: Node, count: int = 30) -> dict[int, bytes]:
    """So many events in every store: bodies by place."""
    filled: dict[int, bytes] = {}
    for part in node.parts:
        sent = [b"%d:%s" % (part.partition, body) for body in bodies(count)]
        eids = gateway.publish(part, sent)
        filled |= zip([place(part.partition, eid) for eid in eids], sent, strict=True)
        seen(gateway, part, eids[-1])
    return filled


def seen(gateway: Gateway, part: Node, eid: int) -> None:
    """A log may show what is stored a little late."""
    gateway.until(lambda: gateway.log.bounds(part.topic, part.partition)[1] > eid, "the last event")


def test_every_store_has_an_id_and_an_end_of_its_own(gateway: Gateway) -> None:
    node = wide(gateway)
    assert len({part.store for part in node.parts}) == 3
    filled = fill(gateway, node, 4)
    shown = show_node(gateway.log, gateway.prefix, "wide")
    assert shown is not None
    assert [(durable.name, durable.partition) for durable in shown.durables] == [
        ("queue", 0),
        ("queue", 1),
        ("queue", 2),
    ]
    assert shown.events >= len(filled)
    assert all(end - first >= 4 for first, end in shown.parts)


def test_a_queue_gives_the_events_of_all_its_stores_each_in_order(gateway: Gateway) -> None:
    node = wide(gateway)
    filled = fill(gateway, node)
    consumer = gateway.consumer(node)
    places = consumer.receive(len(filled))
    assert sorted(places) == sorted(filled)
    assert fold(consumer, places) == [filled[one] for one in places]
    for at in range(3):
        of_one = [one for one in places if partition_of(one) == at]
        assert of_one == sorted(of_one)
    _acknowledge(consumer, places)
    assert consumer.drain() == []
    lows = {(part.topic, part.partition): gateway.state(part).low for part in node.parts}
    assert all(gateway.state(part).unsettled == 0 for part in node.parts)

    def shown() -> dict[tuple[str, int], int]:
        projected = gateway.log.projected(f"{gateway.prefix}.queue.wide")
        return {where: offset for where, (offset, _) in projected.items()}

    gateway.until(lambda: shown() == lows, "the group's offset in every partition")


def _acknowledge(consumer: Consumer, places: list[int]) -> None:
    for found in by_partition(places).values():
        consumer.acknowledge([places[at] for at in found])


def test_stores_are_taken_from_by_turns(gateway: Gateway) -> None:
    node = wide(gateway)
    fill(gateway, node, 50)
    consumer = gateway.consumer(node)
    spread = consumer.subscription
    assert isinstance(spread, SpreadSubscription)
    seen = 0
    for _ in range(150):
        at = spread._turn % 3
        dispatch = gateway.realm._shard.opened(node.part(at), "queue")
        assert dispatch is not None and dispatch.feed is not None
        here = dispatch.feed.held(dispatch.state.position) is not None  # a log may bring it a little later
        [one] = consumer.receive(1)
        assert partition_of(one) == at or not here
        seen += here
    assert seen >= 10


def test_what_was_not_settled_in_any_store_comes_again_after_a_kill(start: Start) -> None:
    before = start()
    node = wide(before)
    filled = fill(before, node)
    consumer = before.consumer(node)
    places = consumer.receive(len(filled))
    done = [one for at, one in enumerate(places) if at % 2]
    _acknowledge(consumer, done)
    before.kill()
    after = start()
    found = after.find("wide")
    assert found == node
    again = after.consumer(node).receive(len(places) - len(done))
    assert sorted(again) == sorted(set(places) - set(done))


def test_a_durable_begins_at_the_end_of_every_store_and_outlives_its_process(start: Start) -> None:
    before = start()
    node = wide(before, "channel")
    fill(before, node, 5)
    consumer = before.consumer(node, "durable", "d")
    assert before.subscribed(node, "durable", "d").answer == "in-use"
    assert consumer.drain() == []
    filled = fill(before, node, 5)
    places = consumer.receive(15)
    assert sorted(places) == sorted(filled)
    _acknowledge(consumer, places)
    consumer.subscription.close()
    later = fill(before, node, 5)
    before.close()
    after = start()
    assert sorted(after.consumer(node, "durable", "d").receive(15)) == sorted(later)


def test_a_plain_subscriber_gets_what_comes_from_now_on(gateway: Gateway) -> None:
    node = wide(gateway, "channel")
    fill(gateway, node, 5)
    consumer = gateway.consumer(node, "plain")
    filled = fill(gateway, node, 5)
    assert sorted(consumer.receive(15)) == sorted(filled)


def test_a_deleted_durable_has_its_end_in_every_store_and_begins_anew(start: Start) -> None:
    before = start()
    node = wide(before, "channel")
    before.consumer(node, "durable", "d").subscription.close()
    fill(before, node, 5)
    assert before.command("delete", node, "d").answer == "done"
    entries = [entry for _, record in tail(before.log, journal_topic(before.prefix), 0) for entry in record["entries"]]
    assert {entry["store"] for entry in entries if entry["operation"] == "delete"} == {p.store for p in node.parts}
    assert before.consumer(node, "durable", "d").drain() == []
    filled = fill(before, node, 2)
    before.kill()
    after = start()
    assert sorted(after.consumer(node, "durable", "d").receive(6)) == sorted(filled)


def test_a_deleted_node_is_lost_to_its_consumers_and_its_name_is_free(gateway: Gateway) -> None:
    node = wide(gateway)
    consumer = gateway.consumer(node)
    assert delete_node(gateway.log, gateway.prefix, "wide")
    assert gateway.find("wide") is None
    gateway.turn()
    assert consumer.take() == []
    other = wide(gateway)
    filled = fill(gateway, other, 2)
    assert sorted(gateway.consumer(other).receive(6)) == sorted(filled)


def test_the_highest_level_goes_first(start: Start) -> None:
    gateway = start(RealmLimits(level_start_s=3.0))  # what a busy machine may need until the readers are there
    node = wide(gateway, levels=3)
    fill(gateway, node, 20)
    consumer = gateway.consumer(node)
    levels = [partition_of(one) for _ in range(30) for one in consumer.receive(1)]
    assert levels == [2] * 20 + [1] * 10
    fill(gateway, node, 1)
    gateway.until(lambda: partition_of(consumer.receive(1)[0]) == 2, "the new one of the highest level")


def test_the_lowest_level_is_not_starved(gateway: Gateway) -> None:
    node = wide(gateway, levels=2)
    turns = gateway.realm._services.limits.level_turns
    for part, sent in zip(node.parts, ([b"low"], bodies(3 * turns)), strict=True):
        seen(gateway, part, gateway.publish(part, sent)[-1])
    consumer = gateway.consumer(node)
    levels = [partition_of(one) for _ in range(2 * turns) for one in consumer.receive(1)]
    assert levels.count(0) == 1
    assert turns // 2 < levels.index(0) < turns


def test_partitions_grow_and_consumers_are_told(gateway: Gateway) -> None:
    node = wide(gateway, partitions=1)
    old = [place(0, eid) for eid in gateway.publish(node, bodies(5))]
    consumer = gateway.consumer(node)
    assert consumer.receive(5) == old
    consumer.acknowledge(old[:2])
    changed = set_properties(gateway.log, gateway.prefix, "wide", lambda _: Properties(partitions=3), gateway.clock)
    assert changed is not None
    found = gateway.find("wide")
    assert found is not None
    assert found.partitions == 3
    assert consumer.take() == [], "it has lost its subscription"
    filled = fill(gateway, found, 4)
    again = gateway.consumer(found)
    assert sorted(again.receive(15)) == sorted([*old[2:], *filled])
    with pytest.raises(PropertyError, match="only grow"):
        set_properties(gateway.log, gateway.prefix, "wide", lambda _: Properties(partitions=2), gateway.clock)
    with pytest.raises(PropertyError, match="fixed when a node is created"):
        set_properties(gateway.log, gateway.prefix, "wide", lambda _: Properties(priority_levels=3), gateway.clock)


def _full(gateway: Gateway, honour: bool) -> Node:
    properties = Properties(partitions=3, capacity_events=30, honour_capacity=honour)
    create_node(gateway.log, gateway.prefix, "wide", "queue", gateway.clock, properties)
    node = gateway.find("wide")
    assert node is not None
    return node


def test_the_stores_of_a_node_share_its_capacity(gateway: Gateway) -> None:
    node = _full(gateway, True)
    first, second, third = node.parts
    gateway.publish(first, bodies(20))
    gateway.publish(second, bodies(10))
    owner = object()
    gateway.realm.publish(third, [b"key"], [b"too much"], owner)
    assert gateway.answer(Published, lambda answer: answer.owner is owner).answer == "capacity-reached"
    consumer = gateway.consumer(node)
    places = consumer.receive(30)
    _acknowledge(consumer, places[:5])
    gateway.publish(third, bodies(5))
    gateway.realm.publish(first, [b"key"], [b"too much"], owner)
    assert gateway.answer(Published, lambda answer: answer.owner is owner).answer == "capacity-reached"


def test_the_store_that_has_most_gives_up_its_oldest_events(gateway: Gateway) -> None:
    node = _full(gateway, False)
    first, second, third = node.parts
    gateway.publish(first, bodies(20))
    kept = [place(1, eid) for eid in gateway.publish(second, bodies(8))]
    kept += [place(2, eid) for eid in gateway.publish(third, bodies(9))]

    def evicted() -> int:
        entries = [entry for record in gateway.journal() for entry in record["entries"]]
        return sum(entry["operation"] == "evicted" and entry["store"] == first.store for entry in entries)

    gateway.until(lambda: evicted() > 0 and not gateway.realm.busy, "the eviction")
    places = gateway.consumer(node).receive(30)
    assert set(kept) <= set(places)
    assert len(places) == 30


def test_a_link_sleeps_until_any_of_its_stores_has_something(gateway: Gateway) -> None:
    node = wide(gateway, levels=3)
    sleeper = Sleeper(gateway, node).park()
    sleeper.sleeps()
    for part in (node.part(2), node.part(0)):
        before = sleeper.woken
        [eid] = gateway.publish(part, [b"wake up"])
        assert sleeper.wakes(before).receive(1) == [place(part.partition, eid)]
        sleeper.park()


def test_links_that_share_a_durable_compete_in_every_store(start: Start) -> None:
    before = start()
    node, shared = wide(before, "channel"), Terms(shared=True)
    links = [before.consumer(node, "durable", ":s", terms=shared) for _ in range(2)]
    assert before.subscribed(node, "durable", ":s").answer == "kind-differs"
    filled = fill(before, node, 10)
    got = [links[0].receive(15), links[1].receive(15)]
    assert sorted([*got[0], *got[1]]) == sorted(filled)
    _acknowledge(links[0], got[0])
    links[1].subscription.close()
    again = links[0].receive(15)
    assert sorted(again) == sorted(got[1])
    before.kill()
    after = start()
    assert after.subscribed(node, "durable", ":s").answer == "kind-differs"
    assert sorted(after.consumer(node, "durable", ":s", terms=shared).receive(15)) == sorted(got[1])


@pytest.mark.parametrize(("kind", "mode"), [("channel", "durable"), ("queue", "queue")])
def test_a_selector_chooses_in_every_store(gateway: Gateway, kind: str, mode: Mode) -> None:
    node = wide(gateway, kind)
    odd = Selection("odd", lambda values: [int(value[-1:]) % 2 == 1 for value in values])
    chosen = gateway.consumer(node, mode, "d" if mode == "durable" else None, selection=odd)
    filled = fill(gateway, node, 10)
    wanted = sorted(one for one, body in filled.items() if int(body[-1:]) % 2)
    got = chosen.receive(15)
    assert sorted(got) == wanted
    _acknowledge(chosen, got)
    assert chosen.drain() == []
    if kind == "queue":
        assert sorted(gateway.consumer(node).receive(15)) == sorted(filled.keys() - set(wanted))
