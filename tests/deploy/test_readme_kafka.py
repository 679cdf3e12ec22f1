"""README's commands on Kafka work as they are written: its configuration, its nodes, its reconciliation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.deploy.readme import README, ran
from tests.kit.processes.gateway import GatewayProcess

[BLOCK] = re.findall(r"```\n(realmgate serve .*?)```", README, re.DOTALL)
[CONFIGURATION] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
COMMANDS = [line.partition("  #")[0].strip() for line in BLOCK.splitlines()]


@pytest.mark.timeout(600)
def test_what_readme_says_of_kafka_works(kafka_bootstrap: str, tmp_path: Path) -> None:
    settings = yaml.safe_load(CONFIGURATION.replace("127.0.0.1:9092", kafka_bootstrap))
    settings["realm"]["prefix"] = "readme"  # the broker is shared
    gateway = GatewayProcess(tmp_path / "gateway.yaml", tmp_path / "gateway.log", settings=settings)
    serve, *others = COMMANDS
    assert serve == f"realmgate serve --config {gateway.config_path.name}"
    gateway.start()
    try:
        outputs = {}
        for line in others:
            done = ran(line, tmp_path)
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            outputs[line.split(" --")[0]] = done.stdout
    finally:
        assert gateway.stop() == 0
    assert gateway.realm_kind == "kafka"
    listed = outputs["realmgate node list"]
    assert "orders" in listed and "prices" in listed and "channel" in listed
    assert "CLEAN" in outputs["realmgate reconcile"] and (tmp_path / "report" / "index.html").exists()
