"""The contract of nodes with several stores, on every log: plain partitions and priority levels."""

from __future__ import annotations

import math
from typing import Any

import pytest

from native_backend.events.selection import Selection
from native_backend.journal.journal import journal_topic, tail
from native_backend.log.port import Reader
from native_backend.nodes.admin import create_node, delete_node, show_node
from native_backend.nodes.answers import Published
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.group_offset import low_of
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties, PropertyError
from native_backend.subscriptions.partitioned import PartitionedSubscription, by_partition, packed_eid, partition_of
from native_backend.subscriptions.subscription import Mode
from tests.contract.actions import Sleeper, wide
from tests.kit.realm.fixtures import Start, bodies, fold, realm, start, world
from tests.kit.realm.inside import context_of, shard_of
from tests.kit.realm.realm_process import Consumer, RealmProcess

__all__ = ["realm", "start", "world"]  # fixtures
SLOW_S = 0.5  # longer than a reader takes to begin, less than `level_start_s`


def fill(realm: RealmProcess, node: Node, count: int = 30) -> dict[int, bytes]:
    """So many events in every store: bodies by place."""
    filled: dict[int, bytes] = {}
    for part in node.parts:
        sent = [b"%d:%s" % (part.partition, body) for body in bodies(count)]
        eids = realm.publish(part, sent)
        filled |= zip([packed_eid(part.partition, eid) for eid in eids], sent, strict=True)
        seen(realm, part, eids[-1])
    return filled


def seen(realm: RealmProcess, part: Node, eid: int) -> None:
    """A log may show what is stored a little late."""
    realm.until(lambda: realm.log.control.bounds(part.topic, part.partition)[1] > eid, "the last event")


def test_every_store_has_an_id_and_an_end_of_its_own(realm: RealmProcess) -> None:
    node = wide(realm)
    assert len({part.store for part in node.parts}) == 3
    filled = fill(realm, node, 4)
    shown = show_node(realm.log, realm.prefix, "wide")
    assert shown is not None
    assert [(durable.name, durable.partition) for durable in shown.durables] == [
        ("queue", 0),
        ("queue", 1),
        ("queue", 2),
    ]
    assert shown.events >= len(filled)
    assert all(end - first >= 4 for first, end in shown.parts)


def test_a_queue_gives_the_events_of_all_its_stores_each_in_order(realm: RealmProcess) -> None:
    node = wide(realm)
    filled = fill(realm, node)
    consumer = realm.consumer(node)
    places = consumer.receive(len(filled))
    assert sorted(places) == sorted(filled)
    assert fold(consumer, places) == [filled[place] for place in places]
    for at in range(3):
        of_one = [place for place in places if partition_of(place) == at]
        assert of_one == sorted(of_one)
    _acknowledge(consumer, places)
    assert consumer.drain() == []
    lows = {(part.topic, part.partition): realm.state(part).low for part in node.parts}
    assert all(realm.state(part).unsettled == 0 for part in node.parts)

    def shown() -> dict[tuple[str, int], int]:
        projected = realm.log.control.projected(f"{realm.prefix}.queue.wide")
        return {where: low_of(position) for where, position in projected.items()}

    realm.until(lambda: shown() == lows, "the group's offset in every partition")


def _acknowledge(consumer: Consumer, places: list[int]) -> None:
    for indexes in by_partition(places).values():
        consumer.acknowledge([places[at] for at in indexes])


def test_stores_are_taken_from_by_turns(realm: RealmProcess) -> None:
    node = wide(realm)
    fill(realm, node, 50)
    consumer = realm.consumer(node)
    spread = consumer.subscription
    assert isinstance(spread, PartitionedSubscription)
    seen = 0
    for _ in range(150):
        at = spread._turn % 3
        dispatch = shard_of(realm.realm).opened(node.part(at), "queue")
        assert dispatch is not None and dispatch.window is not None
        here = dispatch.window.held(dispatch.state.position) is not None  # a log may bring it a little later
        [place] = consumer.receive(1)
        assert partition_of(place) == at or not here
        seen += here
    assert seen >= 10


def test_what_was_not_settled_in_any_store_comes_again_after_a_kill(start: Start) -> None:
    before = start()
    node = wide(before)
    filled = fill(before, node)
    consumer = before.consumer(node)
    places = consumer.receive(len(filled))
    done = [place for at, place in enumerate(places) if at % 2]
    _acknowledge(consumer, done)
    before.kill()
    after = start()
    queue = after.find("wide")
    assert queue == node
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


def test_a_plain_subscriber_gets_what_comes_from_now_on(realm: RealmProcess) -> None:
    node = wide(realm, "channel")
    fill(realm, node, 5)
    consumer = realm.consumer(node, "plain")
    filled = fill(realm, node, 5)
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


def test_a_deleted_node_is_lost_to_its_consumers_and_its_name_is_free(realm: RealmProcess) -> None:
    node = wide(realm)
    consumer = realm.consumer(node)
    assert delete_node(realm.log, realm.prefix, "wide")
    assert realm.find("wide") is None
    realm.turn()
    assert consumer.take() == []
    other = wide(realm)
    filled = fill(realm, other, 2)
    assert sorted(realm.consumer(other).receive(6)) == sorted(filled)


def test_the_highest_level_goes_first(realm: RealmProcess) -> None:
    node = wide(realm, levels=3)
    fill(realm, node, 20)
    consumer = realm.consumer(node)
    levels = [partition_of(place) for _ in range(30) for place in consumer.receive(1)]
    assert levels == [2] * 20 + [1] * 10
    fill(realm, node, 1)
    realm.until(lambda: partition_of(consumer.receive(1)[0]) == 2, "the new one of the highest level")


class _SlowReader:
    """A reader that has nothing before a moment of the realm's clock."""

    def __init__(self, reader: Reader, realm: RealmProcess, from_s: float) -> None:
        self._reader, self._realm, self._from_s = reader, realm, from_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(self, count_max: int) -> Any:
        late = self._realm.clock.monotonic_s() >= self._from_s
        return self._reader.read(count_max) if late else None


def test_the_highest_level_goes_first_though_its_reader_is_slow(
    realm: RealmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = wide(realm, levels=3)
    fill(realm, node, 5)
    opened, from_s = realm.log.open_reader, realm.clock.monotonic_s() + SLOW_S

    def open_reader(topic: str, partition: int, *how: Any) -> Any:
        reader = opened(topic, partition, *how)
        return _SlowReader(reader, realm, from_s) if partition == 2 else reader

    monkeypatch.setattr(realm.log, "open_reader", open_reader)
    consumer = realm.consumer(node)
    levels = [partition_of(place) for _ in range(15) for place in consumer.receive(1)]
    assert levels == [2] * 5 + [1] * 5 + [0] * 5


def test_a_selector_that_passes_over_a_level_does_not_wait_for_it(realm: RealmProcess) -> None:
    node = wide(realm, levels=2)
    filled = fill(realm, node, 5)
    lowest = Selection("lowest", lambda values: [value.startswith(b"0:") for value in values])
    consumer = realm.consumer(node, selection=lowest)
    assert isinstance(consumer.subscription, PartitionedSubscription)
    consumer.subscription._start_until_s = math.inf
    assert [filled[place][:2] for place in consumer.receive(5)] == [b"0:"] * 5


def test_the_lowest_level_is_not_starved(realm: RealmProcess) -> None:
    node = wide(realm, levels=2)
    turns = context_of(realm.realm).limits.level_turns
    for part, sent in zip(node.parts, ([b"low"], bodies(3 * turns)), strict=True):
        seen(realm, part, realm.publish(part, sent)[-1])
    consumer = realm.consumer(node)
    levels = [partition_of(place) for _ in range(2 * turns) for place in consumer.receive(1)]
    assert levels.count(0) == 1
    assert turns // 2 < levels.index(0) < turns


def test_partitions_grow_and_consumers_are_notified(realm: RealmProcess) -> None:
    node = wide(realm, partitions=1)
    old = [packed_eid(0, eid) for eid in realm.publish(node, bodies(5))]
    consumer = realm.consumer(node)
    assert consumer.receive(5) == old
    consumer.acknowledge(old[:2])
    changed = set_properties(realm.log, realm.prefix, "wide", lambda _: Properties(partitions=3), realm.clock)
    assert changed is not None
    queue = realm.find("wide")
    assert queue is not None
    assert queue.partitions == 3
    assert consumer.take() == [], "it has lost its subscription"
    filled = fill(realm, queue, 4)
    again = realm.consumer(queue)
    assert sorted(again.receive(15)) == sorted([*old[2:], *filled])
    with pytest.raises(PropertyError, match="only grow"):
        set_properties(realm.log, realm.prefix, "wide", lambda _: Properties(partitions=2), realm.clock)
    with pytest.raises(PropertyError, match="fixed when a node is created"):
        set_properties(realm.log, realm.prefix, "wide", lambda _: Properties(priority_levels=3), realm.clock)


def _full(realm: RealmProcess, honour: bool) -> Node:
    properties = Properties(partitions=3, capacity_events=30, honour_capacity=honour)
    create_node(realm.log, realm.prefix, "wide", "queue", realm.clock, properties)
    node = realm.find("wide")
    assert node is not None
    return node


def test_the_stores_of_a_node_share_its_capacity(realm: RealmProcess) -> None:
    node = _full(realm, True)
    first, second, third = node.parts
    realm.publish(first, bodies(20))
    realm.publish(second, bodies(10))
    owner = object()
    realm.realm.publish(third, [b"key"], [b"too much"], owner)
    assert realm.answer(Published, lambda answer: answer.owner is owner).answer == "capacity-reached"
    consumer = realm.consumer(node)
    places = consumer.receive(30)
    _acknowledge(consumer, places[:5])
    realm.publish(third, bodies(5))
    realm.realm.publish(first, [b"key"], [b"too much"], owner)
    assert realm.answer(Published, lambda answer: answer.owner is owner).answer == "capacity-reached"


def test_the_store_that_has_most_gives_up_its_oldest_events(realm: RealmProcess) -> None:
    node = _full(realm, False)
    first, second, third = node.parts
    realm.publish(first, bodies(20))
    kept = [packed_eid(1, eid) for eid in realm.publish(second, bodies(8))]
    kept += [packed_eid(2, eid) for eid in realm.publish(third, bodies(9))]

    def evicted() -> int:
        entries = [entry for record in realm.journal() for entry in record["entries"]]
        return sum(entry["operation"] == "evicted" and entry["store"] == first.store for entry in entries)

    realm.until(lambda: evicted() > 0 and not realm.realm.busy, "the eviction")
    places = realm.consumer(node).receive(30)
    assert set(kept) <= set(places)
    assert len(places) == 30


def test_a_link_sleeps_until_any_of_its_stores_has_something(realm: RealmProcess) -> None:
    node = wide(realm, levels=3)
    sleeper = Sleeper(realm, node).park()
    sleeper.sleeps()
    for part in (node.part(2), node.part(0)):
        before = sleeper.woken
        [eid] = realm.publish(part, [b"wake up"])
        assert sleeper.wakes(before).receive(1) == [packed_eid(part.partition, eid)]
        sleeper.park()


def test_links_that_share_a_durable_compete_in_every_store(start: Start) -> None:
    before = start()
    node, shared = wide(before, "channel"), DurableTerms(shared=True)
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
def test_a_selector_chooses_in_every_store(realm: RealmProcess, kind: str, mode: Mode) -> None:
    node = wide(realm, kind)
    odd = Selection("odd", lambda values: [int(value[-1:]) % 2 == 1 for value in values])
    chosen = realm.consumer(node, mode, "d" if mode == "durable" else None, selection=odd)
    filled = fill(realm, node, 10)
    wanted = sorted(place for place, body in filled.items() if int(body[-1:]) % 2)
    got = chosen.receive(15)
    assert sorted(got) == wanted
    _acknowledge(chosen, got)
    assert chosen.drain() == []
    if kind == "queue":
        assert sorted(realm.consumer(node).receive(15)) == sorted(filled.keys() - set(wanted))
