"""What an application on Qpid JMS notes in its ledger agrees with what a gateway records; and a lie is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import jms, jms_beside
from tests.kit.patience import HANG_S, until
from tests.kit.processes.gateway import GatewayProcess, StartGateway, reconciled


def judged(gateway: GatewayProcess, ledgers: Path, out: Path) -> tuple[int, dict[str, Any]]:
    done = reconciled(gateway.config_path, out, "--ledgers", ledgers)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads((out / "manifest.json").read_text())


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_an_application_and_its_gateway_agree(new_gateway: StartGateway, kind: str, tmp_path: Path) -> None:
    gateway, ledgers = new_gateway(kind), tmp_path / "ledgers"
    assert jms(f"amqp://{gateway.address}", "orders", str(ledgers), program="Noting") == "noted"
    gateway.end_well()
    code, manifest = judged(gateway, ledgers, tmp_path / "clean")
    steps = manifest["ledgers"]["steps"]
    assert (code, manifest["verdict"]) == (0, "clean")
    assert (steps["sent"], steps["told"], steps["committed"], steps["closed"]) == (14, 12, 1, 1)
    assert manifest["ledgers"]["left"] == {
        "settled in a transaction": 2,
        "settled with a state that the library chose": 3,
    }, "two were committed, and three recovered"
    (file,) = ledgers.glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum("body" in line for line in lines if line["what"] == "received") == steps["received"]
    changed = next(line for line in lines if line["what"] == "received")
    changed["body"] = "00000000"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, manifest = judged(gateway, ledgers, tmp_path / "lie")
    assert (code, [entry["class"] for entry in manifest["classes"]]) == (1, ["C4"])


def steps_in(ledgers: Path) -> list[str]:
    """Of clients that may be writing yet."""
    texts = [file.read_text() for file in ledgers.glob("*.jsonl")]
    lines = [line for text in texts for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [json.loads(line)["what"] for line in lines]


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_an_application_that_fails_over_agrees(new_gateway: StartGateway, kind: str, tmp_path: Path) -> None:
    """Its gateway is killed while it sends and takes: what it notes behind that is another client's."""
    gateway, ledgers = new_gateway(kind), tmp_path / "ledgers"
    url = f"failover:(amqp://{gateway.address})?failover.maxReconnectAttempts=600&failover.reconnectDelay=50"
    url += "&failover.useReconnectBackOff=false"
    noting = jms_beside(url, "orders", str(ledgers), "200", program="NotingOn")
    for settled in (30, 90):
        until(lambda: steps_in(ledgers).count("settled") >= settled, f"{settled} settlements")  # noqa: B023 it returns
        gateway.kill()
        gateway.start()
    assert noting.communicate(timeout=HANG_S)[0] == "noted\n"
    gateway.end_well()
    code, manifest = judged(gateway, ledgers, tmp_path / "out")
    assert (code, manifest["verdict"]) == (0, "clean"), manifest["classes"]
    steps = manifest["ledgers"]["steps"]
    assert len([*ledgers.glob("*.jsonl")]) == 3 and (steps["opened"], steps["closed"]) == (3, 1)
    assert steps["sent"] == 200 and 190 <= steps["told"] <= 200


def test_outcomes_that_the_library_does_not_await_are_left_out(new_gateway: StartGateway, tmp_path: Path) -> None:
    """Sends that do not wait for their outcome, and messages that come settled."""
    gateway, ledgers = new_gateway("embedded"), tmp_path / "ledgers"
    url = f"amqp://{gateway.address}?jms.forceAsyncSend=true&jms.presettlePolicy.presettleConsumers=true"
    assert jms(url, "orders", str(ledgers), "20", program="NotingOn") == "noted"
    gateway.end_well()
    code, manifest = judged(gateway, ledgers, tmp_path / "out")
    assert (code, manifest["verdict"]) == (0, "clean"), manifest["classes"]
    assert manifest["ledgers"]["steps"].get("told", 0) == 0
    assert manifest["ledgers"]["left"] == {"settled with a state that the library chose": 20}
