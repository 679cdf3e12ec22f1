"""`audit`: every command that changed the realm, with who gave it, why and the answer; with a gateway and without."""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.cli.audit.who import CHARACTERS_MAX, who_am_i
from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from native_backend.nodes.commands import Command, commands_topic, decode_command, encode_command, given_at
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway, realmgate
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

REALMS = pytest.mark.parametrize("kind", ["embedded", "kafka"])


def audited(gateway: GatewayProcess, *words: str) -> list[dict[str, Any]]:
    """The commands that the realm's owner got."""
    return [entry for entry in everything(gateway, *words) if entry["change"] is None]


def everything(gateway: GatewayProcess, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(gateway.command("audit", "--json", *words)))


@REALMS
def test_each_command_has_who_and_why_and_its_answer(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind)
    for node in ("orders", "side"):
        gateway.command("node", "create", node)
    with Peer(gateway.port) as peer:
        peer.stored("orders", *(frames.message(b"%d" % at) for at in range(3)))
    move = ("queue", "move", "orders", "--to", "side", "--count", "1", "--where", "colour IS NULL", "--yes")
    gateway.command(*move, "--why", "ticket 4711\n" + "x" * 300)
    with pytest.raises(RuntimeError, match="not-found"):
        gateway.command("queue", "move", "orders", "--to", "nowhere", "--yes")
    gateway.stop()
    before = datetime.now(UTC)
    time.sleep(0.01)
    gateway.command("queue", "purge", "orders", "--yes", "--why", "without a gateway")
    gateway.command("node", "delete", "side", "--yes")
    entries = audited(gateway)
    assert [(entry["what"], entry["node"], entry["answer"]) for entry in entries] == [
        ("move", "orders", "done"),
        ("move", "orders", "not-found"),
        ("purge", "orders", "done"),
        ("delete-node", "side", "done"),
    ]
    assert {entry["who"] for entry in entries} == {who_am_i()}
    first = entries[0]
    assert (first["to"], first["where"], first["max"], first["count"]) == ("side", "colour IS NULL", 1, 1)
    assert first["why"].startswith("ticket 4711\n") and len(first["why"]) == CHARACTERS_MAX
    assert [entry["why"] for entry in entries[1:]] == [None, "without a gateway", None]
    times = [datetime.fromisoformat(entry["at"]) for entry in entries]
    assert times == sorted(times) and abs((times[-1] - datetime.now(UTC)).total_seconds()) < 3600
    assert audited(gateway, "--since", before.isoformat()) == entries[2:]
    assert audited(gateway, "--since", "1h") == entries
    titles, *rows = gateway.command("audit").splitlines()
    rows = [row for row in rows if "  create " not in row]
    assert titles.split() == ["TIME", "WHO", "WHAT", "ANSWER", "COUNT", "WHY"] and len(rows) == 4
    assert "move orders at most 1 to side where colour IS NULL" in rows[0] and who_am_i() in rows[0]


def test_changes_of_metadata_and_closed_connections_are_listed(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = new_gateway("embedded", admin={"listen": "http://127.0.0.1:0"})
    why = ("--why", "ticket 12")
    gateway.command("node", "create", "orders", "--ttl", "1h", *why)
    gateway.command("node", "set", "orders", "ttl=2h", "attempts=5", *why)
    gateway.command("acl", "grant", "user:ann", "publish", "--node", "orders", *why)
    gateway.command("acl", "grant", "*", "full", "--realm")
    gateway.command("acl", "revoke", "user:ann", "publish", "--node", "orders", "--open", *why)
    with pytest.raises(RuntimeError, match="last grant"):
        gateway.command("acl", "revoke", "*", "full", "--realm", *why)
    (tmp_path / "nodes.yaml").write_text("- {name: orders, ttl: 3h}\n- name: news\n")
    gateway.command("node", "apply", str(tmp_path / "nodes.yaml"), "--yes", *why)
    gateway.command("node", "apply", str(tmp_path / "nodes.yaml"), "--yes")
    with Peer(gateway.port, container="stuck") as peer:
        url = Watch.of(gateway).url
        [answer] = json.loads(Watch(url).ask("/api/connections?container=stuck")[2])["gateways"]
        [closed] = answer["connections"]
        assert realmgate("connection", "close", closed["id"], "--reason", "it hangs", "--gateway", url)[0] == 0
        peer.expect("close")
    deadline = time.monotonic() + HANG_S
    while len(entries := everything(gateway)) < 9 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert {entry["who"] for entry in entries} == {who_am_i()}
    changes = [(entry["what"], entry["node"], entry["change"], entry["answer"], entry["why"]) for entry in entries[:6]]
    assert changes[:3] == [
        ("create", "orders", "queue ttl=1h", "done", "ticket 12"),
        ("set", "orders", "ttl=2h attempts=5", "done", "ticket 12"),
        ("grant", "orders", "user:ann publish", "done", "ticket 12"),
    ]
    assert [change[:2] for change in changes[3:]] == [("grant", None), ("revoke", "orders"), ("revoke", None)]
    assert changes[3][3:] == ("done", None) and changes[5][3] == "unexpected" and "last grant" in entries[5]["detail"]
    applied = {(entry["what"], entry["node"]) for entry in entries[6:8]}
    assert applied == {("create", "news"), ("set", "orders")}, "applied twice: the second time changes nothing"
    last = entries[8]
    assert (last["what"], last["why"], last["answer"]) == ("close-connection", "it hangs", "done")
    assert closed["id"] in last["change"] and "'stuck'" in last["change"]
    shown = gateway.command("audit")
    assert "set orders: ttl=2h attempts=5" in shown and "grant the realm: *" in shown
    assert "not understood" not in gateway.log_path.read_text(), "the owner passes them over"


def test_a_time_that_is_none_is_refused(new_gateway: StartGateway) -> None:
    with pytest.raises(RuntimeError, match="argument --since: soon is no time: write 30s"):
        new_gateway("embedded").command("audit", "--since", "soon")


def test_records_of_an_earlier_release_can_be_read(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    gateway.stop()
    command = Command("0a", "purge", "orders", 7, "queue", 5)
    record = orjson.loads(encode_command(command, 1_000_000))
    assert (record["v"], "who" in record, "where" in record) == (1, False, False), "what an earlier release can read"
    with closing(open_log(load_settings(gateway.config_path))) as log:
        log.control.put(commands_topic(gateway.settings["realm"].get("prefix", "um")), b"0a", orjson.dumps(record))
    [entry] = audited(gateway)
    assert (entry["at"], entry["who"], entry["why"], entry["answer"]) == ("1970-01-01T00:00:01Z", None, None, None)
    assert gateway.command("audit").splitlines()[1].split() == ["1970-01-01T00:00:01Z", "-", "purge", "orders", *"---"]


def test_a_command_with_a_selector_is_one_that_an_earlier_release_refuses() -> None:
    """It would take it for a command about all messages."""
    value = encode_command(Command("0a", "purge", "orders", 7, "queue", 5, where="a = 1", who="me", why="so"), 3)
    assert orjson.loads(value)["v"] == 2
    assert decode_command(value) == Command("0a", "purge", "orders", 7, "queue", 5, where="a = 1", who="me", why="so")
    assert given_at(value) == 3
    assert decode_command(value.replace(b'"v":2', b'"v":3')) is None
