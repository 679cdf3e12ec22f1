"""The alerts of deploy/prometheus by promtool: when each fires, and when it does not, is in rules_test.yml."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.patience import HANG_S

HERE = Path(__file__).parents[2] / "deploy" / "prometheus"
RULES = yaml.safe_load((HERE / "rules.yml").read_text())
TESTS: list[dict[str, Any]] = yaml.safe_load((HERE / "rules_test.yml").read_text())["tests"]
ALERTS = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]


def expected(alert: str) -> list[tuple[str, bool]]:
    """In which test, and whether it fires."""
    return [
        (test["name"], bool(case["exp_alerts"]))
        for test in TESTS
        for case in test["alert_rule_test"]
        if case["alertname"] == alert
    ]


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, timeout=HANG_S)


def found_wrong(directory: Path, **change: str) -> set[str]:
    """Of which alerts promtool says that they do not fire as expected, when all of them are changed."""
    groups = [{**group, "rules": [rule | change for rule in group["rules"]]} for group in RULES["groups"]]
    (directory / "rules.yml").write_text(yaml.safe_dump({**RULES, "groups": groups}))
    (directory / "rules_test.yml").write_text((HERE / "rules_test.yml").read_text())
    done = promtool("test", "rules", directory / "rules_test.yml")
    assert done.returncode == 1
    return set(re.findall(r"alertname: ?(\w+)", done.stderr))


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_expected_to_fire_for_its_fault_and_to_be_quiet_before_and_while_all_is_well(alert: str) -> None:
    wanted = expected(alert)
    assert (TESTS[0]["name"], False) in wanted
    [*faults] = {name for name, fires in wanted if fires}
    assert faults and all((name, False) in wanted for name in faults)


def test_promtool_takes_the_rules() -> None:
    done = promtool("check", "rules", HERE / "rules.yml")
    assert done.returncode == 0 and f"{len(ALERTS)} rules found" in done.stdout, done.stderr


def test_promtool_takes_what_compose_has(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text((HERE / "rules.yml").read_text())
    (tmp_path / "prometheus.yaml").write_text((HERE.parent / "compose" / "prometheus.yaml").read_text())
    done = promtool("check", "config", tmp_path / "prometheus.yaml")
    assert done.returncode == 0 and "1 rule files found" in done.stdout, done.stderr


def test_promtool_finds_that_each_alert_fires_when_it_should() -> None:
    done = promtool("test", "rules", HERE / "rules_test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("expression", ["vector(1) > 2", "vector(1)"])
def test_an_alert_that_never_fires_and_one_that_always_does_are_found(tmp_path: Path, expression: str) -> None:
    assert found_wrong(tmp_path, expr=expression) == {*ALERTS}


def test_an_alert_that_does_not_wait_is_found(tmp_path: Path) -> None:
    waiting = {rule["alert"] for group in RULES["groups"] for rule in group["rules"] if "for" in rule}
    assert found_wrong(tmp_path, **{"for": "0s"}) == waiting
