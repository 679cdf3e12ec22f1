"""Reconciliations in directories: the newest first, read again when they change, and named where they are none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gateway.verdict.limits import MANIFEST_BYTES
from gateway.verdict.problems import problems
from gateway.verdict.reports import Reports

CLEAN = {"verdict": "clean", "sentence": "Everything agrees.", "complete": True, "window": {"name": "all"},
         "runs": [{}, {}], "classes": [], "balance": {"difference": 0}}  # fmt: skip


def report(directory: Path, at_s: int, content: Any) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "manifest.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (at_s, at_s))
    return path


def test_a_directory_is_a_report_or_holds_some(tmp_path: Path) -> None:
    report(tmp_path / "own", 1_000, CLEAN)
    report(tmp_path / "all" / "monday", 3_000, {**CLEAN, "verdict": "not clean"})
    report(tmp_path / "all" / "sunday", 2_000, CLEAN)
    (tmp_path / "all" / "making").mkdir()
    reports = Reports([tmp_path / "own", tmp_path / "all"]).read()
    assert [(row.name, row.verdict, row.at_us) for row in reports] == [
        ("monday", "not clean", 3_000_000_000), ("sunday", "clean", 2_000_000_000), ("own", "clean", 1_000_000_000),
    ]  # fmt: skip
    assert (reports[1].runs, reports[1].difference, reports[1].complete, reports[1].has_page) == (2, 0, True, False)


def test_what_is_acknowledged_and_what_is_new_is_read(tmp_path: Path) -> None:
    known = {"id": "P1-5a31c8e07f", "node": "orders", "until": "2026-12-31", "by": "ann", "reason": "INC-1",
             "messages": 3, "acknowledged": 3, "expired": False, "found": True}  # fmt: skip
    content = {**CLEAN, "verdict": "clean but for acknowledged", "acknowledged": {"messages": 3, "entries": [known]}}
    counts = {"new": 0, "grown": 1, "reopened": 0, "same": 2, "gone": 0}
    report(tmp_path, 1_000, content)
    (tmp_path / "since-last.json").write_text(json.dumps({"before": {"at_us": 1}, "counts": counts}))
    [row] = Reports([tmp_path]).read()
    assert (row.verdict, row.acknowledged, row.entries, row.since) == (content["verdict"], 3, [known], counts)
    assert (row.expired("2026-12-31"), row.expired("2027-01-01")) == ([], ["P1-5a31c8e07f"])


def test_without_an_earlier_reconciliation_none_is_named(tmp_path: Path) -> None:
    for name, content in (("first", '{"before": null}'), ("torn", '{"before": {"at'), ("old", None)):
        report(tmp_path / name, 1_000, CLEAN)
        if content is not None:
            (tmp_path / name / "since-last.json").write_text(content)
    assert [(row.since, row.acknowledged, row.problem) for row in Reports([tmp_path]).read()] == [({}, 0, "")] * 3


def test_names_are_unique(tmp_path: Path) -> None:
    for at, place in enumerate(("a", "b")):
        report(tmp_path / place / "report", 1_000 + at, CLEAN)
    reports = Reports([tmp_path / "a" / "report", tmp_path / "b" / "report"]).read()
    assert [row.name for row in reports] == ["report-1", "report-2"]


def test_a_report_that_changes_is_read_again(tmp_path: Path) -> None:
    reports = Reports([tmp_path])
    report(tmp_path, 1_000, CLEAN)
    assert reports.read()[0] is reports.read()[0]
    path = report(tmp_path, 2_000, {**CLEAN, "verdict": "incomplete"})
    assert reports.read()[0].verdict == "incomplete"
    path.unlink()  # a run has begun
    latest = {"verdict": "not clean", "sentence": "1 message is lost.", "difference": 1}
    (tmp_path / "verdict.json").write_text(json.dumps(latest))
    [row] = reports.read()
    assert (row.verdict, row.difference, row.problem) == ("not clean", 1, "")
    assert row.sentence == "1 message is lost. A reconciliation is under way since then, or was broken off."
    report(tmp_path, 3_000, CLEAN)
    assert [row.verdict for row in reports.read()] == ["clean"]


def test_what_cannot_be_looked_at_is_named_beside_what_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report(tmp_path / "all" / "monday", 3_000, {**CLEAN, "verdict": "not clean"})
    for name in ("closed", "lost+found"):
        (tmp_path / "all" / name).mkdir()
    (tmp_path / "empty").mkdir()
    stat = Path.stat

    def refused(path: Path, **how: Any) -> os.stat_result:
        if path.parent.name in ("closed", "lost+found"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", refused)  # root may look at everything
    rows = Reports([tmp_path / "no-such", tmp_path / "empty", tmp_path / "all"]).read()
    assert [(row.name, row.verdict, row.problem) for row in rows] == [
        ("monday", "not clean", ""),
        ("no-such", "unknown", f"{tmp_path / 'no-such'} cannot be read: No such file or directory"),
        ("empty", "unknown", f"{tmp_path / 'empty'} has no report: a reconciliation writes one when it ends"),
        ("closed", "unknown", f"{tmp_path / 'all' / 'closed'} cannot be read: Permission denied"),
    ]
    kinds = [problem.kind for problem in problems([], rows, 3_000_000_000)]
    assert kinds == ["reconciliation", "reconciliation-unread"]
    assert [problem.kind for problem in problems([], rows[1:], 3_000_000_000)] == ["reconciliation-unread"]


def test_what_is_no_manifest_is_named(tmp_path: Path) -> None:
    for at, content in enumerate(
        ("{", "[]", '{"verdict": "fine"}', '{"verdict": "clean", "classes": [{"class": "P1"}]}')
    ):
        report(tmp_path / str(at), 1_000 + at, content)
    reports = Reports([tmp_path]).read()
    assert len(reports) == 4
    assert all(row.verdict == "unknown" and "no manifest of a reconciliation" in row.problem for row in reports)
    large = report(tmp_path / "large", 5_000, "")
    os.truncate(large, MANIFEST_BYTES + 1)
    assert "is larger than" in Reports([tmp_path / "large"]).read()[0].problem
