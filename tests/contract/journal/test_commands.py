"""The contract of the realm, continued: what an operator does to queues and durables, through the journal."""

from __future__ import annotations

import orjson
import pytest

from native_backend import admin
from native_backend.answers import SubscriptionLost
from native_backend.commands import Command, answers_topic, commands_topic, decode_reply, encode_command
from native_backend.durables import Durable
from native_backend.limits import RealmLimits
from native_backend.log import Failure, LogError, TopicSpec
from native_backend.metadata_writer import realm_metadata
from native_backend.properties import Properties
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import World
from tests.native_backend.realm_world import Start, bodies, fold, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


# -- purge


def test_a_purged_queue_gives_only_what_comes_later(start: Start) -> None:
    gateway = start()
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(20))
    first = gateway.consumer(node)
    first.receive(5)
    first.subscription.close()  # returned: purged, too
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    purged = gateway.command("purge", node)
    assert purged.answer == "done"
    assert purged.count >= 20
    consumer = gateway.consumer(node)
    later = gateway.publish(node, bodies(3))
    assert consumer.receive(3) == later
    assert consumer.drain() == []
    assert eids[-1] < gateway.state(node).low <= later[0]
    gateway.kill()
    again = start().consumer(node)
    assert again.receive(3) == later
    assert again.drain() == []


def test_what_consumers_have_is_not_purged(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(20))
    consumer = gateway.consumer(node)
    assert consumer.receive(5) == eids[:5]
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    purged = gateway.command("purge", node)
    assert (purged.answer, purged.detail) == ("done", "5 events that consumers have stay theirs")
    consumer.acknowledge(eids[1:5])
    assert consumer.settle("return", eids[:1]) == "done"
    assert consumer.receive(1) == eids[:1]
    assert consumer.drain() == []


def test_what_waits_to_be_given_again_is_purged_too(gateway: Gateway) -> None:
    patient = Properties(redelivery_delay_ms=3_600_000)
    admin.create_node(gateway.log, gateway.prefix, "orders", "queue", gateway.clock, patient)
    node = gateway.find("orders")
    assert node is not None
    eids = gateway.publish(node, bodies(6))
    consumer = gateway.consumer(node)
    consumer.receive(6)
    consumer.acknowledge(eids[2:3])
    assert consumer.settle("return", [*eids[:2], *eids[3:]], failed=True) == "done"
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    assert gateway.command("purge", node, eid=eids[4]).answer == "done"
    state = gateway.state(node)
    assert {eid for _, first, last in state.delayed for eid in range(first, last + 1)} >= set(eids[4:])
    assert eids[3] < state.low <= eids[4]
    assert gateway.command("purge", node).answer == "done"
    assert not state.delayed
    assert state.low > eids[5]


def test_a_purge_below_an_eid_leaves_the_rest(gateway: Gateway) -> None:
    node = gateway.create("news", "channel")
    gateway.consumer(node, "durable", "d").subscription.close()
    eids = gateway.publish(node, bodies(20))
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    assert gateway.command("purge", node, "d", eids[15]).answer == "done"
    assert gateway.consumer(node, "durable", "d").receive(5) == eids[15:]


# -- move


def test_moved_events_are_ended_here_and_kept_there(start: Start) -> None:
    gateway = start(RealmLimits(letter_events=4))
    node, dead = gateway.create("orders"), gateway.create("dead")
    eids = gateway.publish(node, bodies(20))
    consumer = gateway.consumer(node)
    assert consumer.receive(5) == eids[:5]
    assert consumer.settle("return", eids[1:3], failed=True) == "done"
    consumer.acknowledge(eids[3:5])
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    moved = gateway.command("move", node, count=7, to="dead")
    assert (moved.answer, moved.count) == ("done", 7)
    assert gateway.command("move", node, to="nowhere").answer == "not-found"
    assert gateway.command("move", node, to="orders").answer == "unexpected"
    there = gateway.consumer(dead)
    got = there.receive(7)
    assert fold(there, got) == [b"%08d" % at for at in (1, 2, 5, 6, 7, 8, 9)]
    assert gateway.command("move", node, to="dead").count == 10
    assert len(there.receive(10)) == 10
    assert consumer.drain() == []
    consumer.acknowledge(eids[:1])
    gateway.kill()
    later = start()
    assert later.consumer(node).drain() == []
    again = later.consumer(dead)
    assert len(again.receive(17)) == 17
    keys = later.log.read_range(dead.topic, 0, 0, 100).keys
    assert keys[0] == b"2;%d;%d;moved;key" % (node.store, eids[1])
    entries = [entry for record in later.journal() for entry in record["entries"] if entry["operation"] == "move"]
    assert {entry["to"] for entry in entries} == {dead.store}
    assert {entry["cause"].split()[0] for entry in entries} == {"command"}


# -- seek


def test_a_durable_goes_back_and_forth(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    consumer = gateway.consumer(node, "durable", "d")
    eids = gateway.publish(node, bodies(20))
    assert consumer.receive(12) == eids[:12]
    consumer.acknowledge(eids[2:12])
    assert consumer.settle("return", eids[:2], failed=True) == "done"
    assert gateway.command("seek", node, "d", eids[5]).answer == "in-use"
    consumer.subscription.close()
    assert gateway.command("seek", node, "d", eids[5]).answer == "done"
    back = gateway.consumer(node, "durable", "d")
    assert back.receive(15) == eids[5:]
    assert [back.again[eid] for eid in eids[5:]] == [True] * 7 + [False] * 8
    assert set(back.failed.values()) == {0}
    back.acknowledge(eids[5:])
    assert gateway.state(node, "d").low == eids[-1] + 1
    back.subscription.close()
    assert gateway.command("seek", node, "d", 0).answer == "done"
    gateway.kill()
    later = start()
    assert later.consumer(node, "durable", "d").receive(20) == eids
    later.close()
    last = start()
    gateway_end = last.log.bounds(node.topic, 0)[1]
    assert last.command("seek", node, "d", 10**12).answer == "done"
    fresh = last.consumer(node, "durable", "d")
    assert last.state(node, "d").low == gateway_end
    assert fresh.drain() == []


# -- delete


def test_a_deleted_durable_is_gone_with_all_it_had(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    consumer = gateway.consumer(node, "durable", "d")
    eids = gateway.publish(node, bodies(10))
    consumer.receive(5)
    consumer.acknowledge(eids[:3])
    group = f"{gateway.prefix}.durable.news.d"
    gateway.until(lambda: bool(gateway.log.projected(group)), "its group")
    assert gateway.command("delete", node, "d").answer == "done"
    lost = gateway.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (consumer.subscription, "not-found")
    assert consumer.settle("acknowledge", eids[3:5]) == "not-found"
    assert gateway.log.projected(group) == {}
    assert ("news", "d") not in realm_metadata(gateway.log, gateway.prefix).durables
    assert gateway.command("delete", node, "d").answer == "not-found"
    anew = gateway.consumer(node, "durable", "d")
    later = gateway.publish(node, bodies(3))
    assert anew.receive(3) == later, "a new durable begins at the end"
    anew.acknowledge(later[:1])
    gateway.kill()
    assert start().consumer(node, "durable", "d").receive(2) == later[1:]


def test_a_deletion_that_a_kill_cut_short_is_finished_by_the_next_owner(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    consumer = gateway.consumer(node, "durable", "d")
    eids = gateway.publish(node, bodies(5))
    consumer.receive(5)
    consumer.acknowledge(eids[:2])

    def cut(_: Durable) -> None:
        raise LogError(Failure("unavailable", "as far as this process comes"))

    monkeypatch.setattr(gateway.realm._shard, "_erase", cut)
    told = gateway.command("delete", node, "d")
    assert (told.answer, "it is deleted, but not yet erased" in told.detail) == ("unavailable", True)
    assert gateway.subscribed(node, "durable", "d").answer == "in-use"
    assert ("news", "d") in realm_metadata(gateway.log, gateway.prefix).durables
    gateway.kill()
    later = start()
    assert ("news", "d") not in realm_metadata(later.log, later.prefix).durables
    assert later.consumer(node, "durable", "d").drain() == []


# -- delete a node


def test_a_deleted_node_is_noted_in_the_journal_and_gone_for_all(gateway: Gateway) -> None:
    admin.create_node(gateway.log, gateway.prefix, "wide", "queue", gateway.clock, Properties(partitions=2))
    node = gateway.find("wide")
    assert node is not None
    gateway.publish(node.part(1), bodies(3))
    consumer = gateway.consumer(node)
    consumer.receive(2)
    assert gateway.command("delete-node", node, "").answer == "done"
    assert gateway.answer(SubscriptionLost).answer == "not-found"
    assert gateway.find("wide") is None
    gateway.until(lambda: node.topic not in gateway.log.topics(node.topic), "the broker's metadata to follow")
    notes = [entry for record in gateway.journal() for entry in record["entries"] if entry["operation"] == "delete"]
    assert {(note["node"], note["durable"], note["store"]) for note in notes} == {
        ("wide", "", part.store) for part in node.parts
    }
    assert all(note["cause"].startswith("command ") for note in notes)
    assert gateway.command("delete-node", node, "").answer == "not-found"


def test_a_node_whose_deletion_was_cut_short_is_as_it_was(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = start()
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(5))
    consumer = gateway.consumer(node)
    consumer.receive(5)
    consumer.acknowledge(eids[1:])

    def cut(*_: object) -> bool:
        raise LogError(Failure("unavailable", "as far as this process comes"))

    with monkeypatch.context() as cutting:
        cutting.setattr("native_backend.node_deletion.delete_node", cut)
        told = gateway.command("delete-node", node, "")
    assert (told.answer, "give the command again" in told.detail) == ("unavailable", True)
    gateway.kill()
    later = start()
    found = later.find("orders")
    assert found == node
    again = later.consumer(found)
    assert again.receive(1) == eids[:1]
    assert again.drain() == []
    assert later.command("delete-node", found, "").answer == "done"
    assert later.find("orders") is None


def test_a_topic_that_was_adopted_goes_only_when_that_is_said(gateway: Gateway) -> None:
    topic = f"{gateway.prefix}-shop"
    gateway.log.create_topics([TopicSpec(topic)])
    for to, left in (("", True), ("topic", False)):
        admin.create_node(gateway.log, gateway.prefix, "orders", "queue", gateway.clock, topic=topic)
        node = gateway.find("orders")
        assert node is not None
        assert gateway.command("delete-node", node, "", to=to).answer == "done"
        gateway.until(lambda left=left: (topic in gateway.log.topics(topic)) == left, "the topic's end")  # type: ignore[misc]


# -- asked by another process


def test_a_command_of_another_process_is_carried_out_and_answered(world: World, start: Start) -> None:
    gateway = start(RealmLimits(command_interval_s=0.02))
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(10))
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    other = world.open()
    late = Command("late", "purge", "orders", node.store, "queue", until_us=1)
    wrong = Command("wrong", "purge", "orders", node.store + 1, "queue", until_us=10**18)
    nobody = Command("nobody", "seek", "orders", node.store, "d", until_us=10**18)
    good = Command("good", "purge", "orders", node.store, "queue", until_us=10**18)
    strange = Command("strange", "burn", "orders", node.store, "queue", until_us=10**18)  # type: ignore[arg-type]
    for command in (strange, late, wrong, nobody, good):
        other.put(commands_topic(gateway.prefix), command.id.encode(), encode_command(command, 1))
    later_release = orjson.loads(encode_command(good, 1)) | {"v": 9, "id": "unknown"}
    other.put(commands_topic(gateway.prefix), b"unknown", orjson.dumps(later_release))
    replies: dict[str, str] = {}

    def answered() -> bool:
        for value in other.read_range(answers_topic(gateway.prefix), 0, 0, 100).values:
            reply = decode_reply(value or b"")
            assert reply is not None
            replies[reply.id] = reply.answer
        return len(replies) == 4

    gateway.until(answered, "four replies")
    assert replies == {"late": "unavailable", "wrong": "not-found", "nobody": "not-found", "good": "done"}
    causes = {(entry["operation"], entry["cause"]) for record in gateway.journal() for entry in record["entries"]}
    assert causes == {("purge", "command good")}
    assert gateway.consumer(node).drain() == []
