"""The contract of the realm, continued: a durable goes back and forth by command, whatever its links had before."""

from __future__ import annotations

from typing import Any

import pytest

from native_backend.log.port import Failure, LogError
from native_backend.nodes.answers import Commanded
from native_backend.nodes.commands import Command
from native_backend.nodes.properties import Properties
from native_backend.operations import durable_changes
from tests.contract.actions import answers, commit, committed, create, heads, in_each_store, tails
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def unavailable(*_: object) -> None:
    raise LogError(Failure("unavailable", "for now"))


def test_a_durable_goes_back_and_forth(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d")
    stores = node.partitions
    eids = by_store(realm.publish(node, bodies(20 * stores)))
    had = by_store(consumer.receive(20 * stores - 8))
    consumer.acknowledge(tails(had, 2))
    assert consumer.settle("return", heads(had, 2), failed=True) == "done"
    sixth = [some[5] for some in eids.values()]
    assert answers(in_each_store(realm, "seek", node, "d", sixth)) == {"in-use"}
    consumer.subscription.close()
    assert answers(in_each_store(realm, "seek", node, "d", sixth)) == {"done"}
    back = realm.consumer(node, "durable", "d")
    left = tails(eids, 5)
    assert by_store(back.receive(len(left))) == by_store(left)
    given = tails(had, 0)
    assert {eid for eid in left if back.again[eid]} == {eid for eid in left if eid in given}
    assert set(back.failed.values()) == {0}
    back.acknowledge(left)
    assert realm.has_ended(node, left, "d")
    back.subscription.close()
    assert answers(in_each_store(realm, "seek", node, "d")) == {"done"}
    realm.kill()
    later = start()
    assert by_store(later.consumer(node, "durable", "d").receive(20 * stores)) == eids
    later.close()
    last = start()
    ends = [last.log.control.bounds(node.topic, part.partition)[1] for part in node.parts]
    assert {last.command("seek", part, "d", 10**12).answer for part in node.parts} == {"done"}
    fresh = last.consumer(node, "durable", "d")
    assert [state.low for state in last.states(node, "d")] == ends
    assert fresh.drain() == []


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_durable_is_not_moved_while_a_transaction_has_its_events(start: Start, how: str) -> None:
    """Also where their consumer has gone: what is committed later would end behind the seek."""
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d")
    eids = by_store(realm.publish(node, bodies(20 * node.partitions)))
    consumer.receive(20 * node.partitions)
    held = [some[10] for some in eids.values()]
    consumer.acknowledge([eid for eid in tails(eids, 0) if eid not in held])
    assert consumer.reserve(held)
    consumer.subscription.close()
    replies = in_each_store(realm, "seek", node, "d")
    assert answers(replies) == {"in-use"}
    assert all(reply.detail.startswith("1 events are in a transaction") for reply in replies)
    if how == "commit":
        assert committed(realm, commit(realm, consumer.retire("acknowledge", held), [])).answer == "done"
    else:
        consumer.unreserve(held)
    assert answers(in_each_store(realm, "seek", node, "d")) == {"done"}
    assert by_store(realm.consumer(node, "durable", "d").drain()) == eids


def test_a_consumer_that_comes_during_a_seek_gets_events_behind_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log answers slowly where the store begins and ends."""
    realm = start()
    node = realm.create("news", "channel")
    first = realm.consumer(node, "durable", "d")
    eids = by_store(realm.publish(node, bodies(20 * node.partitions)))
    first.acknowledge(first.receive(20 * node.partitions))
    first.subscription.close()
    fresh = by_store(realm.publish(node, bodies(3 * node.partitions)))
    waiting: list[tuple[Any, ...]] = []
    with_bounds = durable_changes.with_bounds
    monkeypatch.setattr(durable_changes, "with_bounds", lambda *question: waiting.append(question))
    owner, until_us = object(), realm.clock.epoch_us() + 10**8
    realm.realm.execute(Command("back", "seek", "news", node.store, "d", until_us), owner)
    realm.until(lambda: bool(waiting), "the question for the bounds")
    later = realm.consumer(node, "durable", "d")
    had = later.linger(30)
    with_bounds(*waiting.pop())
    assert realm.answer(Commanded, lambda answer: answer.owner is owner).answer == "done"
    later.acknowledge(had)
    assert by_store(later.drain())[0] == eids[0] + fresh[0]


def test_a_durable_goes_on_after_a_seek_that_the_log_did_not_allow(
    realm: RealmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d").subscription.close()
    eids = realm.publish(node, bodies(6))
    with monkeypatch.context() as broken:
        broken.setattr(durable_changes, "shown_bounds", unavailable)
        assert answers(in_each_store(realm, "seek", node, "d")) == {"unavailable"}
    assert by_store(realm.consumer(node, "durable", "d").drain()) == by_store(eids)


def test_a_durable_is_not_moved_while_its_dead_letters_are_read(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    realm = start()
    realm.create("dead")
    node = create(realm, "news", Properties(dead_letter="dead"), "channel")
    consumer = realm.consumer(node, "durable", "d")
    eids = by_store(realm.publish(node, bodies(6 * node.partitions)))
    had = consumer.receive(6 * node.partitions)
    waiting: list[tuple[Any, ...]] = []
    control = realm.workers.control
    with monkeypatch.context() as slow:
        slow.setattr(control, "submit", lambda *job: waiting.append(job))
        owner = consumer.start("dead-letter", tails(eids, 2), reason="rejected")
        consumer.subscription.close()
    replies = in_each_store(realm, "seek", node, "d")
    for job in waiting:
        control.submit(*job)
    assert [(reply.answer, reply.detail[:8]) for reply in replies] == [("in-use", "4 events")] * node.partitions
    assert realm.settled(owner) == "done"
    assert answers(in_each_store(realm, "seek", node, "d")) == {"done"}
    assert by_store(realm.consumer(node, "durable", "d").drain()) == by_store(sorted(had))
