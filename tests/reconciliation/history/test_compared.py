"""What is new, what has grown, what stays and what is gone since the reconciliation before; and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciliation.history.compared import Comparison, compare
from reconciliation.history.record import Record, record_of
from reconciliation.report import since
from tests.reconciliation.history.runs import lost, record, row


def compared(now: Record, before: Record | None) -> Comparison:
    """As it was kept."""
    return compare(now, None if before is None else record_of(before.as_json()))


def acknowledged(report: Record, *known: int) -> Record:
    """Its first finding, so many of its EIDs."""
    [cause, *others] = report.findings
    left = [example for example in cause.examples if example["eid"] not in known]
    uncovered = replace(cause.members, eids=[(example["eid"], example["eid"]) for example in left])
    return replace(report, findings=[replace(cause, uncovered=uncovered, open=uncovered.count), *others])


@pytest.mark.parametrize(
    ("before", "now", "counts", "is_news"),
    [
        ((), (), {}, False),
        ((), (1,), {"new": 1}, True),
        ((1, 2), (1, 2), {"same": 1}, False),
        ((1, 2, 3), (2,), {"same": 1}, False),
        ((1, 2), (1, 2, 7), {"grown": 1}, True),
        ((1, 2), (1, 3), {"grown": 1}, True),
        ((1,), (), {"gone": 1}, False),
    ],
)
def test_what_became_of_a_finding(
    before: tuple[int, ...], now: tuple[int, ...], counts: dict[str, int], is_news: bool
) -> None:
    changes = compared(record(lost(*now), day=1), record(lost(*before)))
    assert {name: count for name, count in changes.counts.items() if count} == counts
    assert changes.is_news is is_news


def test_without_a_record_before_all_is_new() -> None:
    changes = compared(record(lost(1, 2)), None)
    assert changes.is_news and changes.counts["new"] == 1
    assert since.heading(changes) == "No earlier reconciliation to compare with: 1 finding new."


def test_what_the_record_before_left_out_is_new() -> None:
    rows = [row(node=f"node-{number:04d}", store=number) for number in range(1_003)]
    changes = compared(record(rows, day=1), record(rows))
    assert (changes.counts["same"], changes.counts["new"]) == (1_000, 3)


@pytest.mark.parametrize(
    ("then", "now", "counts"),
    [
        ((), (1, 2), "same"),  # acknowledged since
        ((1, 2), (1, 2), "same"),
        ((1, 2), (), "reopened"),  # it has expired
        ((1, 2), (1,), "reopened"),
    ],
)
def test_an_acknowledgement_that_ends_is_news(then: tuple[int, ...], now: tuple[int, ...], counts: str) -> None:
    report = record(lost(1, 2))
    changes = compared(acknowledged(report, *now), acknowledged(report, *then))
    assert changes.counts[counts] == 1
    assert changes.is_news is (counts == "reopened")


def test_what_is_new_in_an_acknowledged_finding_is_news() -> None:
    before = acknowledged(record(lost(1, 2)), 1, 2)
    changes = compared(acknowledged(record(lost(1, 2, 3)), 1, 2), before)
    assert changes.is_news and (changes.grown[0].more, changes.grown[0].counts) == (1, 1)
    changes = compared(acknowledged(record(lost(1, 2, 3)), 1, 2, 3), before)
    assert not changes.is_news and (changes.grown[0].more, changes.grown[0].counts) == (1, 0)


@pytest.mark.parametrize(
    ("books", "new"),
    [
        ({"lines": {"orders": 2}, "unseen": 0}, 0),
        ({"lines": {"orders": 3}, "unseen": 0}, 1),
        ({"lines": {"orders": 2, "bills": -1}, "unseen": 4}, 2),
        ({"lines": {}, "unseen": 0}, 0),
    ],
)
def test_books_that_do_not_close_are_news_once(books: dict[str, Any], new: int) -> None:
    before = record(books={"difference": 2, "lines": {"orders": 2}, "unseen": 0})
    changes = compared(record(day=1, books={"difference": 2, **books}), before)
    assert (len(changes.books), changes.is_news) == (new, bool(new))


def test_what_stays_is_counted_and_what_is_new_is_named() -> None:
    bills = lost(4, node="bills", store=8)
    changes = compared(record([*lost(1, 2, 3), *bills], day=1), record([*bills, *lost(9, node="gone", store=9)]))
    text = since.write(changes)
    assert ": 1 new, 0 grown, 1 the same, 1 gone." in text
    assert " lost write in orders, 3 messages: answered stored; the store has no such event\n" in text
    assert "1 finding the same as before: 1 message, not named here.\n" in text
    assert "bills" not in text and f"Gone: {changes.gone[0].id}." in text
    assert since.exit_words(changes, "not clean") == "Exit code 1: something is new that is not acknowledged."
    quiet = compared(record(bills, day=1), record(bills))
    assert "the verdict is not clean all the same" in since.exit_words(quiet, "not clean")
