"""The report: findings as Parquet by class, and a manifest that is written last.

`report/window=NAME/class=CODE/*.parquet` is replaced as a whole, so that the same inputs give the same report. What
the manifest names is complete; a reader that finds no manifest waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from hashlib import blake2b
from io import BytesIO
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from reconciliation.history.cause import Causes
from reconciliation.history.compared import Comparison
from reconciliation.history.record import LINES_MAX
from reconciliation.model.classes import CLASSES, INCOMPLETE, ORDER
from reconciliation.model.folder import Folder
from reconciliation.model.schemas import FINDING
from reconciliation.model.window import Window
from reconciliation.report.balance import Key
from reconciliation.report.findings import ClassReport, Findings
from reconciliation.report.result import Result
from reconciliation.transforms.verdicts import INTERNAL

_BATCH = 10_000
"""So many rows are in memory at once."""
VERSION = 1
MANIFEST = "manifest.json"
SINCE = "since-last.json"


def add_findings(target: Folder, findings: list[dict[str, Any]]) -> None:
    """Findings made on the driver, beside those that Spark wrote."""
    for code in sorted({finding["class"] for finding in findings}):
        rows = [finding for finding in findings if finding["class"] == code]
        columns = FINDING.remove(FINDING.get_field_index("class"))
        content = BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=columns), content, compression="zstd")
        folder = target / f"class={code}"
        folder.make()
        folder.write("groups.parquet", content.getvalue())


def condense(target: Folder, window: Window, parts: Mapping[int, str] | None = None) -> Findings:
    """Count and pick examples: by time, then by place. What could not be seen (Q1) belongs to every window: when it
    happened is not known, as little as what it hides. `parts`: by store, the words for its partition or level."""
    reports: dict[str, ClassReport] = {}
    causes = Causes(parts or {})
    totals: Counter[Key] = Counter()
    for row in _rows(target):
        code = row["class"]
        if not (code == "P5" and row["detail"].endswith("not found")):
            totals[code, row["store"], row["durable"]] += row["count"]
        if code not in INTERNAL and (code == INCOMPLETE or window.holds(row["at"])):
            reports.setdefault(code, ClassReport(code)).add(row)
            causes.add(row)
    named = sorted(causes.all(), key=lambda cause: ORDER.index(cause.code))
    return Findings([reports[code] for code in ORDER if code in reports], totals, named)


def _rows(written: Folder) -> Iterator[dict[str, Any]]:
    """As they were written: those of a class together, a batch at a time."""
    target = written.fetched()
    for directory in sorted(target.glob("class=*")):
        code = directory.name.removeprefix("class=")
        for path in sorted(directory.glob("*.parquet")):
            with pq.ParquetFile(path) as file:  # a dataset has all of a row group in memory, whatever it is asked for
                for batch in file.iter_batches(_BATCH):
                    yield from ({"class": code, **row} for row in batch.to_pylist())


def publish(making: str, out: Folder, window: Window) -> None:
    """Put the finished window, which has the name `making`, in place of an earlier one."""
    reports, name = out / "report", f"window={window.name}"
    reports.remove(name)
    out.move(making, reports / name)


def write_since(out: Folder, since: Comparison) -> None:
    """What is new since the reconciliation before, for programs."""
    out.write(SINCE, orjson.dumps({"v": VERSION, **since.as_json()}, option=orjson.OPT_INDENT_2))


def write_manifest(out: Folder, result: Result) -> None:
    """Last of all: what was read, by which versions, and what came of it."""
    window, verdict, known = result.window, result.verdict, result.known
    content = {
        "v": VERSION,
        "window": {"name": window.name, "since_us": window.since, "until_us": window.until},
        "versions": result.record.versions,
        "inputs": result.landed.extent.as_json(),
        "runs": [asdict(run) for run in result.judgement.runs],
        "digests": sorted(result.judgement.catalog.digests),
        "verdict": verdict.word,
        "sentence": verdict.sentence,
        "complete": verdict.complete,
        "clean": verdict.clean,
        "acknowledged": {
            "messages": verdict.acknowledged,
            "entries": [entry.as_json() for entry in known[:LINES_MAX]],
            "more_entries": max(0, len(known) - LINES_MAX),
        },
        "classes": [
            {
                "class": report.code,
                "severity": CLASSES[report.code].severity,
                "count": report.count,
                "messages": result.findings.messages(report.code),
                "acknowledged": result.findings.acknowledged(report.code),
                "nodes": sorted(report.nodes),
                "first_eid": report.first_eid,
                "last_eid": report.last_eid,
                "examples": report.examples,
            }
            for report in result.findings.classes
        ],
        **({} if result.compared is None else {"ledgers": asdict(result.compared)}),
        "balance": {**asdict(result.sheet), "difference": result.sheet.difference},
    }
    content["digest"] = blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
    out.write(MANIFEST, orjson.dumps(content, option=orjson.OPT_INDENT_2))
