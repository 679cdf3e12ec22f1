"""The contract of the realm, continued: evidence and journal leave the log in their time, and what is needed stays."""

from __future__ import annotations

from dataclasses import replace

from native_backend.limits import RealmLimits
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

SOON = RealmLimits(evidence_s=0.1, trim_interval_s=0.02, snapshot_records=5)


def begins(gateway: Gateway, topic: str) -> int:
    return gateway.log.bounds(f"{gateway.prefix}.{topic}", 0)[0]


def acknowledge_singly(consumer: Consumer, eids: list[int]) -> None:
    """A journal record each."""
    for eid in eids:
        consumer.acknowledge([eid])


def test_the_journal_below_the_newest_snapshots_is_trimmed_and_nothing_comes_again(start: Start) -> None:
    gateway = start(SOON)
    node = gateway.create("orders")
    first = begins(gateway, "journal")
    eids = gateway.publish(node, bodies(30))
    consumer = gateway.consumer(node)
    consumer.receive(30)
    acknowledge_singly(consumer, eids[1:10] + eids[15:25])
    gateway.until(lambda: begins(gateway, "journal") > first, "some of the journal is trimmed")
    needed = gateway.realm._shard.snapshots.needed
    assert needed is not None
    assert begins(gateway, "journal") <= needed
    gateway.kill()
    later = start(SOON)
    again = later.consumer(node)
    left = [eids[0], *eids[10:15], *eids[25:]]
    assert again.receive(len(left)) == left
    again.acknowledge(left)
    assert later.state(node).low > eids[-1]


def test_what_a_durable_needs_of_the_journal_stays(start: Start) -> None:
    """No round of snapshots is due: each durable has the one of its opening."""
    gateway = start(replace(SOON, snapshot_records=10_000))
    news = gateway.create("news", "channel")
    slow, quick = (gateway.consumer(news, "durable", name) for name in ("a:slow", "a:quick"))
    eids = gateway.publish(news, bodies(20))
    opened = gateway.realm._shard.snapshots.needed
    assert opened is not None
    for consumer in (slow, quick):
        consumer.receive(20)
        acknowledge_singly(consumer, eids[:10])
    quick.drain(60)
    assert begins(gateway, "journal") <= opened
    gateway.kill()
    later = start(SOON)
    assert later.consumer(news, "durable", "a:slow").receive(10) == eids[10:]


def test_old_outcome_records_are_trimmed_when_there_are_younger_ones(start: Start) -> None:
    gateway = start(SOON)
    topic = f"{gateway.prefix}.outcomes"

    def kept() -> list[bytes | None]:
        return gateway.log.read_range(topic, 0, begins(gateway, "outcomes"), 10).values

    for number in range(4):
        gateway.realm.append_evidence("outcomes", b"run", b"%d" % number)
    gateway.until(lambda: len(kept()) == 4, "they are stored")
    old_ms = gateway.clock.epoch_us() // 1000 + 200
    gateway.until(lambda: gateway.clock.epoch_us() // 1000 > old_ms, "they are old")
    assert len(kept()) == 4
    gateway.realm.append_evidence("outcomes", b"run", b"young")
    gateway.until(lambda: begins(gateway, "outcomes") > 0 and len(kept()) == 1, "the old ones are trimmed")
    assert kept() == [b"young"]


def test_what_is_young_stays(start: Start) -> None:
    gateway = start(replace(SOON, evidence_s=60.0))
    node = gateway.create("orders")
    first = begins(gateway, "journal"), begins(gateway, "outcomes")
    gateway.realm.append_evidence("outcomes", b"run", b"1")
    gateway.realm.append_evidence("outcomes", b"run", b"2")
    eids = gateway.publish(node, bodies(20))
    consumer = gateway.consumer(node)
    consumer.receive(20)
    acknowledge_singly(consumer, eids)
    consumer.drain(60)
    assert (begins(gateway, "journal"), begins(gateway, "outcomes")) == first
