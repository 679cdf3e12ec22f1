"""What findings, acknowledged or not, and books come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from reconciliation.history.acknowledged import parse
from reconciliation.history.acknowledging import with_entry
from reconciliation.history.standing import applied, day_at
from reconciliation.model.classes import ORDER
from reconciliation.report.balance import Balance, NodeBalance
from reconciliation.report.findings import ClassReport, Findings
from reconciliation.report.verdict import Verdict, verdict_of
from tests.reconciliation.history.runs import AT_US, DAY_US, causes, lost, row

HOLE = row("Q1", eid=None, node=None, store=None, run="1a-0001", count=2, detail="2 records missing: n 2 to 3")
CLOSED = Balance([], [], 0, 0)


def findings(*rows: dict[str, Any]) -> Findings:
    classes: dict[str, ClassReport] = {}
    for entry in rows:
        classes.setdefault(entry["class"], ClassReport(entry["class"])).add(entry)
    return Findings([classes[code] for code in ORDER if code in classes], Counter(), causes(rows))


def acknowledged(*rows: dict[str, Any], days: int = 0) -> bytes:
    """Until so many days from now."""
    content = None
    for cause in causes(rows):
        content = with_entry(content, "known.yaml", cause, day_at(AT_US) + timedelta(days=days), "ann", "INC-1")
    return content or b""


def verdict(report: Findings, known: bytes = b"", sheet: Balance = CLOSED, day: int = 0) -> Verdict:
    applied(report.anomalous, parse(known, "known.yaml"), AT_US + day * DAY_US)
    return verdict_of(report, sheet)


def test_what_is_acknowledged_is_apart() -> None:
    grade = verdict(findings(*lost(1, 2, 3)), acknowledged(*lost(1, 2, 3)))
    assert (grade.word, grade.clean, grade.passes, grade.complete) == ("clean but for acknowledged", False, True, True)
    assert grade.words == (
        "CLEAN BUT FOR 3 ACKNOWLEDGED. Acknowledged: 3 \u00d7 lost write (P1). All else that was told agrees with what "
        "the log holds, and the balance closes."
    )


def test_an_acknowledgement_that_has_expired_counts_again() -> None:
    known = acknowledged(*lost(1, 2, 3))
    grade = verdict(findings(*lost(1, 2, 3)), known, day=1)
    assert (grade.word, grade.passes, grade.acknowledged) == ("not clean", False, 0)
    assert grade.sentence == "3 \u00d7 lost write (P1)."


def test_a_finding_that_has_grown_is_not_clean() -> None:
    grade = verdict(findings(*lost(1, 2, 3, 4, 5)), acknowledged(*lost(1, 2, 3)))
    assert (grade.word, grade.passes) == ("not clean", False)
    assert grade.sentence == "2 \u00d7 lost write (P1). Besides, 3 are acknowledged."


def test_a_message_that_several_rows_name_can_be_acknowledged() -> None:
    """One that was returned three times, and each time otherwise than recorded, is one message."""
    returned = [row("A6", eid=17, run="1a-0001", seq=seq, detail="counted as failed") for seq in (3, 5, 9)]
    assert verdict(findings(*returned)).sentence == "1 \u00d7 returned otherwise than told (A6)."
    grade = verdict(findings(*returned), acknowledged(*returned))
    assert (grade.word, grade.passes, grade.acknowledged) == ("clean but for acknowledged", True, 1)
    grade = verdict(findings(*returned, *lost(1)), acknowledged(*returned))
    assert grade.sentence == "1 \u00d7 lost write (P1). Besides, 1 is acknowledged."


def test_what_could_not_be_seen_stays_unseen_when_it_is_acknowledged() -> None:
    assert verdict(findings(HOLE)).word == "incomplete"
    grade = verdict(findings(HOLE), acknowledged(HOLE))
    assert (grade.word, grade.passes, grade.complete) == ("clean but for acknowledged", True, False)
    assert grade.sentence.endswith("Not everything could be seen: run 1a-0001: 2 records missing: n 2 to 3.")
    assert verdict(findings(HOLE, *lost(1)), acknowledged(HOLE)).word == "not clean"
    assert verdict(findings(HOLE, *lost(1)), acknowledged(*lost(1))).word == "incomplete"


@pytest.mark.parametrize(("side", "word"), [("accepted", "not clean"), ("unread", "not clean"), ("both", "incomplete")])
def test_books_cannot_be_acknowledged(side: str, word: str) -> None:
    """Nor what no finding says of them."""
    sides = ("accepted", "unread") if side == "both" else (side,)
    names = [field.name for field in fields(NodeBalance) if field.name not in ("node", "kind", "part")]
    numbers: dict[str, Any] = {name: 4 if name in sides else 0 for name in names}
    sheet = Balance([NodeBalance("orders", "queue", **numbers)], [], 0, 0)
    assert verdict(findings(*lost(1)), acknowledged(*lost(1)), sheet).word == word


def test_what_is_no_anomaly_cannot_be_acknowledged() -> None:
    """And need not be."""
    loss = row("A12", eid=None, run="1a-0001", seq=3, rule="publish", detail="pre-settled")
    grade = verdict(findings(loss), acknowledged(loss))
    assert (grade.word, grade.acknowledged) == ("clean", 0)
