"""Publishers of a node that is deleted: they hear it at once, and not when they publish next (O-5)."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mappings import TableSet, load_tables
from mappings.compiler.table_set import SHIPPED
from native_backend.log.open import open_embedded, open_kafka
from native_backend.log.port import Log, TopicSpec
from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from tests.kit.wire.transacting import Transacting

MESSAGE = frames.message()
DELETED = "amqp:resource-deleted"


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway on each realm."""
    directory = tmp_path_factory.mktemp("deleted")
    if request.param == "embedded":
        realm = embedded_realm(directory)
    else:
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"t{uuid.uuid4().hex[:8]}")
    gateway = start_gateway(directory, realm, nodes={"create_on_attach": []})
    yield gateway
    gateway.end_well()


@pytest.mark.requirement("O-5")
@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("kind", ["queue", "channel"])
def test_O_5_idle_publishers_hear_that_their_node_was_deleted(
    either: GatewayProcess, kind: str, partitions: int
) -> None:
    """All of them, whether they have published or not; publishers of other nodes, and the session, go on."""
    doomed, other = f"doomed-{kind}-{partitions}", f"other-{kind}-{partitions}"
    for name in (doomed, other):
        either.command("node", "create", name, "--kind", kind, "--partitions", str(partitions))
    with Peer(either.port) as peer, Peer(either.port) as silent:
        peer.publisher(doomed, kind, 0)
        peer.publisher(other, kind, 1)
        silent.publisher(doomed, kind)
        assert peer.outcomes(len(peer.publish(MESSAGE, MESSAGE, handle=0))) == {0: "accepted", 1: "accepted"}
        either.command("node", "delete", doomed, "--yes")
        assert peer.detached(0) == DELETED
        assert silent.detached(0) == DELETED
        peer.send(frames.detach(0))
        assert peer.outcomes(len(peer.publish(MESSAGE, handle=1))) == {2: "accepted"}
        peer.send(frames.attach_sender(doomed, 0, "again"))
        assert peer.refused() == "amqp:not-found"


def topic_made_again(gateway: GatewayProcess, node: str) -> None:
    """By other means than the gateway's."""
    listed = json.loads(gateway.command("node", "list", "--json"))
    [topic] = [entry["topic"] for entry in listed if entry["name"] == node]
    realm = gateway.settings["realm"]
    embedded = realm["kind"] == "embedded"
    log: Log = open_embedded(Path(realm["path"])) if embedded else open_kafka(realm["bootstrap"], {})
    log.control.delete_topics([topic])
    until(lambda: not log.control.find_topics([topic]), "the end of the topic")
    log.control.create_topics([TopicSpec(topic)])
    log.close()


@pytest.mark.requirement("O-5")
def test_O_5_idle_publishers_hear_that_the_topic_of_their_node_was_made_again(either: GatewayProcess) -> None:
    """The node has lost its events; its consumers hear it, too."""
    for name in ("replaced", "kept"):
        either.command("node", "create", name)
    with Peer(either.port) as peer, Peer(either.port) as consumer:
        peer.publisher("replaced", handle=0)
        peer.publisher("kept", handle=1)
        consumer.consumer("replaced")
        topic_made_again(either, "replaced")
        assert peer.detached(0) == DELETED
        assert consumer.detached(1) == DELETED
        assert peer.outcomes(len(peer.publish(MESSAGE, handle=1))) == {0: "accepted"}
        peer.send(frames.detach(0), frames.attach_sender("replaced", 0, "again"))
        assert peer.refused() == "amqp:not-found"
    either.command("node", "delete", "replaced", "--yes")


def test_a_node_that_is_made_anew_takes_what_is_published_on_a_new_link(either: GatewayProcess) -> None:
    with Peer(either.port) as peer:
        either.command("node", "create", "anew")
        peer.publisher("anew")
        either.command("node", "delete", "anew", "--yes")
        assert peer.detached(0) == DELETED
        peer.send(frames.detach(0))
        either.command("node", "create", "anew")
        peer.publisher("anew", handle=5)
        assert peer.outcomes(len(peer.publish(MESSAGE, handle=5))) == {0: "accepted"}


def test_a_transaction_that_has_published_to_it_can_only_be_rolled_back(either: GatewayProcess) -> None:
    either.command("node", "create", "in-a-transaction")
    with Transacting(either.port) as peer:
        peer.publisher("in-a-transaction")
        transaction = peer.begun()
        [number] = peer.post(transaction, MESSAGE)
        peer.promised(number)
        either.command("node", "delete", "in-a-transaction", "--yes")
        assert peer.detached(0) == DELETED
        assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"


def test_P_R2d_as_documented_a_publisher_hears_it_when_it_publishes(documented: GatewayProcess) -> None:
    with Peer(documented.port) as peer:
        documented.command("node", "create", "short-lived")
        peer.publisher("short-lived")
        documented.command("node", "delete", "short-lived", "--yes")
        peer.nothing()
        peer.publish(MESSAGE)
        assert peer.outcomes(1) == {0: "rejected:amqp:not-found"}
        assert peer.detached(0) == "amqp:not-found"


def test_a_relay_goes_on_when_one_of_its_nodes_is_deleted(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=3)
        peer.send(frames.attach_sender(None))
        peer.expect("attach")
        peer.send(frames.transfer(0, frames.message_to(node)))
        assert peer.outcomes(1) == {0: "accepted"}
        gateway.command("node", "delete", node, "--yes")
        assert peer.detached(3) == DELETED
        peer.send(frames.transfer(1, frames.message_to("any.relayed")))
        assert peer.outcomes(1) == {1: "accepted"}


class Attached:
    """A publisher, without a socket, of a node of a scripted realm."""

    def __init__(self, tables: TableSet) -> None:
        self.realm = ScriptedRealm()
        self.gateway = build_gateway(tables, self.realm)
        self.peer = Conversation(self.gateway)
        self.peer.say(frames.attach_sender("q"))

    def delete(self) -> list[frames.Seen]:
        self.realm.delete("q")
        return self.peer.listen()


@pytest.mark.parametrize("answer", ["stored", "capacity-reached"])
def test_what_is_under_way_has_its_outcome_before_the_link_ends(answer: str) -> None:
    link = Attached(load_tables())
    link.realm.holds.add("publish")
    link.realm.answers["publish"] = answer
    link.peer.say(frames.transfer(0, MESSAGE), frames.transfer(1, MESSAGE))
    assert link.delete() == []
    link.realm.release()
    names = [seen.name for seen in link.peer.listen()]
    assert set(names[:-1]) == {"disposition"}
    assert (names[-1], link.peer.seen[-1].condition) == ("detach", DELETED)
    assert link.gateway.faults["assertion"] == 0


def test_a_link_that_its_peer_has_detached_meanwhile_is_answered_once() -> None:
    link = Attached(load_tables())
    link.realm.holds.add("publish")
    link.peer.say(frames.transfer(0, MESSAGE))
    assert link.delete() == []
    (answer,) = link.peer.say(frames.detach(0))
    assert (answer.name, answer.condition) == ("detach", None)
    link.realm.release()
    assert link.peer.listen() == []
    assert link.gateway.faults["assertion"] == 0
    assert not link.gateway.publishers


def test_tables_of_an_earlier_release_keep_such_a_publisher(tmp_path: Path) -> None:
    """There a publisher could not fail later: the cell is impossible."""
    shutil.copytree(SHIPPED / "tables", tmp_path / "tables")
    path = tmp_path / "tables/attached.yaml"
    table = yaml.safe_load(path.read_text())
    table["impossible"][-1]["when"] = {"direction": "publish", "moment": "later"}
    new = ("not-found-keeps-the-publisher", "deleted-ends-the-publisher")
    for profile in table["profiles"].values():
        profile["rules"] = [rule for rule in profile["rules"] if rule["id"] not in new]
        if "without" in profile:
            profile["without"] = [rule_id for rule_id in profile["without"] if rule_id not in new]
    path.write_text(yaml.safe_dump(table, sort_keys=False))
    link = Attached(load_tables(tmp_path))
    assert link.delete() == []
    assert [seen.state for seen in link.peer.say(frames.transfer(0, MESSAGE))] == ["accepted"]
    assert link.gateway.faults["assertion"] == 0
