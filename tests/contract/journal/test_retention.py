"""The contract of the realm, continued: evidence and journal leave the log in their time, and what is needed stays."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, Log, LogError
from native_backend.shard import evidence_trimmer
from native_backend.shard.journal_ends import TRIMMED
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of, publisher_of, shard_of
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures

REST = RealmLimits()
SOON = RealmLimits(evidence_s=0.1, trim_interval_s=0.02, snapshot_records=5)


def begins(realm: RealmProcess, topic: str) -> int:
    return realm.log.control.bounds(f"{realm.prefix}.{topic}", 0)[0]


def acknowledge_singly(consumer: Consumer, eids: list[int]) -> None:
    """A journal record each."""
    for eid in eids:
        consumer.acknowledge([eid])


@SPREAD
def test_the_journal_below_the_newest_snapshots_is_trimmed_and_nothing_comes_again(start: Start) -> None:
    realm = start(SOON)
    node = realm.create("orders")
    first = begins(realm, "journal")
    eids = realm.publish(node, bodies(30))
    consumer = realm.consumer(node)
    consumer.receive(30)
    acknowledge_singly(consumer, eids[1:10] + eids[15:25])
    realm.until(lambda: begins(realm, "journal") > first, "some of the journal is trimmed")
    needed = shard_of(realm.realm).snapshots.needed
    assert needed is not None
    assert begins(realm, "journal") <= needed
    realm.kill()
    later = start(SOON)
    again = later.consumer(node)
    left = [eids[0], *eids[10:15], *eids[25:]]
    assert by_store(again.receive(len(left))) == by_store(left)
    again.acknowledge(left)
    assert later.has_ended(node, eids)


@SPREAD
@pytest.mark.parametrize("has_trimmed", [False, True])
def test_who_is_killed_between_snapshot_and_trim_leaves_nothing_behind(
    start: Start, monkeypatch: pytest.MonkeyPatch, has_trimmed: bool
) -> None:
    realm = start(SOON)
    node = realm.create("orders")
    eids = realm.publish(node, bodies(20))
    consumer = realm.consumer(node)
    consumer.receive(20)
    trim, deaths = evidence_trimmer.trim, list[int]()

    def deadly(log: Log, place: tuple[str, int], bound: int, deadline_s: float) -> None:
        if has_trimmed and not deaths:
            trim(log, place, bound, deadline_s)
        deaths.append(bound)
        raise LogError(Failure("unexpected", "killed here"))

    monkeypatch.setattr(evidence_trimmer, "trim", deadly)
    acknowledge_singly(consumer, eids[::2])
    realm.until(lambda: bool(deaths), "the moment before the log lets go")
    kept_from = begins(realm, "journal")  # not sooner: a round before this one may have trimmed, too
    assert (kept_from == deaths[0]) is has_trimmed
    realm.kill()
    later = start(SOON)
    assert begins(later, "journal") == kept_from
    monkeypatch.undo()
    again = later.consumer(node)
    assert by_store(again.receive(10)) == by_store(eids[1::2])
    acknowledge_singly(again, eids[1::2])
    bound = begins(later, "journal")
    later.until(lambda: begins(later, "journal") > bound, "it goes on")


@SPREAD
def test_what_a_durable_needs_of_the_journal_stays(start: Start) -> None:
    """No round of snapshots is due: each durable has the one of its opening."""
    realm = start(replace(SOON, snapshot_records=10_000))
    news = realm.create("news", "channel")
    slow, quick = (realm.consumer(news, "durable", name) for name in ("a:slow", "a:quick"))
    eids = realm.publish(news, bodies(20))
    opened = shard_of(realm.realm).snapshots.needed
    assert opened is not None
    for consumer in (slow, quick):
        consumer.receive(20)
        acknowledge_singly(consumer, eids[:10])
    quick.drain()
    assert begins(realm, "journal") <= opened
    realm.kill()
    later = start(SOON)
    assert by_store(later.consumer(news, "durable", "a:slow").receive(10)) == by_store(eids[10:])


@SPREAD
def test_a_journal_without_what_recovery_needs_is_noted_once(start: Start) -> None:
    """Another program has trimmed it. What was acknowledged there is given again; the next start misses nothing."""
    first = start()
    node = first.create("orders")
    eids = first.publish(node, bodies(10))
    consumer = first.consumer(node)
    consumer.receive(10)
    acknowledge_singly(consumer, eids[:4])
    first.journal()
    topic = f"{first.prefix}.journal"
    first.log.control.trim(topic, 0, first.log.control.bounds(topic, 0)[1])
    first.kill()
    second = start()
    assert context_of(second.realm).alarms[TRIMMED] > 0
    again = second.consumer(node)
    assert by_store(again.receive(10)) == by_store(eids)
    acknowledge_singly(again, eids[:4])
    second.kill()
    third = start()
    assert context_of(third.realm).alarms[TRIMMED] == 0
    assert by_store(third.consumer(node).receive(6)) == by_store(eids[4:])


def test_old_outcome_records_are_trimmed_as_long_as_there_are_younger_ones(start: Start) -> None:
    realm = start(SOON)
    topic, first, numbers = f"{realm.prefix}.outcomes", begins(realm, "outcomes"), itertools.count()

    def goes_on() -> bool:
        realm.realm.append_evidence("outcomes", b"run", b"%d" % next(numbers))
        return begins(realm, "outcomes") > first

    realm.until(goes_on, "the first ones are trimmed")
    evidence = publisher_of(realm.realm).evidence
    realm.until(lambda: not evidence.pending, "the last ones are stored")
    old_ms = realm.clock.epoch_us() // 1000 + 300
    realm.until(lambda: realm.clock.epoch_us() // 1000 > old_ms, "all of them are old")
    realm.kill()
    later = start(REST)
    records = later.log.control.read_range(topic, 0, begins(later, "outcomes"), 100_000)
    assert records.values[-1] == b"%d" % (next(numbers) - 1)


@SPREAD
def test_what_is_young_stays(start: Start) -> None:
    realm = start(replace(SOON, evidence_s=60.0))
    node = realm.create("orders")
    first = begins(realm, "journal"), begins(realm, "outcomes")
    realm.realm.append_evidence("outcomes", b"run", b"1")
    realm.realm.append_evidence("outcomes", b"run", b"2")
    eids = realm.publish(node, bodies(20))
    consumer = realm.consumer(node)
    consumer.receive(20)
    acknowledge_singly(consumer, eids)
    consumer.drain()
    assert (begins(realm, "journal"), begins(realm, "outcomes")) == first
