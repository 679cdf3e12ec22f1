"""Nodes whose topics are gone: what they accepted is lost, and said to be, unless the journal says that they were
deleted. On both realms."""

from __future__ import annotations

from pathlib import Path

import pytest

from native_backend.log.open import open_embedded, open_kafka
from native_backend.log.port import Log, TopicSpec
from native_backend.nodes.durable import durable_key
from native_backend.nodes.node import Node, encode_node, node_key
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import World

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
PREFIX = "vanished"


def temporary(world: World, name: str) -> Node:
    node = world.queue(name)
    value = encode_node(node, world.clock.epoch_us()).replace(b'"adopted":0', b'"adopted":0,"temporary":1')
    world.log.control.put(f"{world.prefix}.realm", node_key(name), value)
    return node


def ended(world: World, node: Node) -> None:
    """As temporary nodes end: no command, no note."""
    world.log.control.put(f"{world.prefix}.realm", node_key(node.name), None)
    world.log.control.delete_topics([node.topic])


def made_again(log: Log, topic: str) -> None:
    log.control.delete_topics([topic])
    log.control.create_topics([TopicSpec(topic)])


def fill(world: World) -> None:
    log, run = world.log, world.run()
    gone, again, torn_out, dead = (world.queue(name) for name in ("gone", "again", "torn-out", "dead"))
    run.publish(gone, 3)
    run.settle(gone, run.publish(gone, 1), "accepted")
    run.publish(again, 2)
    run.publish(torn_out, 2)
    orders, unused = world.queue("orders"), world.queue("unused")
    run.settle(orders, run.publish(orders, 2), "rejected", to=dead)
    reborn = world.queue("reborn")
    run.publish(reborn, 5)
    run.delete(reborn)
    run.publish(world.queue("reborn"), 1)
    for name in ("temporary:app.link.1", "temporary:app.link.2"):
        node = temporary(world, name)
        run.settle(node, run.publish(node, 4)[:1], "accepted")
        if name.endswith("1"):
            ended(world, node)
    news = world.channel("news")
    first = run.publish(news, 1)
    for name in ("app:torn-out", "app:unread", "app:anew", "app:again", "app:deleted", "app|volatile", "app:kept"):
        world.durable(news, name, first[0].eid)
    heard = run.publish(news, 5)
    for name in ("app:torn-out", "app:anew", "app:again", "app:deleted", "app|volatile"):
        run.settle(news, heard[:2], "accepted", name)
    world.snapshot(news, "app:unread", first[0].eid, [], 0)
    for name in ("app:again", "app:deleted"):
        run.note(news, name, "delete", 0, 0, "unsubscribed")
        run.settle(news, heard[2:3], "released", name)  # its consumer had it
    world.clock.now_us += 3_600_000_000
    run.settle(news, heard[3:4], "accepted", "app:again")
    for name in ("app:torn-out", "app:unread", "app:anew", "app:again", "app:deleted", "app|volatile"):
        log.control.put(f"{world.prefix}.realm", durable_key("news", name), None)
    world.durable(news, "app:anew", heard[4].eid, world.journal_end)
    run.close()
    log.control.delete_topics([gone.topic, dead.topic, unused.topic])
    made_again(log, again.topic)
    world.append(again.topic, [b"1;basic;%s;1;1;4;;0;;0" % run.name.encode()] * 3, [b"x"] * 3)
    log.control.put(f"{world.prefix}.realm", node_key("torn-out"), None)


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    if request.param == "embedded":
        directory: Path = tmp_path_factory.mktemp("vanished")
        log, realm = open_embedded(directory), Realm("embedded", PREFIX, path=directory)
    else:
        bootstrap = request.getfixturevalue("kafka_bootstrap")
        log, realm = open_kafka(bootstrap, {}), Realm("kafka", PREFIX, bootstrap=bootstrap)
    fill(World(log, PREFIX))
    log.close()
    return reconcile(realm)


def test_what_a_vanished_topic_held_is_lost(result: Result) -> None:
    assert result.classes() == {"P1": 8, "A7": 2, "Q1": 6, "S3": 1}, result.text
    assert (result.manifest["verdict"], result.manifest["clean"], result.code) == ("not clean", False, 1)
    nodes = [row["node"] for row in result.examples("P1")]
    assert {name: nodes.count(name) for name in nodes} == {"gone": 4, "again": 2, "torn-out": 2}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("gone", "topic vanished.node.gone partition 0: the topic is gone: restore it from a backup"),
        ("again", "the topic was deleted, and another one made of its name"),
        ("torn-out", "it is not in the metadata, and the journal does not say that it was deleted"),
    ],
)
def test_each_lost_write_names_its_node_and_why(result: Result, node: str, words: str) -> None:
    rows = result.examples("P1", node)
    assert rows
    assert all(words in row["detail"] and row["tag"] for row in rows), rows


def test_nodes_that_are_gone_are_in_the_books(result: Result) -> None:
    books = {node["node"]: node for node in result.manifest["balance"]["nodes"]}
    assert (books["gone"]["accepted"], books["gone"]["anomalies"], books["gone"]["stored"]) == (4, -4, 0)
    assert (books["again"]["accepted"], books["again"]["stored"]) == (2, 0)
    assert books["torn-out"]["anomalies"] == -2


def test_copies_that_are_gone_are_named_by_what_was_copied(result: Result) -> None:
    rows = result.examples("A7", "orders")
    assert [row["count"] for row in rows] == [1, 1]
    assert all("it is kept in node dead; there are 0 copies of it" in row["detail"] for row in rows)
    assert [row["node"] for row in result.examples("S3")] == ["again"]
    assert result.manifest["balance"]["difference"] == 0


def test_a_node_of_which_nothing_is_known_is_unseen(result: Result) -> None:
    assert sorted(row["node"] for row in result.examples("Q1") if not row["durable"]) == ["dead", "unused"]
    assert not result.manifest["complete"]


def test_a_durable_without_a_record_of_its_deletion_is_unseen(result: Result) -> None:
    """The journal, or a snapshot, knows it. The others were deleted, or ended with their last link."""
    gone = "it is not in the metadata, and was not deleted, as far as the journal says"
    assert {row["durable"]: row["detail"] for row in result.examples("Q1", "news")} == {
        "app:torn-out": f"durable app:torn-out of node news: {gone}",
        "app:unread": f"durable app:unread of node news: {gone}",
        "app:again": f"durable app:again of node news: {gone}",
        "app:anew": "durable app:anew of node news: an earlier one of that name was not deleted, as far as the journal "
        "says",
    }


def test_only_what_the_journal_says_was_deleted_counts_so(result: Result) -> None:
    balance = result.manifest["balance"]
    assert (balance["deleted"], balance["temporary"]) == (5, 4)
    reborn = [book for book in balance["nodes"] if book["node"] == "reborn"]
    assert [(book["accepted"], book["stored"]) for book in reborn] == [(1, 1)]
    assert "5 more publishes were accepted in nodes that the journal says were deleted since." in result.text
    assert "4 more publishes were accepted in temporary nodes that have ended." in result.text


def test_a_temporary_node_that_lives_is_reconciled(result: Result) -> None:
    books = [book for book in result.manifest["balance"]["nodes"] if book["node"].startswith("temporary:")]
    assert [(book["accepted"], book["stored"]) for book in books] == [(4, 4)]
