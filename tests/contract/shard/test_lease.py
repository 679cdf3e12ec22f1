"""The contract of ownership: one process gives out the events of queues and durables, all others wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import orjson
import pytest

from native_backend.journal.lease_records import LeaseRecords, What, encode_lease, lease_topic
from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError, TopicSpec
from native_backend.nodes.metadata import realm_topics
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.kit.realm.fixtures import Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

__all__ = ["realm", "start", "world"]  # fixtures

SHARP = RealmLimits(lease_s=20.0, lease_look_s=0.02)  # it lapses when the test says so, however slow the machine


def another(world: World, first: RealmProcess, limits: RealmLimits, meanwhile: Callable[[], None]) -> RealmProcess:
    """A second gateway, not open yet; whenever it waits, the first one lives on by `meanwhile`."""
    second = RealmProcess(world, first.prefix, limits)
    second.waits_by(meanwhile)
    return second


def test_a_realm_with_a_live_owner_is_refused_and_the_owner_named(world: World, start: Start) -> None:
    first = start(SHARP)
    second = another(world, first, SHARP, first.turn)
    with pytest.raises(LogError, match=f"gateway {first.run} .process .* owns the realm") as refused:
        second.open()
    assert refused.value.failure.cause == "fenced"
    second.kill()


def test_a_standby_waits_and_follows_at_once_when_the_owner_ends_in_order(world: World, start: Start) -> None:
    first = start(SHARP)
    queue = first.create("orders")
    eids = first.publish(queue, bodies(10))
    consumer = first.consumer(queue)
    consumer.receive(10)
    owners: list[str] = []
    turns = 0

    def meanwhile() -> None:
        nonlocal turns
        turns += bool(owners)
        if turns == 20:
            consumer.acknowledge(eids[:3])
            first.close()
        elif not first.dead:
            first.turn()

    second = another(world, first, SHARP, meanwhile)
    second.realm.open(lambda owner: owners.append(owner.run))
    assert owners == [first.run]
    assert second.consumer(queue).receive(7) == eids[3:]
    second.close()


def test_an_owner_that_is_not_heard_is_followed_and_gives_nothing_after_its_lease(world: World, start: Start) -> None:
    first = start(SHARP)
    queue = first.create("orders")
    eids = first.publish(queue, bodies(10))
    consumer = first.consumer(queue)
    assert consumer.receive(4) == eids[:4]
    second = RealmProcess(world, first.prefix, SHARP).follow()  # the first one is not polled, as if it was stopped
    first.clock.lapse(SHARP.lease_s)
    again = second.consumer(queue)
    assert again.receive(10) == eids
    assert consumer.take() == []  # it wakes, and a peer's credit is there before its first turn
    first.answers += first.realm.poll()
    assert consumer.take() == []
    lost = first.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (consumer.subscription, "in-use")
    assert first.realm.lost
    again.acknowledge(eids)
    second.close()


def test_a_lease_that_cannot_be_looked_at_lapses_and_is_held_again(world: World, start: Start) -> None:
    first = start(SHARP)
    queue = first.create("orders")
    eids = first.publish(queue, bodies(4))
    consumer = first.consumer(queue)
    first.clock.lapse(SHARP.lease_s)
    first.realm.poll()
    assert not context_of(first.realm).lease.held
    assert consumer.take() == []
    assert consumer.receive(4) == eids  # no one else wanted it
    assert not first.realm.lost


def question(world: World, realm: RealmProcess, times: int = 1) -> None:
    """A process that wants the realm asks for a sign of life."""
    log, seen = world.open(), LeaseRecords()
    seen.read(log, realm.prefix, 10.0)
    for _ in range(times):
        ask = encode_lease("ask", seen, "standby", {}, 0, realm.limits.lease_s)
        log.control.put(lease_topic(realm.prefix), b"standby", ask)


def test_a_lease_whose_topic_cannot_be_trimmed_is_held(world: World, start: Start) -> None:
    first = start(SHARP)
    queue = first.create("orders")
    eids = first.publish(queue, bodies(4))
    consumer = first.consumer(queue)
    trim, tries = first.log.control.trim, list[int]()

    def refuse(topic: str, partition: int, before: int, deadline_s: float = 10.0) -> None:
        if topic != lease_topic(first.prefix):
            return trim(topic, partition, before, deadline_s)
        tries.append(before)
        raise LogError(Failure("refused", "DeleteRecords"))

    setattr(first.log.control, "trim", refuse)  # noqa: B010
    question(world, first, 101)
    first.until(lambda: bool(tries), "a try to trim")
    first.clock.lapse(SHARP.lease_s)
    assert not context_of(first.realm).lease.held
    assert consumer.receive(4) == eids
    question(world, first, 90)
    first.clock.lapse(SHARP.lease_s)
    first.until(lambda: context_of(first.realm).lease.held, "another look")
    assert len(tries) == 1, "the next one comes with a hundred records more"
    question(world, first, 11)
    first.until(lambda: len(tries) == 2, "the next try")


def test_a_claim_without_the_lease_takes_the_shard_from_no_owner(world: World, start: Start) -> None:
    first = start(SHARP)
    queue = first.create("orders")
    eids = first.publish(queue, bodies(10))
    consumer = first.consumer(queue)
    consumer.receive(10)
    world.open().control.claim(f"{first.prefix}.shard.0")
    consumer.acknowledge(eids[:5])
    assert not first.realm.lost
    first.kill()
    assert start().consumer(queue).receive(5) == eids[5:]


def test_the_order_of_the_log_decides_who_owns(world: World, start: Start) -> None:
    realm = start(SHARP)
    log, prefix = realm.log, f"{realm.prefix}.other"
    log.control.create_topics([TopicSpec(lease_topic(prefix))])

    def tenure() -> LeaseRecords:
        records = LeaseRecords()
        records.read(log, prefix, 10.0)
        return records

    def put(what: What, run: str, seen: LeaseRecords) -> LeaseRecords:
        log.control.put(lease_topic(prefix), run.encode(), encode_lease(what, seen, run, {"host": run}, 0, 1.0))
        realm.until(lambda: tenure().position > seen.position, "the record")
        return tenure()

    none = tenure()
    assert none.free
    first = put("take", "a", none)
    assert put("take", "b", none).run == "a"  # it came second
    held = put("hold", "a", put("ask", "b", first))
    assert put("take", "b", first).run == "a"  # answered since b looked
    assert held.at > held.asked
    second = put("take", "b", held)
    assert (second.run, second.term, second.process) == ("b", 2, {"host": "b"})
    assert put("hold", "a", held).run == "b"  # a zombie
    assert put("release", "a", held).run == "b"
    assert not tenure().free
    assert put("release", "b", second).free
    last = put("take", "c", tenure())
    assert (last.run, last.term, last.free) == ("c", 3, False)
    log.control.trim(lease_topic(prefix), 0, last.at)
    assert tenure().run == "c"
    assert put("hold", "c", last).at > last.at


def test_a_lease_of_a_release_that_names_fewer_topics(world: World, start: Start) -> None:
    """It was five seconds there, and its realm had no history."""
    first = start(SHARP)
    log, prefix = first.log, f"{first.prefix}.before"
    log.control.create_topics([TopicSpec(lease_topic(prefix))])
    tenure = LeaseRecords()
    for what, released in (("take", False), ("release", True)):
        record = orjson.loads(encode_lease(cast(What, what), tenure, "earlier", {}, 0, 7.0))
        del record["lease_ms"], record["topics"]
        end = log.control.put(lease_topic(prefix), b"earlier", orjson.dumps(record)) + 1
        while tenure.position < end:
            tenure.read(log, prefix, 10.0)
        assert (tenure.run, tenure.released, tenure.lease_s) == ("earlier", released, 5.0)
        assert tenure.topics == {topic.removeprefix(f"{prefix}.") for topic in realm_topics(prefix)} - {"history"}
    after = RealmProcess(world, prefix, SHARP)
    after.open()
    assert after.publish(after.create("orders"), bodies(1))
    after.close()
