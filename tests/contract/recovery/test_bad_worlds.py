"""What the realm does when someone meddles with its log, or the machine's clock jumps: docs/bad-worlds.md."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from native_backend.journal.journal import journal_topic
from native_backend.log.port import LogError, TopicSpec
from native_backend.nodes.admin import delete_node
from native_backend.nodes.answers import Published
from native_backend.nodes.group_offset import low_of
from native_backend.nodes.node import Node
from native_backend.subscriptions.partitioned import eids_of
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store
from tests.kit.realm.worlds import World

__all__ = ["realm", "start", "world"]  # fixtures

DAY_US = 86_400 * 1_000_000


def answer_to(realm: RealmProcess, node: Node) -> str:
    owner = object()
    realm.realm.publish(node, [b"k"], [b"v"], owner)
    return realm.answer(Published, lambda published: published.owner is owner).answer


def make_again(realm: RealmProcess, topic: str) -> None:
    realm.log.control.delete_topics([topic])
    realm.until(lambda: not realm.log.control.find_topics([topic]), "the topic to be gone")
    realm.log.control.create_topics([TopicSpec(topic)])


def test_a_topic_that_was_made_again_is_no_longer_the_nodes(world: World, start: Start) -> None:
    first = start()
    node = first.create("orders")
    first.publish(node, bodies(3))
    consumer = first.consumer(node)
    consumer.receive(3)
    make_again(first, node.topic)
    first.until(lambda: answer_to(first, node) == "not-found", "the other topic to be noticed")
    assert first.answer(SubscriptionLost).subscription is consumer.subscription
    assert first.subscribed(node, "queue").answer == "not-found"
    first.close()
    second = start()
    assert answer_to(second, node) == "not-found", "known from the start"
    assert delete_node(second.log, second.prefix, "orders")
    second.until(lambda: second.find("orders") is None, "the deletion")
    anew = second.create("orders")
    eids = second.publish(anew, bodies(3))
    assert second.consumer(anew).receive(3) == eids


@SPREAD
def test_the_clock_may_jump(start: Start) -> None:
    realm = start()
    real: Callable[[], int] = realm.clock.epoch_us
    node = realm.create("orders")
    eids = realm.publish(node, bodies(10))
    consumer = realm.consumer(node)
    consumer.receive(10)
    for jump, at in ((-DAY_US, 0), (2 * DAY_US, 2), (-400 * DAY_US, 4)):
        setattr(realm.clock, "epoch_us", lambda jump=jump: real() + jump)  # noqa: B010
        consumer.acknowledge(eids[at : at + 1])
        assert consumer.settle("return", eids[at + 1 : at + 2], failed=True) == "done"
        assert consumer.receive(1) == eids[at + 1 : at + 2]
    more = realm.publish(node, bodies(3))
    assert by_store(consumer.receive(3)) == by_store(more)
    realm.kill()
    again = start().consumer(node)
    left = [eids[1], eids[3], *eids[5:], *more]
    assert by_store(again.receive(len(left))) == by_store(left)
    assert [again.failed[eid] for eid in left[:3]] == [1, 1, 1]


@SPREAD
def test_a_foreign_commit_changes_nothing_and_is_written_over(world: World, start: Start) -> None:
    first = start()
    node = first.create("orders")
    eids = by_store(first.publish(node, bodies(10 * node.partitions)))
    consumer = first.consumer(node)
    consumer.receive(10 * node.partitions)
    consumer.acknowledge([eid for some in eids.values() for eid in some[:4]])
    group = f"{first.prefix}.queue.orders"
    foreign = {(node.topic, at): (eids_of(some)[-1] + 1, "another program's") for at, some in eids.items()}
    world.open().control.project(group, foreign)
    first.kill()
    second = start()
    again = second.consumer(node)
    left = {at: some[4:] for at, some in eids.items()}
    assert by_store(again.receive(6 * node.partitions)) == left, "what it skipped is given all the same"
    again.acknowledge([eid for some in eids.values() for eid in some[4:6]])
    second.close()
    log = world.open()
    for at, some in eids.items():
        position = log.control.projected(group)[node.topic, at]
        assert eids_of(some)[5] < low_of(position) <= eids_of(some)[6]
        assert log.control.bounds(node.topic, at)[1] - position[0] == 4
        assert position[1].startswith("realmgate2;")


def test_a_journal_of_a_later_version_is_refused_and_the_realm_left_to_others(world: World, start: Start) -> None:
    first = start()
    node = first.create("orders")
    eids = first.publish(node, bodies(2))
    consumer = first.consumer(node)
    consumer.receive(2)
    consumer.acknowledge(eids[:1])
    later = {**first.journal()[-1], "v": 3, "run": "later", "n": 1}
    first.log.control.put(journal_topic(first.prefix), b"later", orjson.dumps(later))
    first.kill()
    for _ in range(2):  # no one is kept waiting by who cannot read it
        with pytest.raises(LogError, match="has records of version 3; this release knows 2") as refused:
            start()
        assert refused.value.failure.code == "format"


def test_a_lease_of_a_later_version_is_refused(start: Start) -> None:
    first = start()
    topic = f"{first.prefix}.lease"
    record = {"v": 2, "what": "take", "term": 9, "run": "later"}
    first.log.control.put(topic, b"later", orjson.dumps(record))
    first.kill()
    with pytest.raises(LogError, match="the lease has records of version 2; this release knows 1") as refused:
        start()
    assert refused.value.failure.code == "format"
