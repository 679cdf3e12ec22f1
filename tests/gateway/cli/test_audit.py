"""`audit`: every command that changed the realm, with who gave it, why and the answer; with a gateway and without."""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from gateway.cli.audit.who import CHARACTERS_MAX, who_am_i
from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from native_backend.nodes.commands import Command, commands_topic, decode_command, encode_command, given_at
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

REALMS = pytest.mark.parametrize("kind", ["embedded", "kafka"])


def audited(gateway: GatewayProcess, *words: str) -> list[dict[str, Any]]:
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
    found = audited(gateway)
    assert [(one["what"], one["node"], one["answer"]) for one in found] == [
        ("move", "orders", "done"),
        ("move", "orders", "not-found"),
        ("purge", "orders", "done"),
        ("delete-node", "side", "done"),
    ]
    assert {one["who"] for one in found} == {who_am_i()}
    first = found[0]
    assert (first["to"], first["where"], first["max"], first["count"]) == ("side", "colour IS NULL", 1, 1)
    assert first["why"].startswith("ticket 4711\n") and len(first["why"]) == CHARACTERS_MAX
    assert [one["why"] for one in found[1:]] == [None, "without a gateway", None]
    times = [datetime.fromisoformat(one["at"]) for one in found]
    assert times == sorted(times) and abs((times[-1] - datetime.now(UTC)).total_seconds()) < 3600
    assert audited(gateway, "--since", before.isoformat()) == found[2:]
    assert audited(gateway, "--since", "1h") == found
    titles, *rows = gateway.command("audit").splitlines()
    assert titles.split() == ["TIME", "WHO", "WHAT", "ANSWER", "COUNT", "WHY"] and len(rows) == 4
    assert "move orders at most 1 to side where colour IS NULL" in rows[0] and who_am_i() in rows[0]


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
    [found] = audited(gateway)
    assert (found["at"], found["who"], found["why"], found["answer"]) == ("1970-01-01T00:00:01Z", None, None, None)
    assert gateway.command("audit").splitlines()[1].split() == ["1970-01-01T00:00:01Z", "-", "purge", "orders", *"---"]


def test_a_command_with_a_selector_is_one_that_an_earlier_release_refuses() -> None:
    """It would take it for a command about all messages."""
    value = encode_command(Command("0a", "purge", "orders", 7, "queue", 5, where="a = 1", who="me", why="so"), 3)
    assert orjson.loads(value)["v"] == 2
    assert decode_command(value) == Command("0a", "purge", "orders", 7, "queue", 5, where="a = 1", who="me", why="so")
    assert given_at(value) == 3
    assert decode_command(value.replace(b'"v":2', b'"v":3')) is None
