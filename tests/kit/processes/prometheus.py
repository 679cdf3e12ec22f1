"""A real Prometheus for tests, with the alerts of deploy/prometheus. It looks each second, and an alert that waits for
minutes waits for a second. Debian's package `prometheus` has it (deploy/prerequisites.sh long).

prometheus = start_prometheus(tmp_path); prometheus.scrape("job", {"alpha:9464": url}); prometheus.query("up"); .stop()
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tests.kit.patience import HANG_S, until
from tests.kit.processes.broker import free_port

RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules.yml"
LOOKS_S = 1


@dataclass(slots=True)
class Prometheus:
    """One that is up. A target's `instance` is what the test names it."""

    process: subprocess.Popen[bytes]
    url: str
    directory: Path

    def scrape(self, job: str, gateways: Mapping[str, str]) -> None:
        """From now on: by instance, the address of the admin pages. Returns when each was asked twice, and the alerts
        were looked at after that."""
        targets = [
            {"targets": [url.removeprefix("http://")], "labels": {"job": job, "instance": instance}}
            for instance, url in gateways.items()
        ]
        file = self.directory / "targets" / f"{job}.json"
        file.with_suffix(".new").write_text(json.dumps(targets))
        file.with_suffix(".new").rename(file)
        seen = f'count_over_time(up{{job="{job}"}}[1h]) >= 2'
        until(lambda: len(self.query(seen)) == len(gateways), f"two looks at {job}")
        self.await_look()

    def forget(self, job: str) -> None:
        (self.directory / "targets" / f"{job}.json").unlink()

    def await_look(self) -> None:
        """What is scraped after this call is in the alerts when it returns."""
        due_s = time.time() + LOOKS_S
        until(lambda: self._last_look() > due_s, "the alerts to be looked at")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that it gives now: `metric` has the labels, `value` time and number."""
        series: list[dict[str, Any]] = self._ask("query", query=expression)["result"]
        return series

    def alerts(self, state: str = "") -> list[dict[str, str]]:
        """The labels of the alerts that are pending or firing."""
        entries = self._ask("alerts")["alerts"]
        return [alert["labels"] for alert in entries if state in ("", alert["state"])]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(HANG_S)

    def is_ready(self) -> bool:
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=HANG_S):
                return True
        except OSError:
            return False

    def _last_look(self) -> float:
        """When the group of rules that was looked at longest ago was."""
        groups = self._ask("rules")["groups"]
        return min(datetime.fromisoformat(group["lastEvaluation"]).timestamp() for group in groups)

    def _ask(self, what: str, **parameters: str) -> Any:
        try:
            with urllib.request.urlopen(
                f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}", timeout=HANG_S
            ) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from None


def start_prometheus(directory: Path) -> Prometheus:
    (directory / "targets").mkdir(parents=True)
    (directory / "rules.yml").write_text(re.sub(r"for: \d+m", "for: 1s", RULES.read_text()))
    port = free_port()
    settings = {
        "global": {"scrape_interval": f"{LOOKS_S}s", "evaluation_interval": f"{LOOKS_S}s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {"job_name": "realmgate", "file_sd_configs": [{"files": ["targets/*.json"], "refresh_interval": "1s"}]},
        ],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(settings))
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    prometheus = Prometheus(process, f"http://127.0.0.1:{port}", directory)
    try:
        until(prometheus.is_ready, "Prometheus to be ready")
    except BaseException:
        process.kill()
        process.wait()
        raise
    return prometheus
