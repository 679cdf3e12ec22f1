"""A node's transformer is chosen by `classify.yaml`, for some nodes, or by the configuration, for all others; one that
cannot be made is refused before anything starts, and when tables are loaded anew."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from mappings.table_set import SHIPPED
from native_backend.headers import HeadedKey
from native_backend.logs import open_embedded
from tests.gateway_process import embedded_realm, make_gateway
from tests.transformers.plugins import install
from tests.wire import frames
from tests.wire.peer import Peer

RULES = """table: classify
node_classes: [default]
rules:
"""


def rule(name: str, transformer: str) -> str:
    return f"""  - id: {name}-nodes
    names: ["{name}.*"]
    transformer: {transformer}
    because: The test asks for it.
    source: "3.6"
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    directory = tmp_path / "mappings"
    shutil.copytree(SHIPPED / "tables", directory / "tables")
    return directory / "tables" / "classify.yaml"


def test_nodes_have_the_transformer_of_their_rule(
    tmp_path: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "acme", shout="acme_code:Shout")))
    tables.write_text(RULES + rule("rich", "complete") + rule("plain", "none") + rule("loud", "shout"))
    house = make_gateway(tmp_path, embedded_realm(tmp_path), mappings={"dir": "mappings"})
    house.start()
    message = frames.message(b"body")
    with Peer(house.port) as peer:
        for node in ("rich.a", "plain.a", "loud.a", "other"):
            peer.stored(node, message)
        peer.publisher("loud.a")
        (refused,) = peer.publish(frames.message(b"please raise"))
        assert peer.outcomes(1) == {refused: "rejected:amqp:precondition-failed"}
    tables.write_text(RULES + rule("rich", "nowhere"))
    assert house.process is not None
    house.process.send_signal(signal.SIGHUP)
    house.await_log("rule rich-nodes: no transformer is called 'nowhere'")
    for handle, node in enumerate(("rich.a", "plain.a", "loud.a", "other")):
        with Peer(house.port) as peer:
            peer.consumer(node, credit=1, name=f"s{handle}")
            assert [seen.payload for seen in peer.receive(1)] == [message]
    assert house.stop() == 0
    log = open_embedded(tmp_path / "realm")
    found = {node: log.read_range(f"um.node.{node}", 0, 0, 9) for node in ("rich.a", "plain.a", "loud.a", "other")}
    log.close()
    assert {node: (type(each.keys[0]) is HeadedKey, each.values[0]) for node, each in found.items()} == {
        "rich.a": (True, b"body"),
        "plain.a": (False, message),
        "loud.a": (True, b"LENGTH %d" % len(message)),
        "other": (False, message),
    }
    assert str(found["plain.a"].keys[0]).startswith("b'1;none;")
    assert str(found["other"].keys[0]).startswith("b'1;basic;")


def test_a_transformer_that_cannot_be_made_starts_nothing(tmp_path: Path, tables: Path) -> None:
    tables.write_text(RULES + rule("rich", "nowhere"))
    house = make_gateway(tmp_path, embedded_realm(tmp_path), mappings={"dir": "mappings"})
    house.launch()
    assert house.await_exit() == 2
    assert "classify.yaml:4: rule rich-nodes: no transformer is called 'nowhere'" in house.log()
    assert not (tmp_path / "realm").exists()
