"""The log says who came, who was refused and who went, as JSON for programs and as text; no line for a message."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import proton
import pytest

from tests.kit.processes.admin_pages import DEADLINE_S
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway, start_gateway
from tests.kit.processes.jumping_clock import JumpingClock
from tests.kit.wire import frames
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

MESSAGES = 50


def serve(directory: Path, log_format: str) -> GatewayProcess:
    write_users(directory / "users.yaml", ann=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    settings: dict[str, Any] = {"security": security, "nodes": {}, "log": {"format": log_format}}
    gateway = start_gateway(directory, embedded_realm(directory), **settings)
    gateway.command("node", "create", "orders")
    return gateway


def live(gateway: GatewayProcess) -> None:
    """A peer that works, one that is refused, one that cannot log in, one that breaks off; and the end."""
    with pytest.raises(proton.ConnectionException):
        connect(gateway, f"{PASSWORD}?", "PLAIN", user="ann")
    with Peer(gateway.port, container="shop") as peer:
        peer.publisher("orders")
        peer.outcomes(len(peer.publish(*[MESSAGE] * MESSAGES)))
        peer.send(frames.attach_sender("oders", 7, "misspelt"))
        assert peer.refused() == "amqp:not-found"
        peer.send(frames.close())
        assert peer.closed()
    with Peer(gateway.port, container="rude") as peer:
        peer.reset()
    end = time.monotonic() + DEADLINE_S
    while gateway.log_path.read_text().count("connection closed") < 2:
        assert time.monotonic() < end, gateway.log()
        time.sleep(0.05)
    assert gateway.stop() == 0, gateway.log()


def test_json_has_each_event_with_its_facts(tmp_path: Path) -> None:
    gateway = serve(tmp_path, "json")
    gateway.command("node", "create", "tidied")
    gateway.command("queue", "purge", "tidied", "--why", "a test")
    live(gateway)
    lines = [json.loads(line) for line in gateway.log_path.read_text().splitlines()]
    assert len(lines) < MESSAGES, "no line for a message"
    for line in lines:
        at = datetime.fromisoformat(line["at"])
        assert at.tzinfo == UTC and abs(at.timestamp() - time.time()) < 600
        assert line["level"] and line["logger"].startswith("realmgate.") and line["text"]
    events = {line["event"]: line for line in lines if "event" in line}
    assert {"started", "tables active", "connection opened", "peer fault failed-login", "refused attach",
            "connection closed", "stopped"} <= set(events)  # fmt: skip
    facts = {key: events["command"][key] for key in ("what", "node", "why", "answer", "count")}
    assert facts == {"what": "purge", "node": "tidied", "why": "a test", "answer": "done", "count": 0}
    shop = [line for line in lines if line.get("container") == "shop"]
    opened, refused, closed = shop
    who = {"user": "anonymous", "container": "shop", "address": "127.0.0.1"}
    assert opened["event"] == "connection opened" and who.items() <= opened.items()
    assert refused["event"] == "refused attach" and who.items() <= refused.items()
    assert (refused["node"], refused["condition"]) == ("oders", "amqp:not-found")
    assert refused["rule"] == "attach.refuse-an-unknown-node"
    assert closed["event"] == "connection closed" and who.items() <= closed.items()
    assert (closed["how"], closed["messages"], closed["outcomes"]) == ("closed", 50, {"publish accepted": 50})
    assert (
        closed["connection"]
        == opened["connection"]
        == f"{events['started']['run']}.{closed['connection'].rpartition('.')[2]}"
    )
    [rude] = [line for line in lines if line.get("container") == "rude" and line["event"] == "connection closed"]
    assert rude["how"] == "broken off"
    assert (events["peer fault failed-login"]["user"], events["peer fault failed-login"]["address"]) == (
        "ann",
        "127.0.0.1",
    )
    assert (events["stopped"]["code"], events["stopped"]["run"]) == (0, events["started"]["run"])
    assert len(events["tables active"]["digest"]) == 32
    assert PASSWORD not in gateway.log_path.read_text()


def test_text_has_the_same_in_utc(tmp_path: Path) -> None:
    gateway = serve(tmp_path, "text")
    gateway.stop()
    gateway.environment["TZ"] = "America/New_York"
    gateway.log_path.write_text("")
    gateway.start()
    live(gateway)
    lines = gateway.log_path.read_text().splitlines()
    for line in lines:
        at = re.match(r"(\S+Z) (INFO|WARNING) realmgate\.\S+ \S", line)
        assert at and abs(datetime.fromisoformat(at[1]).timestamp() - time.time()) < 600, line
    [closed] = [line for line in lines if "connection closed" in line and "'shop'" in line]
    assert closed.endswith("50 messages received; publish accepted 50")


def test_a_connection_lasts_as_long_as_it_does_when_the_clock_goes_back(tmp_path: Path) -> None:
    clock = JumpingClock(tmp_path)
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), log={"format": "json"})
    gateway.environment.update(clock.environment)
    gateway.start()
    with Peer(gateway.port, container="shop") as peer:
        clock.jump(-3000.0)
        peer.send(frames.close())
        assert peer.closed()
    gateway.end_well()
    lines = [json.loads(line) for line in gateway.log_path.read_text().splitlines()]
    [opened, closed] = [line for line in lines if line.get("container") == "shop"]
    assert closed["at"] < opened["at"] and 0 <= closed["seconds"] < 3000
