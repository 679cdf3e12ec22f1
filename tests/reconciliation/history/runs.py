"""Rows of findings, and records of reconciliations, as small as can be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciliation.history.cause import Cause, Causes
from reconciliation.history.record import Record
from reconciliation.model.schemas import FINDING_COLUMNS
from reconciliation.model.window import BEGINNING, END

DAY_US = 86_400_000_000
AT_US = 1_795_000_000_000_000
NO_SUCH = "answered stored; the store has no such event"


def row(code: str = "P1", eid: int | None = 1, **other: Any) -> dict[str, Any]:
    """A lost write of `orders`, or what is said otherwise."""
    given = {"class": code, "node": "orders", "store": 7, "eid": eid, "count": 1, "at": AT_US, "detail": NO_SUCH}
    return {**dict.fromkeys(FINDING_COLUMNS), **given, **other}


def lost(*eids: int, **other: Any) -> list[dict[str, Any]]:
    return [row(eid=eid, **other) for eid in eids]


def causes(rows: Iterable[dict[str, Any]]) -> list[Cause]:
    findings = Causes({})
    for entry in rows:
        findings.add(entry)
    return findings.all()


def record(rows: Iterable[dict[str, Any]] = (), day: int = 0, **other: Any) -> Record:
    flaws = causes(rows)
    books = {"difference": 0, "unseen": 0, "lines": {}}
    given: dict[str, Any] = {
        "at_us": AT_US + day * DAY_US, "verdict": "not clean" if flaws else "clean", "sentence": "so", "complete": True,
        "window": {"since_us": BEGINNING, "until_us": END}, "realm": {"um.realm": "a", "um.journal": "b"},
        "classes": {}, "findings": flaws, "books": books, "sources": {"last_us": AT_US},
    }  # fmt: skip
    return Record(**{**given, **other})
