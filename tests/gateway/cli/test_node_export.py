"""`node export`: what it writes makes the same nodes in an empty realm, and is then written again, letter by letter."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as some
from proton import Message
from proton.utils import BlockingConnection

from gateway.cli.node_apply import read_file
from gateway.cli.node_export import exported
from gateway.cli.node_properties import WORDS
from native_backend.nodes.node import Node
from native_backend.nodes.properties import DEFAULT, OPERATIONS, REDELIVERIES, TYPES, Grant, Properties
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess, StartGateway, embedded_realm, make_gateway

__all__ = ["config", "run"]
ODD = [
    "null",
    "on",
    "9.10",
    "42",
    "a: b",
    "- x",
    "#",
    "it's",
    'a"b',
    "a\nb",
    " x ",
    "\x7f\0",
    "Gruß 🐟",
    "~",
    "{a}",
    "a,b",
]


def test_a_round_trip_gives_the_same_text(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = new_gateway("embedded")
    gateway.command("node", "create", "dead")
    words = ["--ttl", "90s", "--attempts", "5", "--dead-letter", "dead", "--capacity-bytes", "10MiB"]
    gateway.command("node", "create", "orders", *words, "--honour-capacity", "true", "--partitions", "3")
    gateway.command("node", "create", "news", "--kind", "channel", "--redelivery-delay", "5s", "--redelivery", "linear")
    gateway.command("node", "create", "urgent", "--priority-levels", "10", "--capacity-events", "1000")
    gateway.command("acl", "grant", "group:editors", "publish,subscribe", "--node", "news")
    gateway.command("acl", "grant", "*", "subscribe", "--node", "news")
    text = gateway.command("node", "export")
    assert [node["name"] for node in yaml.safe_load(text)] == ["dead", "news", "orders", "urgent"]
    assert (
        "- name: dead\n  kind: queue\n- name: news\n  kind: channel\n  redelivery-delay: 5s\n  redelivery: linear\n"
        in text
    )
    again = applied(text, tmp_path / "again")
    assert again.command("node", "export") == text
    assert "4 nodes are as the file says" in again.command("node", "apply", str(tmp_path / "again" / "nodes.yaml"))
    assert yaml.safe_load(gateway.command("node", "export", "or*")) == [
        {"name": "orders", "kind": "queue", "capacity-bytes": "10MiB", "honour-capacity": True, "ttl": "90s",
         "dead-letter": "dead", "attempts": 5, "partitions": 3}
    ]  # fmt: skip


def test_odd_names_come_back(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = new_gateway("embedded")
    for name in ODD[:4]:
        gateway.command("node", "create", name)
    gateway.command("node", "create", "last", "--dead-letter", "9.10")
    text = gateway.command("node", "export")
    assert applied(text, tmp_path / "again").command("node", "export") == text


def applied(text: str, directory: Path) -> GatewayProcess:
    """An empty realm without a gateway, after `node apply`."""
    other = make_gateway(directory, embedded_realm(directory))
    other.config_path.write_text(yaml.safe_dump(other.settings))
    (directory / "nodes.yaml").write_text(text)
    other.command("node", "apply", str(directory / "nodes.yaml"), "--yes")
    return other


def test_grants_of_the_realm_are_exported_and_applied(run: Run, tmp_path: Path) -> None:
    run("node", "create", "orders")
    file = tmp_path / "nodes.yaml"
    granted = (("group:operators", "full"), ("*", "publish,subscribe"))
    for who, operations in granted:
        assert run("acl", "grant", who, operations, "--realm")[0] == 0
    code, text, _ = run("node", "export")
    assert code == 0 and text.startswith("- realm:\n    acl:\n      - {who: ")
    assert "realm" not in run("node", "export", "orders")[1], "a pattern is about nodes"
    file.write_text(text)
    listed = run("acl", "list", "--realm")[1]
    assert run("node", "apply", str(file), "--yes") == (0, "1 node is as the file says\n", "")
    run("acl", "grant", "user:new", "publish", "--realm")
    code, output, _ = run("node", "apply", str(file), "--yes")
    assert code == 0 and output.startswith("grants of the realm: ") and "1 change is made" in output
    assert run("acl", "list", "--realm")[1] == listed
    assert run("node", "apply", str(file), "--yes")[1] == "1 node is as the file says\n", "twice changes nothing"
    file.write_text("- name: orders\n")
    run("node", "apply", str(file), "--yes")
    assert run("acl", "list", "--realm")[1] == listed, "a file that says nothing of the realm changes nothing there"
    file.write_text("- realm: {acl: [{who: '*', allow: [full]}]}\n- name: orders\n")
    assert run("node", "apply", str(file), "--yes")[0] == 0
    assert run("node", "apply", str(file), "--yes")[1] == "1 node is as the file says\n"
    for wrong in ("{acl: [{who: ann, allow: [fly]}]}", "{acl: []}\n- realm: {acl: []}", "{ttl: 1h}", "{acl: [], x: 1}"):
        file.write_text(f"- realm: {wrong}\n")
        code, output, err = run("node", "apply", str(file), "--yes")
        assert (code, output) == (2, "") and "nodes.yaml:" in err, wrong


def test_an_empty_realm_and_an_unknown_name(run: Run) -> None:
    assert run("node", "export") == (0, "[]\n", "")
    run("node", "create", "orders")
    assert run("node", "export", "x*") == (0, "[]\n", "")


NAMES = some.text(some.characters(exclude_categories=["Cs"]), min_size=1, max_size=20) | some.sampled_from(ODD)
GRANTS = some.builds(
    Grant, NAMES.map("user:{}".format) | some.just("*"), some.frozensets(some.sampled_from(OPERATIONS), min_size=1)
)
PROPERTIES = some.builds(
    Properties,
    type=some.sampled_from(TYPES),
    capacity_events=some.integers(1, 2**53 - 1),
    capacity_bytes=some.integers(1, 2**53 - 1),
    honour_capacity=some.booleans(),
    ttl_ms=some.integers(0, 2**53 - 1),
    dead_letter=NAMES.filter(lambda name: name != "none") | some.just(""),
    attempts=some.integers(0, 1000),
    redelivery_delay_ms=some.integers(1, 10**9),
    redelivery=some.sampled_from(REDELIVERIES),
    partitions=some.integers(1, 64),
    acl=some.lists(GRANTS, max_size=3).map(tuple),
)


@given(name=NAMES, properties=PROPERTIES, adopted=some.booleans())
def test_apply_reads_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, name: str, properties: Properties, adopted: bool
) -> None:
    """Every property, and any name."""
    assume(properties.dead_letter != name)
    file = tmp_path_factory.getbasetemp() / "exported.yaml"
    file.write_bytes(exported([Node(name, "queue", "um.t", bytes(16), 1, properties, adopted)]).encode())
    [wanted], problems = read_file(file, 1024)
    assert not problems
    assert (wanted.name, wanted.topic, wanted.properties) == (name, "um.t" if adopted else None, properties)


def test_temporary_nodes_are_left_out() -> None:
    nodes = [Node(name, "queue", "t", bytes(16), 1, DEFAULT, temporary=name == "b") for name in ("b", "a")]
    assert exported(nodes) == "- name: a\n  kind: queue\n"


def test_an_export_that_is_applied_and_prunes_leaves_the_reply_queue_of_a_client(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    client = BlockingConnection(f"amqp://{gateway.address}", timeout=HANG_S, reconnect=False)
    replies = client.create_receiver(None, credit=1, dynamic=True)
    gateway.command("node", "create", "orders")
    file = gateway.config_path.with_name("nodes.yaml")
    file.write_text(gateway.command("node", "export"))
    gateway.command("node", "create", "old")
    applied = gateway.command("node", "apply", str(file), "--prune", "--yes").splitlines()
    assert applied == ["delete queue old, with its events", "1 node is as the file says", "1 change is made"]
    client.create_sender(replies.link.remote_source.address).send(Message(body="a reply"))
    assert replies.receive(timeout=HANG_S).body == "a reply"
    client.close()


def test_every_property_has_a_place() -> None:
    """But those that are no words of an operator."""
    fields = set(Properties.__dataclass_fields__) - {word.field for word in WORDS}
    assert fields == {"acl", "group_partitions"}
