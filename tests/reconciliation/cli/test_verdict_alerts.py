"""The alerts about verdicts, on a real Prometheus that reads what `reconcile --every --listen` serves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciliation.cli.listening import listening
from reconciliation.report.latest import Failed, Latest
from tests.kit.patience import until
from tests.kit.processes.prometheus import Prometheus, start_prometheus
from tests.reconciliation.history.runs import record

JOB, EVERY_S = "verdicts", 60.0


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    started = start_prometheus(tmp_path / "prometheus")
    yield started
    started.stop()


def now_us() -> int:
    return time.time_ns() // 1_000


class Rounds:
    """What the rounds of one realm have left; a test changes it while Prometheus looks."""

    def __init__(self) -> None:
        self.latest = Latest(record(at_us=now_us()), "um", EVERY_S)

    def ended(self, verdict: str = "clean", after_s: float = 0.0) -> None:
        """A round ended `after_s` ago."""
        self.latest = Latest(record(at_us=now_us() - round(after_s * 1e6), verdict=verdict), "um", EVERY_S)

    def failed(self, rounds: int) -> None:
        self.latest = Latest(self.latest.record, "um", EVERY_S, Failed(rounds, now_us(), "no realm"))


def firing(prometheus: Prometheus) -> dict[str, str]:
    """The verdict of each alert that fires for the realm, or nothing where it names none."""
    return {
        labels["alertname"]: labels.get("verdict", "")
        for labels in prometheus.alerts("firing")
        if labels.get("realm") == "um"
    }


def test_a_verdict_that_is_not_clean_or_old_fires_until_there_is_a_new_one(prometheus: Prometheus) -> None:
    rounds = Rounds()
    with listening(("127.0.0.1", 0), lambda: rounds.latest, now_us) as port:
        prometheus.scrape(JOB, {"reconciliation": f"http://127.0.0.1:{port}"})

        def shows(alerts: dict[str, str]) -> None:
            until(lambda: firing(prometheus) == alerts, f"{alerts} to fire")

        shows({})
        rounds.ended("not clean")
        shows({"RealmgateVerdictNotClean": "not clean"})
        rounds.ended("incomplete")
        shows({"RealmgateVerdictNotClean": "incomplete"})
        rounds.ended()
        shows({})
        rounds.ended(after_s=600 + 3 * EVERY_S + 1)
        shows({"RealmgateVerdictOld": ""})
        rounds.ended()
        shows({})
        rounds.failed(3)
        prometheus.await_look()
        prometheus.await_look()
        assert firing(prometheus) == {}, "three rounds may fail"
        rounds.failed(4)
        shows({"RealmgateVerdictOld": ""})
