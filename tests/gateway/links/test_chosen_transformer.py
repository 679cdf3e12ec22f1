"""A node's transformer is chosen by `classify.yaml`, for some nodes, or by the configuration, for all others; one that
cannot be made is refused before anything starts, and when tables are loaded anew."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mappings.compiler.loading import Loader
from mappings.compiler.table_set import SHIPPED
from native_backend.log.open import open_embedded
from native_backend.log.record_headers import HeadedKey
from tests.kit.messages.plugins import install
from tests.kit.processes.gateway import embedded_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.events.installed import complaint_about

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


def test_nodes_have_the_transformer_of_their_rule(tmp_path: Path, tables: Path) -> None:
    tables.write_text(RULES + rule("rich", "complete") + rule("plain", "none") + rule("loud", "shout"))
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), mappings={"dir": "mappings"})
    gateway.environment["PYTHONPATH"] = str(install(tmp_path / "acme", shout="acme_code:Shout"))
    gateway.start()
    message = frames.message(b"body")
    with Peer(gateway.port) as peer:
        for node in ("rich.a", "plain.a", "loud.a", "other"):
            peer.stored(node, message)
        peer.publisher("loud.a")
        (refused,) = peer.publish(frames.message(b"please raise"))
        assert peer.outcomes(1) == {refused: "rejected:amqp:precondition-failed"}
    tables.write_text(RULES + rule("rich", "nowhere"))
    assert gateway.process is not None
    gateway.process.send_signal(signal.SIGHUP)
    gateway.await_log("classify.yaml:6:18: rule rich-nodes: no transformer is called 'nowhere'")
    for handle, node in enumerate(("rich.a", "plain.a", "loud.a", "other")):
        with Peer(gateway.port) as peer:
            peer.consumer(node, credit=1, name=f"s{handle}")
            assert [seen.payload for seen in peer.receive(1)] == [message]
    assert gateway.stop() == 0
    log = open_embedded(tmp_path / "realm")
    batches = {
        node: log.control.read_range(f"um.node.{node}", 0, 0, 9) for node in ("rich.a", "plain.a", "loud.a", "other")
    }
    log.close()
    assert {node: (type(batch.keys[0]) is HeadedKey, batch.values[0]) for node, batch in batches.items()} == {
        "rich.a": (True, b"body"),
        "plain.a": (False, message),
        "loud.a": (True, b"LENGTH %d" % len(message)),
        "other": (False, message),
    }
    assert str(batches["plain.a"].keys[0]).startswith("b'1;none;")
    assert str(batches["other"].keys[0]).startswith("b'1;basic;")


def test_a_transformer_that_cannot_be_made_starts_nothing(tmp_path: Path, tables: Path) -> None:
    tables.write_text(RULES + rule("rich", "nowhere"))
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), mappings={"dir": "mappings"})
    gateway.launch()
    assert gateway.await_exit() == 2
    assert "classify.yaml:6: rule rich-nodes: no transformer is called 'nowhere'" in gateway.log()
    assert not (tmp_path / "realm").exists()


@pytest.mark.parametrize(
    ("transformer", "complaint"),
    [
        ("nowhere", "no transformer is called 'nowhere' (there are none, basic, complete, broken, late)"),
        ("broken", "transformer 'broken' (not_written:It, of distribution acme) cannot be made: ModuleNotFoundError"),
        ("late", "transformer 'late' (acme_code:Late, of distribution acme) cannot be made: ValueError: not today"),
    ],
)
def test_check_tells_where_a_transformer_is_named_that_cannot_be_made(
    tmp_path: Path, tables: Path, monkeypatch: pytest.MonkeyPatch, transformer: str, complaint: str
) -> None:
    plugins = install(tmp_path / "acme", broken="not_written:It", late="acme_code:Late")
    for part in ("scenarios", "expanded"):
        shutil.copytree(SHIPPED / part, tmp_path / "mappings" / part)
    tables.write_text(RULES + rule("rich", "complete") + rule("odd", transformer))
    command = [str(Path(sys.executable).with_name("realmgate")), "mappings", "check", str(tmp_path / "mappings")]
    environment = os.environ | {"PYTHONPATH": str(plugins)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert f"{tables}:11:18: rule odd-nodes: {complaint}" in done.stdout


def test_a_reload_finds_the_place_and_changes_nothing(tmp_path: Path, tables: Path) -> None:
    """In the process beside: a class of a user that is broken is imported there first."""
    loader = Loader(complaint_about)
    assert "document" in loader.answer(tables.parent.parent, "extended")
    tables.write_text(RULES + rule("rich", "nowhere"))
    [problem] = loader.answer(tables.parent.parent, "extended")["problems"]
    assert problem.startswith(f"{tables}:6:18: rule rich-nodes: no transformer is called 'nowhere'")
