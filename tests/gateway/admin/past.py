"""Two that judge the alerts over what a gateway's /metrics show: our evaluator, and a real Prometheus.

Both have a past in which all was well: `anew` makes one of what is shown now. `until_fires` waits for an alert.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.gateway.admin.promql import Scrape, at, parse
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.prometheus import Prometheus

FILE = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules.yml"
GROUPS: dict[str, dict[str, dict[str, Any]]] = {
    group["name"]: {rule["alert"]: rule for rule in group["rules"]}
    for group in yaml.safe_load(FILE.read_text())["groups"]
}
RULES = GROUPS["realmgate"]  # of a gateway: what reconciliations show is in no /metrics of it
STEP_S, PAST_S = 15, 1_800


class Past(Protocol):
    """`job`: the gateway's, in the labels of alerts."""

    watch: Watch
    job: str

    def anew(self) -> None: ...

    def fires(self, alert: str) -> list[dict[str, str]]:
        """The labels of each, now."""
        ...

    def quiet(self) -> bool:
        """None of them fires."""
        ...

    def end(self) -> None: ...


NewPast = Callable[[Watch], Past]


class EvaluatedPast:
    """Half an hour in which nothing changed, and what has come since."""

    job = "realmgate"

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._scrapes: list[Scrape] = []
        self._now_s = 0.0
        self.anew()

    def anew(self) -> None:
        samples, self._now_s = self.watch.scrape(self.job), time.time()
        self._scrapes = [(self._now_s + second, samples) for second in range(-PAST_S, 0, STEP_S)]

    def fires(self, alert: str) -> list[dict[str, str]]:
        """The expression of an alert by itself: `for` only says how long it has to be so."""
        vector = at(parse(RULES[alert]["expr"]), [*self._scrapes, (self._now_s, self.watch.scrape(self.job))])
        assert not isinstance(vector, float)
        return [dict(labels) for labels in vector]

    def quiet(self) -> bool:
        return not any(self.fires(alert) for alert in RULES)

    def end(self) -> None:
        pass


class ScrapedPast:
    """A job of a real Prometheus; a new one has no past, so nothing rises in it."""

    _numbers = count()

    def __init__(self, prometheus: Prometheus, watch: Watch) -> None:
        self.watch, self._prometheus, self.job = watch, prometheus, ""
        self.anew()

    def anew(self) -> None:
        if self.job:
            self._prometheus.forget(self.job)
        self.job = f"realmgate-{next(self._numbers)}"
        self._prometheus.scrape(self.job, {"alpha:9464": self.watch.url})

    def fires(self, alert: str) -> list[dict[str, str]]:
        return [labels for labels in self._alerts("firing") if labels["alertname"] == alert]

    def quiet(self) -> bool:
        self._prometheus.await_look()
        return not self._alerts()

    def end(self) -> None:
        self._prometheus.forget(self.job)

    def _alerts(self, state: str = "") -> list[dict[str, str]]:
        return [labels for labels in self._prometheus.alerts(state) if labels.get("job") == self.job]


def until(past: Past, reached: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not reached():
        assert time.monotonic() < end, {alert: past.fires(alert) for alert in RULES}
        time.sleep(0.1)


def until_fires(past: Past, alert: str, **labels: str) -> None:
    until(past, lambda: any(labels.items() <= firing.items() for firing in past.fires(alert)))
