"""The latest verdict as a small file for programs, `verdict.json`, and as metrics in the text format of Prometheus,
`verdict.prom`, which a node exporter takes from its textfile directory.

A reconciliation that could not run leaves the verdict before as it is, and says since when and why. Seconds and
microseconds since 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from reconciliation.history.record import Record
from reconciliation.model.folder import Folder
from reconciliation.model.window import readable

VERSION = 1
JSON, METRICS = "verdict.json", "verdict.prom"
VERDICTS = ("clean", "clean but for acknowledged", "incomplete", "not clean")
_HELP = {
    "realmgate_verdict": "1 for the verdict of the latest reconciliation",
    "realmgate_verdict_timestamp_seconds": "when the realm was asked how far it goes, for that verdict",
    "realmgate_verdict_age_seconds": "how long ago that was",
    "realmgate_verdict_duration_seconds": "how long that reconciliation took",
    "realmgate_verdict_open_messages": "messages in findings that are not acknowledged, by class",
    "realmgate_verdict_books_difference": "what the books of that reconciliation differ by",
    "realmgate_verdict_interval_seconds": "how often a verdict is due",
    "realmgate_verdict_failed_rounds": "reconciliations since then that could not run",
}


@dataclass(frozen=True, slots=True)
class Failed:
    """Reconciliations that could not run since the latest verdict. `why`: of the last of them."""

    rounds: int
    since_us: int
    why: str


@dataclass(frozen=True, slots=True)
class Latest:
    """`record`: of the latest reconciliation; None: there was none. `realm`: its prefix. `every_s`: how often one is
    due; None: this one was started alone."""

    record: Record | None
    realm: str
    every_s: float | None = None
    failed: Failed | None = None

    def as_json(self) -> bytes:
        content: dict[str, Any] = {"v": VERSION, "realm": self.realm, "every_s": self.every_s}
        if (record := self.record) is not None:
            content |= {
                "verdict": record.verdict,
                "sentence": record.sentence,
                "complete": record.complete,
                "at": readable(record.at_us),
                "at_us": record.at_us,
                "took_s": round(record.took_s, 1),
                "last_outcome_us": record.sources["last_us"],
                "findings": len(record.findings),
                "messages": record.messages,
                "open": record.open,
                "difference": record.books["difference"],
            }
        if self.failed is not None:
            since = {"since": readable(self.failed.since_us), "since_us": self.failed.since_us}
            content["failed"] = {"rounds": self.failed.rounds, **since, "why": self.failed.why}
        return orjson.dumps(content, option=orjson.OPT_INDENT_2)

    def metrics(self, now_us: int | None = None) -> str:
        """`now_us`: then with the age of the verdict; a file is read at another time than it is written."""
        values = list(self._values(now_us))
        lines = [
            line
            for name in dict.fromkeys(name for name, _, _ in values)
            for line in (
                f"# HELP {name} {_HELP[name]}",
                f"# TYPE {name} gauge",
                *(f"{name}{{{self._labels(more)}}} {value:.16g}" for gauge, more, value in values if gauge == name),
            )
        ]
        return "\n".join(lines) + "\n"

    def _values(self, now_us: int | None) -> Iterator[tuple[str, dict[str, str], float]]:
        if (record := self.record) is not None:
            for verdict in VERDICTS:
                yield "realmgate_verdict", {"verdict": verdict}, record.verdict == verdict
            yield "realmgate_verdict_timestamp_seconds", {}, record.at_us / 1e6
            if now_us is not None:
                yield "realmgate_verdict_age_seconds", {}, max(0, now_us - record.at_us) / 1e6
            yield "realmgate_verdict_duration_seconds", {}, record.took_s
            open_messages = Counter[str]()
            for finding in record.findings:
                open_messages[finding.code] += finding.open
            for code, count in sorted(open_messages.items()):
                yield "realmgate_verdict_open_messages", {"class": code}, count
            yield "realmgate_verdict_books_difference", {}, record.books["difference"]
        if self.every_s is not None:
            yield "realmgate_verdict_interval_seconds", {}, self.every_s
            yield "realmgate_verdict_failed_rounds", {}, 0 if self.failed is None else self.failed.rounds

    def _labels(self, more: dict[str, str]) -> str:
        return ",".join(f'{name}="{_escaped(value)}"' for name, value in {"realm": self.realm, **more}.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def write(directory: Folder, latest: Latest) -> None:
    directory.write(JSON, latest.as_json())
    directory.write(METRICS, latest.metrics().encode())
