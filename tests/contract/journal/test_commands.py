"""The contract of the realm, continued: what an operator does to queues and durables, through the journal."""

from __future__ import annotations

import orjson
import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError, TopicSpec
from native_backend.nodes import admin
from native_backend.nodes.commands import Command, answers_topic, commands_topic, decode_reply, encode_command
from native_backend.nodes.durable import Durable
from native_backend.nodes.metadata_writer import realm_metadata
from native_backend.nodes.properties import Properties
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.kit.realm.fixtures import Start, bodies, fold, realm, start, world
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

__all__ = ["realm", "start", "world"]  # fixtures


# -- purge


def test_a_purged_queue_gives_only_what_comes_later(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(20))
    first = realm.consumer(node)
    first.receive(5)
    first.subscription.close()  # returned: purged, too
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    purged = realm.command("purge", node)
    assert purged.answer == "done"
    assert purged.count >= 20
    consumer = realm.consumer(node)
    later = realm.publish(node, bodies(3))
    assert consumer.receive(3) == later
    assert consumer.drain() == []
    assert eids[-1] < realm.state(node).low <= later[0]
    realm.kill()
    again = start().consumer(node)
    assert again.receive(3) == later
    assert again.drain() == []


def test_what_consumers_have_is_not_purged(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(20))
    consumer = realm.consumer(node)
    assert consumer.receive(5) == eids[:5]
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    purged = realm.command("purge", node)
    assert (purged.answer, purged.detail) == ("done", "5 events that consumers have stay theirs")
    consumer.acknowledge(eids[1:5])
    assert consumer.settle("return", eids[:1]) == "done"
    assert consumer.receive(1) == eids[:1]
    assert consumer.drain() == []


def test_what_waits_to_be_given_again_is_purged_too(realm: RealmProcess) -> None:
    patient = Properties(redelivery_delay_ms=3_600_000)
    admin.create_node(realm.log, realm.prefix, "orders", "queue", realm.clock, patient)
    node = realm.find("orders")
    assert node is not None
    eids = realm.publish(node, bodies(6))
    consumer = realm.consumer(node)
    consumer.receive(6)
    consumer.acknowledge(eids[2:3])
    assert consumer.settle("return", [*eids[:2], *eids[3:]], failed=True) == "done"
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    assert realm.command("purge", node, eid=eids[4]).answer == "done"
    state = realm.state(node)
    assert {eid for _, first, last in state.delayed for eid in range(first, last + 1)} >= set(eids[4:])
    assert eids[3] < state.low <= eids[4]
    assert realm.command("purge", node).answer == "done"
    assert not state.delayed
    assert state.low > eids[5]


def test_a_purge_below_an_eid_leaves_the_rest(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d").subscription.close()
    eids = realm.publish(node, bodies(20))
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    assert realm.command("purge", node, "d", eids[15]).answer == "done"
    assert realm.consumer(node, "durable", "d").receive(5) == eids[15:]


# -- move


def test_moved_events_are_ended_here_and_kept_there(start: Start) -> None:
    realm = start(RealmLimits(letter_events=4))
    node, dead = realm.create("orders"), realm.create("dead")
    eids = realm.publish(node, bodies(20))
    consumer = realm.consumer(node)
    assert consumer.receive(5) == eids[:5]
    assert consumer.settle("return", eids[1:3], failed=True) == "done"
    consumer.acknowledge(eids[3:5])
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    moved = realm.command("move", node, count=7, to="dead")
    assert (moved.answer, moved.count) == ("done", 7)
    assert realm.command("move", node, to="nowhere").answer == "not-found"
    assert realm.command("move", node, to="orders").answer == "unexpected"
    there = realm.consumer(dead)
    got = there.receive(7)
    assert fold(there, got) == [b"%08d" % at for at in (1, 2, 5, 6, 7, 8, 9)]
    assert realm.command("move", node, to="dead").count == 10
    assert len(there.receive(10)) == 10
    assert consumer.drain() == []
    consumer.acknowledge(eids[:1])
    realm.kill()
    later = start()
    assert later.consumer(node).drain() == []
    again = later.consumer(dead)
    assert len(again.receive(17)) == 17
    keys = later.log.control.read_range(dead.topic, 0, 0, 100).keys
    assert keys[0] == b"2;%d;%d;moved;key" % (node.store, eids[1])
    entries = [entry for record in later.journal() for entry in record["entries"] if entry["operation"] == "move"]
    assert {entry["to"] for entry in entries} == {dead.store}
    assert {entry["cause"].split()[0] for entry in entries} == {"command"}


# -- seek


def test_a_durable_goes_back_and_forth(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d")
    eids = realm.publish(node, bodies(20))
    assert consumer.receive(12) == eids[:12]
    consumer.acknowledge(eids[2:12])
    assert consumer.settle("return", eids[:2], failed=True) == "done"
    assert realm.command("seek", node, "d", eids[5]).answer == "in-use"
    consumer.subscription.close()
    assert realm.command("seek", node, "d", eids[5]).answer == "done"
    back = realm.consumer(node, "durable", "d")
    assert back.receive(15) == eids[5:]
    assert [back.again[eid] for eid in eids[5:]] == [True] * 7 + [False] * 8
    assert set(back.failed.values()) == {0}
    back.acknowledge(eids[5:])
    assert realm.state(node, "d").low == eids[-1] + 1
    back.subscription.close()
    assert realm.command("seek", node, "d", 0).answer == "done"
    realm.kill()
    later = start()
    assert later.consumer(node, "durable", "d").receive(20) == eids
    later.close()
    last = start()
    gateway_end = last.log.control.bounds(node.topic, 0)[1]
    assert last.command("seek", node, "d", 10**12).answer == "done"
    fresh = last.consumer(node, "durable", "d")
    assert last.state(node, "d").low == gateway_end
    assert fresh.drain() == []


# -- delete


def test_a_deleted_durable_is_gone_with_all_it_had(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d")
    eids = realm.publish(node, bodies(10))
    consumer.receive(5)
    consumer.acknowledge(eids[:3])
    group = f"{realm.prefix}.durable.news.d"
    realm.until(lambda: bool(realm.log.control.projected(group)), "its group")
    assert realm.command("delete", node, "d").answer == "done"
    lost = realm.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (consumer.subscription, "not-found")
    assert consumer.settle("acknowledge", eids[3:5]) == "not-found"
    assert realm.log.control.projected(group) == {}
    assert ("news", "d") not in realm_metadata(realm.log, realm.prefix).durables
    assert realm.command("delete", node, "d").answer == "not-found"
    anew = realm.consumer(node, "durable", "d")
    later = realm.publish(node, bodies(3))
    assert anew.receive(3) == later, "a new durable begins at the end"
    anew.acknowledge(later[:1])
    realm.kill()
    assert start().consumer(node, "durable", "d").receive(2) == later[1:]


def unavailable(_: Durable) -> None:
    raise LogError(Failure("unavailable", "as far as this process comes"))


def test_a_deletion_that_a_kill_cut_short_is_finished_by_the_next_owner(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d")
    eids = realm.publish(node, bodies(5))
    consumer.receive(5)
    consumer.acknowledge(eids[:2])

    monkeypatch.setattr(realm.realm._shard, "_erase", unavailable)
    told = realm.command("delete", node, "d")
    assert (told.answer, "it is deleted, but not yet erased" in told.detail) == ("unavailable", True)
    assert realm.subscribed(node, "durable", "d").answer == "unavailable", "it was tried again"
    assert ("news", "d") in realm_metadata(realm.log, realm.prefix).durables
    realm.kill()
    later = start()
    assert ("news", "d") not in realm_metadata(later.log, later.prefix).durables
    assert later.consumer(node, "durable", "d").drain() == []


def test_who_asks_for_a_durable_that_could_not_be_erased_has_that_done(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d")
    realm.publish(node, bodies(5))
    consumer.receive(5)
    with monkeypatch.context() as broken:
        broken.setattr(realm.realm._shard, "_erase", unavailable)
        assert realm.command("delete", node, "d").answer == "unavailable"
    anew = realm.consumer(node, "durable", "d")
    assert anew.drain() == [], "it begins at the end"
    later = realm.publish(node, bodies(3))
    assert anew.receive(3) == later


def test_a_durable_that_could_not_be_erased_takes_no_command_but_its_deletion(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm = start()
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d")
    realm.publish(node, bodies(5))
    with monkeypatch.context() as broken:
        broken.setattr(realm.realm._shard, "_erase", unavailable)
        assert realm.command("delete", node, "d").answer == "unavailable"
    for what in ("purge", "seek"):
        assert realm.command(what, node, "d").answer == "not-found", what
    assert realm.command("delete", node, "d").answer == "done", "what was left is done"
    assert ("news", "d") not in realm_metadata(realm.log, realm.prefix).durables
    assert realm.command("delete", node, "d").answer == "not-found"


# -- delete a node


def test_a_deleted_node_is_noted_in_the_journal_and_gone_for_all(realm: RealmProcess) -> None:
    admin.create_node(realm.log, realm.prefix, "wide", "queue", realm.clock, Properties(partitions=2))
    node = realm.find("wide")
    assert node is not None
    realm.publish(node.part(1), bodies(3))
    consumer = realm.consumer(node)
    consumer.receive(2)
    assert realm.command("delete-node", node, "").answer == "done"
    assert realm.answer(SubscriptionLost).answer == "not-found"
    assert realm.find("wide") is None
    realm.until(lambda: node.topic not in realm.log.control.topics(node.topic), "the broker's metadata to follow")
    notes = [entry for record in realm.journal() for entry in record["entries"] if entry["operation"] == "delete"]
    assert {(note["node"], note["durable"], note["store"]) for note in notes} == {
        ("wide", "", part.store) for part in node.parts
    }
    assert all(note["cause"].startswith("command ") for note in notes)
    assert realm.command("delete-node", node, "").answer == "not-found"


def test_a_node_whose_deletion_was_cut_short_is_as_it_was(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(5))
    consumer = realm.consumer(node)
    consumer.receive(5)
    consumer.acknowledge(eids[1:])

    def cut(*_: object) -> bool:
        raise LogError(Failure("unavailable", "as far as this process comes"))

    with monkeypatch.context() as cutting:
        cutting.setattr("native_backend.operations.node_deletion.delete_node", cut)
        told = realm.command("delete-node", node, "")
    assert (told.answer, "give the command again" in told.detail) == ("unavailable", True)
    realm.kill()
    later = start()
    found = later.find("orders")
    assert found == node
    again = later.consumer(found)
    assert again.receive(1) == eids[:1]
    assert again.drain() == []
    assert later.command("delete-node", found, "").answer == "done"
    assert later.find("orders") is None


def test_a_topic_that_was_adopted_goes_only_when_that_is_said(realm: RealmProcess) -> None:
    topic = f"{realm.prefix}-shop"
    realm.log.control.create_topics([TopicSpec(topic)])
    for to, left in (("", True), ("topic", False)):
        admin.create_node(realm.log, realm.prefix, "orders", "queue", realm.clock, topic=topic)
        node = realm.find("orders")
        assert node is not None
        assert realm.command("delete-node", node, "", to=to).answer == "done"
        realm.until(lambda left=left: (topic in realm.log.control.topics(topic)) == left, "the topic's end")  # type: ignore[misc]


# -- asked by another process


def test_a_command_of_another_process_is_carried_out_and_answered(world: World, start: Start) -> None:
    realm = start(RealmLimits(command_interval_s=0.02))
    node = realm.create("orders")
    eids = realm.publish(node, bodies(10))
    realm.until(lambda: realm.log.control.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    other = world.open()
    late = Command("late", "purge", "orders", node.store, "queue", until_us=1)
    wrong = Command("wrong", "purge", "orders", node.store + 1, "queue", until_us=10**18)
    nobody = Command("nobody", "seek", "orders", node.store, "d", until_us=10**18)
    good = Command("good", "purge", "orders", node.store, "queue", until_us=10**18)
    strange = Command("strange", "burn", "orders", node.store, "queue", until_us=10**18)  # type: ignore[arg-type]
    for command in (strange, late, wrong, nobody, good):
        other.control.put(commands_topic(realm.prefix), command.id.encode(), encode_command(command, 1))
    later_release = orjson.loads(encode_command(good, 1)) | {"v": 9, "id": "unknown"}
    other.control.put(commands_topic(realm.prefix), b"unknown", orjson.dumps(later_release))
    replies: dict[str, str] = {}

    def answered() -> bool:
        for value in other.control.read_range(answers_topic(realm.prefix), 0, 0, 100).values:
            reply = decode_reply(value or b"")
            assert reply is not None
            replies[reply.id] = reply.answer
        return len(replies) == 4

    realm.until(answered, "four replies")
    assert replies == {"late": "unavailable", "wrong": "not-found", "nobody": "not-found", "good": "done"}
    causes = {(entry["operation"], entry["cause"]) for record in realm.journal() for entry in record["entries"]}
    assert causes == {("purge", "command good")}
    assert realm.consumer(node).drain() == []
