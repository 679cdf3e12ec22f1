"""What an application on Qpid JMS notes in its ledger agrees with what a gateway records; and a lie is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import jms
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
