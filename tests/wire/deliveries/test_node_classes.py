"""Rules for a class of nodes, on a socket: at each stage a link to a node of the class meets its own rule, and a link
to any other node does not; a reload that moves a node to another class moves its links."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from mappings import TableSet, load_tables
from mappings.compiler.table_set import SHIPPED
from tests.kit.tables.overriding import classify, override
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import reload_once
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.kit.wire.transacting import Transacting

BULK, OTHER = "orders.bulk.7", "orders.7"
REJECTED, ACCEPTED = (frames.state(name) for name in ("rejected", "accepted"))


OVERRIDES = [
    ("attach", "refuse-an-unknown-mode", {"condition": "amqp:not-allowed"}),
    ("attached", "access-denied-refused", {"condition": "amqp:not-allowed"}),
    ("publish", "untransformed-rejected", {"condition": "amqp:not-allowed"}),
    ("published", "capacity-reached-rejected", {"outcome": "modified"}),
    ("posted", "capacity-reached-rejected-settled", {"condition": "amqp:not-allowed"}),
    ("default", "cut-off-is-a-failed-attempt", {"state": "rejected"}),
    ("settle", "rejected-dead-letters", {"native": "discard"}),
    ("settled", "access-denied-rejected", {"condition": "amqp:not-allowed"}),
]


@pytest.fixture(scope="module")
def classed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TableSet]:
    directory = tmp_path_factory.mktemp("classed")
    shutil.copytree(SHIPPED / "tables", directory / "tables")
    classify(directory, "orders.bulk.*")
    for table, rule, then in OVERRIDES:
        override(directory, table, rule, **then)
    return directory, load_tables(directory)


@pytest.fixture
def directory(classed: tuple[Path, TableSet], tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(classed[0], tmp_path / "ours")
    return tmp_path / "ours"


@pytest.fixture
def gateway(classed: tuple[Path, TableSet], directory: Path) -> Iterator[ScriptedGateway]:
    with ScriptedGateway(classed[1], directory=directory) as gateway:
        yield gateway


def given(gateway: ScriptedGateway, peer: Peer, node: str) -> None:
    """One event of `node` is delivered to `peer`."""
    peer.consumer(node, credit=1)
    peer.stored(node, frames.message())
    peer.receive(1)


def refused(gateway: ScriptedGateway, peer: Peer, node: str, *, mode: str | None = None) -> str | None:
    where = frames.source(node, mode=mode) if mode else node
    peer.send(frames.attach_receiver(where))
    return peer.refused()


@pytest.mark.parametrize(("node", "special"), [(BULK, True), (OTHER, False), ("orders.bulk", False)])
class TestEachTable:
    """`special`: the node is of the class."""

    def test_attach(self, gateway: ScriptedGateway, node: str, special: bool) -> None:
        with Peer(gateway.port) as peer:
            sentence = refused(gateway, peer, node, mode="both")
        assert sentence == ("amqp:not-allowed" if special else "amqp:not-implemented")

    def test_attached(self, gateway: ScriptedGateway, node: str, special: bool) -> None:
        gateway.realm.answers["subscribe"] = "access-denied"
        with Peer(gateway.port) as peer:
            assert refused(gateway, peer, node) == ("amqp:not-allowed" if special else "amqp:unauthorized-access")

    def test_publish_and_published(self, gateway: ScriptedGateway, node: str, special: bool) -> None:
        gateway.realm.answers["publish"] = "capacity-reached"
        with Peer(gateway.port) as peer:
            peer.publisher(node)
            peer.publish(frames.message(), b"")
            outcomes = set(peer.outcomes(2).values())
        assert outcomes == (
            {"modified", "rejected:amqp:not-allowed"}
            if special
            else {"rejected:amqp:resource-limit-exceeded", "rejected:amqp:precondition-failed"}
        )
        of_class = [rule for rule in gateway.rules() if rule.endswith("-bulk")]
        expected = ["publish.untransformed-rejected-bulk", "published.capacity-reached-rejected-bulk"]
        assert sorted(of_class) == (expected if special else [])

    def test_posted(self, gateway: ScriptedGateway, node: str, special: bool) -> None:
        with Transacting(gateway.port) as peer:
            transaction = peer.begun()
            peer.publisher(node)
            gateway.realm.answers["post"] = "capacity-reached"
            peer.post(transaction, frames.message())
            [(outcomes, _)] = peer.dispositions(1).values()
        assert outcomes == f"transactional rejected:amqp:{'not-allowed' if special else 'resource-limit-exceeded'}"

    def test_settle(self, gateway: ScriptedGateway, node: str, special: bool) -> None:
        with Peer(gateway.port) as peer:
            given(gateway, peer, node)
            peer.settle([0], REJECTED)
            gateway.until(lambda: f"{'discard' if special else 'dead-letter'} 1" in gateway.realm.calls)

    def test_default(self, gateway: ScriptedGateway, node: str, special: bool) -> None:
        with Peer(gateway.port) as peer:
            given(gateway, peer, node)
        gateway.until(lambda: f"{'discard' if special else 'return'} 1" in gateway.realm.calls)

    def test_settled(self, gateway: ScriptedGateway, node: str, special: bool) -> None:
        with Peer(gateway.port) as peer:
            given(gateway, peer, node)
            gateway.realm.answers["settle"] = "access-denied"
            peer.settle([0], ACCEPTED, settled=False)
            outcomes = peer.outcomes(1)
        assert outcomes == {0: f"rejected:amqp:{'not-allowed' if special else 'unauthorized-access'}"}


def test_a_reload_moves_a_link_to_its_new_class(gateway: ScriptedGateway, directory: Path) -> None:
    """What came before is answered as it was classified then; what comes after, as it is classified now."""
    realm = gateway.realm
    realm.answers["publish"] = "capacity-reached"
    with Peer(gateway.port) as peer:
        peer.publisher(OTHER)
        realm.holds.add("publish")
        [before] = peer.publish(frames.message())
        gateway.until(lambda: "publish 1" in realm.calls)
        classify(directory, "orders.*")
        reload_once(gateway)
        assert gateway.server.reload.problems == []
        [after] = peer.publish(frames.message())
        gateway.until(lambda: realm.calls.count("publish 1") == 2)
        gateway.do(realm.release)
        assert peer.outcomes(2) == {before: "rejected:amqp:resource-limit-exceeded", after: "modified"}
        classify(directory, "orders.*", node_class="slow")
        reload_once(gateway)
        assert "axis node_class has other values" in gateway.server.reload.problems[0]


def test_the_evidence_says_for_which_class_it_was_decided(gateway: ScriptedGateway) -> None:
    with Peer(gateway.port) as peer:
        for handle, node in enumerate((BULK, OTHER)):
            peer.publisher(node, handle=handle)
            peer.publish(frames.message(), handle=handle)
            peer.outcomes(1)
    gateway.rules()
    groups = [group for record in gateway.realm.evidence for group in orjson.loads(record).get("groups", ())]
    table = gateway.tables["published"]
    classes = {group["node"]: table.facts(group["answer_cell"])["node_class"] for group in groups}
    assert classes == {BULK: "bulk", OTHER: "default"}
    gateway.do(gateway.gateway.store_tables)
    documents = [orjson.loads(record) for record in gateway.realm.evidence if b'"classify"' in record]
    [document] = [document for document in documents if "of" not in document]
    assert TableSet.read(document).classify(BULK).node_class == "bulk"
