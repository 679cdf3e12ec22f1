"""The contract of the realm, continued: what has ended leaves the log, in its time and not before."""

from __future__ import annotations

from native_backend.limits import RealmLimits
from native_backend.nodes.node import Node
from native_backend.subscriptions.partitioned import eids_of
from tests.contract.actions import entries
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD

SOON = RealmLimits(retain_s=0.2, trim_interval_s=0.02)


def begins(realm: RealmProcess, node: Node) -> dict[int, int]:
    """Where each store begins."""
    return {part.partition: realm.log.control.bounds(node.topic, part.partition)[0] for part in node.parts}


def at_or_above(firsts: dict[int, int], wanted: dict[int, int]) -> bool:
    return all(firsts[at] >= eid for at, eid in wanted.items())


def last_note(realm: RealmProcess, part: Node) -> tuple[str, str, int] | None:
    """What was noted of a store last: the node, the durable, the last EID."""
    notes = [entry for entry in entries(realm, "trimmed") if entry["store"] == part.store]
    return (notes[-1]["node"], notes[-1]["durable"], notes[-1]["runs"][-1][1]) if notes else None


def test_ended_events_are_trimmed_and_no_others(start: Start) -> None:
    realm = start(SOON)
    node = realm.create("orders")
    eids = by_store(realm.publish(node, bodies(30 * node.partitions)))
    consumer = realm.consumer(node)
    consumer.receive(30 * node.partitions)
    consumer.acknowledge([eid for some in eids.values() for eid in some[:12] + some[20:25]])
    kept = {at: eids_of(some)[12] for at, some in eids.items()}
    realm.until(lambda: at_or_above(begins(realm, node), kept), "they are trimmed")
    assert begins(realm, node) == kept
    for part in node.parts:
        wanted = ("orders", "", kept[part.partition] - 1)
        realm.until(lambda part=part, wanted=wanted: last_note(realm, part) == wanted, "the journal shows its note")  # type: ignore[misc]
    again = [eid for some in eids.values() for eid in some[12:20]]
    assert consumer.settle("return", again) == "done"
    assert by_store(consumer.receive(len(again))) == by_store(again)
    consumer.acknowledge(again + [eid for some in eids.values() for eid in some[25:]])
    ends = {at: eids_of(some)[-1] for at, some in eids.items()}
    realm.until(lambda: at_or_above(begins(realm, node), ends), "the rest is trimmed")
    realm.kill()
    later = start(SOON)
    more = later.publish(node, bodies(2))
    assert by_store(later.consumer(node).receive(2)) == by_store(more)


def test_what_is_young_stays(start: Start) -> None:
    realm = start(RealmLimits(retain_s=3600, trim_interval_s=0.01))
    node = realm.create("orders")
    eids = realm.publish(node, bodies(5))
    consumer = realm.consumer(node)
    consumer.receive(5)
    consumer.acknowledge(eids)
    consumer.drain()
    assert at_or_above({at: eids_of(some)[0] for at, some in by_store(eids).items()}, begins(realm, node))
    assert entries(realm, "trimmed") == []


def test_a_channel_keeps_what_its_durables_have_seen(start: Start) -> None:
    realm = start(SOON)
    node = realm.create("news", "channel")
    durable = realm.consumer(node, "durable", "a:b")
    eids = realm.publish(node, bodies(5))
    durable.receive(5)
    durable.acknowledge(eids)
    durable.drain()
    assert at_or_above({at: eids_of(some)[0] for at, some in by_store(eids).items()}, begins(realm, node))


def test_closing_waits_for_nothing_that_is_begun_again_and_again(start: Start) -> None:
    realm = start(RealmLimits(trim_interval_s=0.0, evidence_s=0.0, command_interval_s=0.0, metadata_interval_s=0.0))
    for name in ("orders", "bills", "letters"):
        node = realm.create(name)
        eids = realm.publish(node, bodies(3))
        consumer = realm.consumer(node)
        consumer.receive(3)
        consumer.acknowledge(eids)
    realm.dead = True
    began_s = realm.clock.monotonic_s()
    realm.realm.close(60.0)
    assert realm.clock.monotonic_s() - began_s < 30.0
