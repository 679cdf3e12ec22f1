"""The contract of the realm, continued: evidence and journal leave the log in their time, and what is needed stays."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from native_backend import bygones
from native_backend.limits import RealmLimits
from native_backend.log import Failure, Log, LogError
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

REST = RealmLimits()
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


@pytest.mark.parametrize("has_trimmed", [False, True])
def test_who_is_killed_between_snapshot_and_trim_leaves_nothing_behind(
    start: Start, monkeypatch: pytest.MonkeyPatch, has_trimmed: bool
) -> None:
    gateway = start(SOON)
    node = gateway.create("orders")
    first = begins(gateway, "journal")
    eids = gateway.publish(node, bodies(20))
    consumer = gateway.consumer(node)
    consumer.receive(20)
    trim, deaths = bygones.trim, list[int]()

    def deadly(log: Log, place: tuple[str, int], bound: int, deadline_s: float) -> None:
        if has_trimmed and not deaths:
            trim(log, place, bound, deadline_s)
        deaths.append(bound)
        raise LogError(Failure("unexpected", "killed here"))

    monkeypatch.setattr(bygones, "trim", deadly)
    acknowledge_singly(consumer, eids[::2])
    gateway.until(lambda: bool(deaths), "the moment before the log lets go")
    gateway.kill()
    later = start(SOON)
    assert begins(later, "journal") == (deaths[0] if has_trimmed else first)
    monkeypatch.undo()
    again = later.consumer(node)
    assert again.receive(10) == eids[1::2]
    acknowledge_singly(again, eids[1::2])
    bound = begins(later, "journal")
    later.until(lambda: begins(later, "journal") > bound, "it goes on")


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
    quick.drain()
    assert begins(gateway, "journal") <= opened
    gateway.kill()
    later = start(SOON)
    assert later.consumer(news, "durable", "a:slow").receive(10) == eids[10:]


def test_old_outcome_records_are_trimmed_as_long_as_there_are_younger_ones(start: Start) -> None:
    gateway = start(SOON)
    topic, first, told = f"{gateway.prefix}.outcomes", begins(gateway, "outcomes"), itertools.count()

    def goes_on() -> bool:
        gateway.realm.append_evidence("outcomes", b"run", b"%d" % next(told))
        return begins(gateway, "outcomes") > first

    gateway.until(goes_on, "the first ones are trimmed")
    evidence = gateway.realm._publisher.evidence
    gateway.until(lambda: not evidence.pending, "the last ones are stored")
    old_ms = gateway.clock.epoch_us() // 1000 + 300
    gateway.until(lambda: gateway.clock.epoch_us() // 1000 > old_ms, "all of them are old")
    gateway.kill()
    later = start(REST)
    records = later.log.read_range(topic, 0, begins(later, "outcomes"), 100_000)
    assert records.values[-1] == b"%d" % (next(told) - 1)


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
    consumer.drain()
    assert (begins(gateway, "journal"), begins(gateway, "outcomes")) == first
