"""The contract of the realm, continued: what an operator does to queues and durables, through the journal; on nodes
of one store and of several. A command is given to each store, as the command line does."""

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
from native_backend.subscriptions.partitioned import eids_of
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.contract.actions import answers, create, heads, in_each_store, tails, visible
from tests.kit.realm.fixtures import SPREAD, Start, bodies, fold, realm, start, world
from tests.kit.realm.inside import shard_of
from tests.kit.realm.realm_process import RealmProcess, by_store
from tests.kit.realm.worlds import World

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


# -- purge


def test_a_purged_queue_gives_only_what_comes_later(start: Start) -> None:
    realm = start()
    node = realm.create("orders")
    eids = realm.publish(node, bodies(20))
    first = realm.consumer(node)
    first.receive(5)
    first.subscription.close()  # returned: purged, too
    visible(realm, node, eids)
    purged = in_each_store(realm, "purge", node)
    assert answers(purged) == {"done"}
    assert sum(reply.count for reply in purged) >= 20
    consumer = realm.consumer(node)
    later = realm.publish(node, bodies(3))
    assert by_store(consumer.receive(3)) == by_store(later)
    assert consumer.drain() == []
    for at, some in by_store(later).items():
        assert eids_of(by_store(eids)[at])[-1] < realm.states(node)[at].low <= eids_of(some)[0]
    realm.kill()
    again = start().consumer(node)
    assert by_store(again.receive(3)) == by_store(later)
    assert again.drain() == []


def test_what_consumers_have_is_not_purged(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(20))
    consumer = realm.consumer(node)
    had = consumer.receive(5)
    visible(realm, node, eids)
    held = {at: f"{len(some)} events that consumers have stay theirs" for at, some in by_store(had).items()}
    replies = [(reply.answer, reply.detail) for reply in in_each_store(realm, "purge", node)]
    assert replies == [("done", held.get(part.partition, "")) for part in node.parts]
    consumer.acknowledge(had[1:])
    assert consumer.settle("return", had[:1]) == "done"
    assert consumer.receive(1) == had[:1]
    assert consumer.drain() == []


def test_what_waits_to_be_given_again_is_purged_too(realm: RealmProcess) -> None:
    node = create(realm, "orders", Properties(redelivery_delay_ms=3_600_000))
    eids = by_store(realm.publish(node, bodies(6 * node.partitions)))
    consumer = realm.consumer(node)
    consumer.receive(6 * node.partitions)
    consumer.acknowledge([some[2] for some in eids.values()])
    assert consumer.settle("return", [*heads(eids, 2), *tails(eids, 3)], failed=True) == "done"
    visible(realm, node, tails(eids, 5))
    assert answers(in_each_store(realm, "purge", node, at=[some[4] for some in eids.values()])) == {"done"}
    for at, state in enumerate(realm.states(node)):
        some = eids_of(eids[at])
        assert {eid for _, first, last in state.delayed for eid in range(first, last + 1)} >= set(some[4:])
        assert some[3] < state.low <= some[4]
    assert answers(in_each_store(realm, "purge", node)) == {"done"}
    for at, state in enumerate(realm.states(node)):
        assert not state.delayed
        assert state.low > eids_of(eids[at])[5]


def test_a_purge_below_an_eid_leaves_the_rest(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d").subscription.close()
    eids = by_store(realm.publish(node, bodies(20 * node.partitions)))
    visible(realm, node, tails(eids, 19))
    assert answers(in_each_store(realm, "purge", node, "d", [some[15] for some in eids.values()])) == {"done"}
    left = tails(eids, 15)
    assert by_store(realm.consumer(node, "durable", "d").receive(len(left))) == by_store(left)


# -- move


def test_moved_events_are_ended_here_and_kept_there(start: Start) -> None:
    realm = start(RealmLimits(letter_events=4))
    node, dead = realm.create("orders"), realm.create("dead")
    stores = node.partitions
    published = realm.publish(node, bodies(20 * stores))
    eids = by_store(published)
    consumer = realm.consumer(node)
    consumer.receive(20 * stores)
    assert consumer.settle("return", tails(eids, 5)) == "done"
    assert consumer.settle("return", [eid for some in eids.values() for eid in some[1:3]], failed=True) == "done"
    consumer.acknowledge([eid for some in eids.values() for eid in some[3:5]])
    visible(realm, node, published)
    moved = in_each_store(realm, "move", node, count=7, to="dead")
    assert [(reply.answer, reply.count) for reply in moved] == [("done", 7)] * stores
    assert answers(in_each_store(realm, "move", node, to="nowhere")) == {"not-found"}
    assert answers(in_each_store(realm, "move", node, to="orders")) == {"unexpected"}
    there = realm.consumer(dead)
    first = {at: [consumer.bodies[eid] for eid in (*some[1:3], *some[5:10])] for at, some in eids.items()}
    got = by_store(there.receive(7 * stores))
    assert {at: fold(there, some) for at, some in got.items()} == first, "each in the store of the same number"
    assert [reply.count for reply in in_each_store(realm, "move", node, to="dead")] == [10] * stores
    assert len(there.receive(10 * stores)) == 10 * stores
    assert consumer.drain() == []
    consumer.acknowledge(heads(eids, 1))
    realm.kill()
    later = start()
    assert later.consumer(node).drain() == []
    again = later.consumer(dead)
    assert len(again.receive(17 * stores)) == 17 * stores
    for part in node.parts:
        keys = later.log.control.read_range(dead.topic, part.partition, 0, 100).keys
        assert keys[0] == b"2;%d;%d;moved;key" % (part.store, eids_of(eids[part.partition])[1])
    entries = [entry for record in later.journal() for entry in record["entries"] if entry["operation"] == "move"]
    pairs = {(entry["store"], entry["to"]) for entry in entries}
    assert pairs == {(part.store, dead.part(part.partition).store) for part in node.parts}
    assert {entry["cause"].split()[0] for entry in entries} == {"command"}


# -- delete


def test_a_deleted_durable_is_gone_with_all_it_had(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d")
    realm.publish(node, bodies(10))
    had = consumer.receive(5)
    consumer.acknowledge(had[:3])
    group = f"{realm.prefix}.durable.news.d"
    realm.until(lambda: bool(realm.log.control.projected(group)), "its group")
    assert realm.command("delete", node, "d").answer == "done"
    lost = realm.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (consumer.subscription, "not-found")
    assert consumer.settle("acknowledge", had[3:]) == "not-found"
    assert realm.log.control.projected(group) == {}
    assert ("news", "d") not in realm_metadata(realm.log, realm.prefix).durables
    assert realm.command("delete", node, "d").answer == "not-found"
    anew = realm.consumer(node, "durable", "d")
    later = realm.publish(node, bodies(3))
    assert by_store(anew.receive(3)) == by_store(later), "a new durable begins at the end"
    anew.acknowledge(later[:1])
    realm.kill()
    assert by_store(start().consumer(node, "durable", "d").receive(2)) == by_store(later[1:])


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

    monkeypatch.setattr(shard_of(realm.realm), "erase", unavailable)
    answer = realm.command("delete", node, "d")
    assert (answer.answer, "it is deleted, but not yet erased" in answer.detail) == ("unavailable", True)
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
        broken.setattr(shard_of(realm.realm), "erase", unavailable)
        assert realm.command("delete", node, "d").answer == "unavailable"
    anew = realm.consumer(node, "durable", "d")
    assert anew.drain() == [], "it begins at the end"
    later = realm.publish(node, bodies(3))
    assert by_store(anew.receive(3)) == by_store(later)


def test_a_durable_that_could_not_be_erased_takes_no_command_but_its_deletion(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm = start()
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d")
    realm.publish(node, bodies(5))
    with monkeypatch.context() as broken:
        broken.setattr(shard_of(realm.realm), "erase", unavailable)
        assert realm.command("delete", node, "d").answer == "unavailable"
    for what in ("purge", "seek"):
        assert realm.command(what, node, "d").answer == "not-found", what
    assert realm.command("delete", node, "d").answer == "done", "what was left is done"
    assert ("news", "d") not in realm_metadata(realm.log, realm.prefix).durables
    assert realm.command("delete", node, "d").answer == "not-found"


# -- delete a node


def test_a_deleted_node_is_noted_in_the_journal_and_gone_for_all(realm: RealmProcess) -> None:
    node = realm.create("wide")
    realm.publish(node, bodies(3))
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
        answer = realm.command("delete-node", node, "")
    assert (answer.answer, "give the command again" in answer.detail) == ("unavailable", True)
    realm.kill()
    later = start()
    queue = later.find("orders")
    assert queue == node
    again = later.consumer(queue)
    assert again.receive(1) == eids[:1]
    assert again.drain() == []
    assert later.command("delete-node", queue, "").answer == "done"
    assert later.find("orders") is None


def test_a_topic_that_was_adopted_goes_only_on_request(realm: RealmProcess) -> None:
    topic = f"{realm.prefix}-shop"
    realm.log.control.create_topics([TopicSpec(topic, realm.partitions)])
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
    realm.publish(node, bodies(10))
    visible(realm, node, realm.publish(node, bodies(node.partitions)))
    other = world.open()
    late = Command("late", "purge", "orders", node.store, "queue", until_us=1)
    wrong = Command("wrong", "purge", "orders", node.store + 1, "queue", until_us=10**18)
    absent = Command("absent", "seek", "orders", node.store, "d", until_us=10**18)
    good = [
        Command(f"good{part.partition}", "purge", "orders", part.store, "queue", until_us=10**18) for part in node.parts
    ]
    strange = Command("strange", "burn", "orders", node.store, "queue", until_us=10**18)  # type: ignore[arg-type]
    for command in (strange, late, wrong, absent, *good):
        other.control.put(commands_topic(realm.prefix), command.id.encode(), encode_command(command, 1))
    later_release = orjson.loads(encode_command(good[0], 1)) | {"v": 9, "id": "unknown"}
    other.control.put(commands_topic(realm.prefix), b"unknown", orjson.dumps(later_release))
    replies: dict[str, str] = {}

    def answered() -> bool:
        for value in other.control.read_range(answers_topic(realm.prefix), 0, 0, 100).values:
            reply = decode_reply(value or b"")
            assert reply is not None
            replies[reply.id] = reply.answer
        return len(replies) == 3 + len(good)

    realm.until(answered, "a reply to each that is understood")
    bad = {"late": "unavailable", "wrong": "not-found", "absent": "not-found"}
    assert replies == bad | {command.id: "done" for command in good}
    causes = {(entry["operation"], entry["cause"]) for record in realm.journal() for entry in record["entries"]}
    assert causes == {("purge", f"command {command.id}") for command in good}
    assert realm.consumer(node).drain() == []


def test_a_command_that_is_stored_twice_is_carried_out_once(realm: RealmProcess) -> None:
    """The client of its sender retries where an answer of the broker is lost."""
    node = realm.create("orders")
    realm.create("dead")
    visible(realm, node, realm.publish(node, bodies(9 * node.partitions)))
    other = realm.world.open()
    executed = in_each_store(realm, "move", node, count=1, to="dead")
    assert [reply.count for reply in executed] == [1] * node.partitions
    topic = commands_topic(realm.prefix)
    first = other.control.read_range(topic, 0, 0, 100)
    sent = [
        Command(f"{id_}{part.partition}", "move", "orders", part.store, "queue", 10**18, count=count, to="dead")
        for id_, count in (("a", 2), ("last", 3))
        for part in node.parts
    ]
    records = [(command.id.encode(), encode_command(command, 1)) for command in sent]
    twice = [*zip(first.keys, first.values, strict=True), *records[: node.partitions], *records]
    for key, value in twice:
        other.control.put(topic, key or b"", value)

    def replies() -> list[str]:
        values = other.control.read_range(answers_topic(realm.prefix), 0, 0, 100).values
        return [reply.id for reply in map(decode_reply, filter(None, values)) if reply is not None]

    last = {command.id for command in sent if command.id.startswith("last")}
    realm.until(lambda: last <= set(replies()), "the answers to the last ones")
    assert len(replies()) == len(set(replies())) == 3 * node.partitions
    moves = [entry for record in realm.journal() for entry in record["entries"] if entry["operation"] == "move"]
    assert len({entry["cause"] for entry in moves}) == len(moves) == 3 * node.partitions
    assert [reply.count for reply in in_each_store(realm, "move", node, to="dead")] == [3] * node.partitions
