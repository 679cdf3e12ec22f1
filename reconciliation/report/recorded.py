"""What is kept of a reconciliation for those that come after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciliation.history.record import LINES_MAX, Record
from reconciliation.jobs.reconcile import Judgement
from reconciliation.model.ranges import SINGLE, Extent
from reconciliation.model.settings import Realm
from reconciliation.model.state import identity_of
from reconciliation.model.window import Window
from reconciliation.read.landing import Landed
from reconciliation.report.balance import Balance
from reconciliation.report.error_matrix import error_cells
from reconciliation.report.findings import Findings
from reconciliation.report.verdict import Verdict

_OF_NODES = ("accepted", "indeterminate", "in_flight", "copied", "anomalies", "older", "native", "unproven", "stored",
             "retained_out", "unread")  # fmt: skip


def recorded(
    realm: Realm, window: Window, landed: Landed, judgement: Judgement, findings: Findings, sheet: Balance,
    verdict: Verdict, versions: Mapping[str, str], at_us: int, took_s: float,
) -> Record:  # fmt: skip
    """`at_us`: when it began."""
    return Record(
        at_us=at_us,
        verdict=verdict.word,
        sentence=verdict.sentence,
        complete=verdict.complete,
        window={"since_us": window.since, "until_us": window.until},
        realm=identity_of(landed.extent, realm.prefix),
        classes={report.code: report.count for report in findings.classes},
        findings=findings.anomalous,
        books=_books(sheet),
        sources=_sources(landed.extent, judgement, realm.prefix),
        errors=_errors(judgement),
        versions=dict(versions),
        took_s=took_s,
    )


def _books(sheet: Balance) -> dict[str, Any]:
    totals = {name: sum(getattr(node, name) for node in sheet.nodes) for name in _OF_NODES}
    lines: dict[str, int] = {}
    for line, difference in _lines(sheet):
        lines[line] = difference if line not in lines else abs(lines[line]) + abs(difference)  # two stores of one name
    return {
        "difference": sheet.difference,
        "unseen": sheet.unseen,
        "lines": dict([*lines.items()][:LINES_MAX]),
        "more_lines": max(0, len(lines) - LINES_MAX),
        **totals,
    }


def _lines(sheet: Balance) -> Iterator[tuple[str, int]]:
    """Those that do not close."""
    for node in sheet.nodes:
        if node.difference:
            yield " ".join(filter(None, (node.node, node.part))), node.difference
    for durable in sheet.durables:
        if durable.difference:
            yield " ".join(filter(None, (durable.node, durable.part, f"durable {durable.durable}"))), durable.difference


def _sources(extent: Extent, judgement: Judgement, prefix: str) -> dict[str, Any]:
    """The realm's own topics, each with its offsets; those of events summed up."""
    own = {f"{prefix}.{kind}" for kind in SINGLE}
    events = [span for span in extent.ranges if span.topic not in own]
    states = [run.state for run in judgement.runs]
    return {
        "topics": {span.topic: [span.first, span.end] for span in extent.ranges if span.topic in own},
        "event_partitions": len(events),
        "event_offsets": sum(span.end - span.first for span in events),
        "unread": [gap.words for gap in extent.unread[:LINES_MAX]],
        "runs": {state: states.count(state) for state in sorted({*states})},
        "outcomes": sum(tally.count for tally in judgement.tallies),
        "last_us": max((run.at_last for run in judgement.runs), default=None),
    }


def _errors(judgement: Judgement) -> list[dict[str, Any]]:
    cells = sorted(error_cells(judgement.tallies).items(), key=lambda item: (-item[1].count, item[0]))
    return [{"condition": condition, "code": code, "deliveries": cell.count} for (condition, code), cell in cells]
