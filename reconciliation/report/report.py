"""The report: findings as Parquet by class, and a manifest that is written last.

`report/window=NAME/class=CODE/*.parquet` is replaced as a whole, so that the same inputs give the same report. What
the manifest names is complete; a reader that finds no manifest waits. May import: pyarrow, orjson, `reconciliation`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from reconciliation.balance import Balance, Key
from reconciliation.classes import CLASSES, ORDER, is_anomaly
from reconciliation.jobs.reconcile import Judgement
from reconciliation.landing import Landed
from reconciliation.schemas import FINDING
from reconciliation.transforms.verdicts import INTERNAL
from reconciliation.window import Window

EXAMPLES = 10
VERSION = 1
MANIFEST = "manifest.json"


@dataclass(slots=True)
class ClassReport:
    """One class that occurs: how often, where, and its first examples."""

    code: str
    count: int = 0
    nodes: set[str] = field(default_factory=set)
    first_eid: int | None = None
    last_eid: int | None = None
    examples: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        self.count += row["count"]
        if row["node"] is not None:
            self.nodes.add(row["node"])
        if row["eid"] is not None:
            self.first_eid = min(row["eid"], self.first_eid) if self.first_eid is not None else row["eid"]
            self.last_eid = max(row["eid"], self.last_eid or 0)
        if len(self.examples) < EXAMPLES:
            self.examples.append({**row, "tag": tag(row)})


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything found, condensed: classes in their order (within the window), totals of all time for the balance."""

    classes: list[ClassReport]
    totals: Counter[Key]

    @property
    def anomalies(self) -> int:
        return sum(one.count for one in self.classes if is_anomaly(one.code))


def tag(row: dict[str, Any]) -> str | None:
    """The delivery tag under which the peer knows it."""
    return f"{row['store']}:{row['eid']}" if row["store"] is not None and row["eid"] is not None else None


def add_findings(target: Path, findings: list[dict[str, Any]]) -> None:
    """Findings made on the driver, beside those that Spark wrote."""
    for code in sorted({one["class"] for one in findings}):
        directory = target / f"class={code}"
        directory.mkdir(parents=True, exist_ok=True)
        rows = [one for one in findings if one["class"] == code]
        columns = FINDING.remove(FINDING.get_field_index("class"))
        pq.write_table(pa.Table.from_pylist(rows, schema=columns), directory / "groups.parquet", compression="zstd")


def condense(target: Path, window: Window) -> Findings:
    """Count and pick examples: by time, then by place."""
    reports: dict[str, ClassReport] = {}
    totals: Counter[Key] = Counter()
    for row in _rows(target):
        code = row["class"]
        if not (code == "P5" and row["detail"].endswith("not found")):
            totals[code, row["store"], row["durable"]] += row["count"]
        if code not in INTERNAL and window.holds(row["at"]):
            reports.setdefault(code, ClassReport(code)).add(row)
    return Findings([reports[code] for code in ORDER if code in reports], totals)


def _rows(target: Path) -> Iterator[dict[str, Any]]:
    partitioning = ds.partitioning(pa.schema([("class", pa.string())]), flavor="hive")
    for directory in sorted(target.glob("class=*")):
        dataset = ds.dataset(
            directory, schema=FINDING, partitioning=partitioning, partition_base_dir=str(target), format="parquet"
        )
        table = dataset.to_table().sort_by([("at", "ascending"), ("store", "ascending"), ("eid", "ascending")])
        for batch in table.to_batches(max_chunksize=10_000):
            yield from batch.to_pylist()


def publish(making: Path, out: Path, window: Window) -> Path:
    """Put the finished window in place of an earlier one."""
    target = out / "report" / f"window={window.name}"
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    making.rename(target)
    return target


def write_manifest(
    out: Path,
    window: Window,
    landed: Landed,
    judgement: Judgement,
    findings: Findings,
    sheet: Balance,
    versions: dict[str, str],
) -> Path:
    """Last of all: what was read, by which versions, and what came of it."""
    found = {one.code: one.count for one in findings.classes}
    content = {
        "v": VERSION,
        "window": {"name": window.name, "since_us": window.since, "until_us": window.until},
        "versions": versions,
        "inputs": landed.extent.as_json(),
        "runs": [asdict(run) for run in judgement.runs],
        "digests": sorted(judgement.catalog.digests),
        "complete": "Q1" not in found,
        "clean": findings.anomalies == 0 and sheet.difference == 0,
        "classes": [
            {
                "class": one.code,
                "severity": CLASSES[one.code].severity,
                "count": one.count,
                "nodes": sorted(one.nodes),
                "first_eid": one.first_eid,
                "last_eid": one.last_eid,
                "examples": one.examples,
            }
            for one in findings.classes
        ],
        "balance": {**asdict(sheet), "difference": sheet.difference},
    }
    content["digest"] = blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
    path = out / MANIFEST
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return path
