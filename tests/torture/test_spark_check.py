"""What a report of Spark says against a run of faults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.objections import objections


def entry(code: str, severity: str = "C", count: int = 1) -> dict[str, Any]:
    return {"class": code, "count": count, "severity": severity, "examples": [{"eid": 7}]}


def manifest(*classes: dict[str, Any], difference: int = 0, complete: bool = True) -> dict[str, Any]:
    books = {"balance": {"difference": difference}, "verdict": "incomplete", "complete": complete}
    return {"classes": [*classes], **books}


@pytest.mark.parametrize(
    ("report", "code", "is_doubled", "words"),
    [
        (manifest(), 0, False, None),
        (manifest(entry("P5", "i"), entry("A1", count=0)), 0, False, None),
        (manifest(entry("P2")), 1, True, None),
        (manifest(entry("P2")), 1, False, "P2 1: [{'eid': 7}]"),
        (manifest(entry("Q1"), complete=False), 1, True, "Q1 1: [{'eid': 7}]"),
        (manifest(entry("P2"), complete=False), 1, True, "not everything was seen: the verdict is incomplete"),
        (manifest(difference=3), 1, False, "the books do not close: 3"),
        (manifest(entry("P2"), difference=-1), 1, True, "the books do not close: -1"),
        (manifest(entry("P5", "i")), 1, False, "the verdict is incomplete, and nothing is named"),
    ],
)
def test_objections_to_a_run(report: dict[str, Any], code: int, is_doubled: bool, words: str | None) -> None:
    assert [*objections(report, code, is_doubled)] == ([] if words is None else [words])
