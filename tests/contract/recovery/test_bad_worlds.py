"""What the realm does when somebody meddles with its log, or the machine's clock jumps: docs/bad-worlds.md."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from native_backend.admin import delete_node
from native_backend.answers import Published, SubscriptionLost
from native_backend.journal import journal_topic
from native_backend.log import LogError, TopicSpec
from native_backend.nodes import Node
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import World
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

DAY_US = 86_400 * 1_000_000


def answer_to(gateway: Gateway, node: Node) -> str:
    owner = object()
    gateway.realm.publish(node, [b"k"], [b"v"], owner)
    return gateway.answer(Published, lambda published: published.owner is owner).answer


def make_again(gateway: Gateway, topic: str) -> None:
    gateway.log.delete_topics([topic])
    gateway.until(lambda: not gateway.log.find_topics([topic]), "the topic to be gone")
    gateway.log.create_topics([TopicSpec(topic)])


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


def test_the_clock_may_jump(start: Start) -> None:
    gateway = start()
    real: Callable[[], int] = gateway.clock.epoch_us
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(10))
    consumer = gateway.consumer(node)
    consumer.receive(10)
    for jump, at in ((-DAY_US, 0), (2 * DAY_US, 2), (-400 * DAY_US, 4)):
        setattr(gateway.clock, "epoch_us", lambda jump=jump: real() + jump)  # noqa: B010
        consumer.acknowledge(eids[at : at + 1])
        assert consumer.settle("return", eids[at + 1 : at + 2], failed=True) == "done"
        assert consumer.receive(1) == eids[at + 1 : at + 2]
    more = gateway.publish(node, bodies(3))
    assert consumer.receive(3) == more
    gateway.kill()
    again = start().consumer(node)
    left = [eids[1], eids[3], *eids[5:], *more]
    assert again.receive(len(left)) == left
    assert [again.failed[eid] for eid in left[:3]] == [1, 1, 1]


def test_a_foreign_commit_changes_nothing_and_is_written_over(world: World, start: Start) -> None:
    first = start()
    node = first.create("orders")
    eids = first.publish(node, bodies(10))
    consumer = first.consumer(node)
    consumer.receive(10)
    consumer.acknowledge(eids[:4])
    group = f"{first.prefix}.queue.orders"
    world.open().project(group, {(node.topic, 0): (eids[-1] + 1, "somebody else's")})
    first.kill()
    second = start()
    again = second.consumer(node)
    assert again.receive(6) == eids[4:], "what it skipped is given all the same"
    again.acknowledge(eids[4:6])
    second.close()
    position, metadata = world.open().projected(group)[node.topic, 0]
    assert position > eids[5]
    assert position <= eids[6]
    assert metadata.startswith("realmgate1;")


def test_a_journal_of_a_later_version_is_refused_and_the_realm_left_to_others(world: World, start: Start) -> None:
    first = start()
    node = first.create("orders")
    eids = first.publish(node, bodies(2))
    consumer = first.consumer(node)
    consumer.receive(2)
    consumer.acknowledge(eids[:1])
    later = {**first.journal()[-1], "v": 2, "run": "later", "n": 1}
    first.log.put(journal_topic(first.prefix), b"later", orjson.dumps(later))
    first.kill()
    for _ in range(2):  # nobody is kept waiting by who cannot read it
        with pytest.raises(LogError, match="has records of version 2; this release knows 1") as refused:
            start()
        assert refused.value.failure.code == "format"


def test_a_lease_of_a_later_version_is_refused(start: Start) -> None:
    first = start()
    topic = f"{first.prefix}.lease"
    record = {"v": 2, "what": "take", "term": 9, "run": "later"}
    first.log.put(topic, b"later", orjson.dumps(record))
    first.kill()
    with pytest.raises(LogError, match="the lease has records of version 2; this release knows 1") as refused:
        start()
    assert refused.value.failure.code == "format"
