"""Findings: what is one, and by which name it is known from one reconciliation to the next."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation.history.cause import ID, Causes, worded
from tests.reconciliation.history.runs import AT_US, NO_SUCH, causes, lost, row


def test_messages_of_one_cause_are_one_finding() -> None:
    rows = [row(eid=eid, run="1a-0001", seq=eid, at=AT_US + eid, link="l", container="c") for eid in range(3, 8)]
    [cause] = causes(rows)
    assert ID.fullmatch(cause.id) and (cause.count, cause.open, cause.place) == (5, 5, "orders")
    assert (cause.at_first, cause.at_last) == (AT_US + 3, AT_US + 7)
    assert cause.examples == rows[:3]
    [cause] = causes([rows[3], rows[1], rows[4], rows[0], rows[2]])
    assert cause.examples == rows[:3], "by time, in whatever order they come"


def test_a_finding_that_grows_keeps_its_name() -> None:
    assert causes(lost(1, 2, 3))[0].id == causes(lost(2, 3, 4, 5, 6, 9, run="1b-0002", seq=5))[0].id


@pytest.mark.parametrize(
    "other",
    [
        {"class": "P3"},
        {"node": "bills"},
        {"durable": "news"},
        {"store": 8},
        {"detail": "answered stored; the topic is gone"},
    ],
)
def test_another_place_or_cause_is_another_finding(other: dict[str, Any]) -> None:
    assert len({cause.id for cause in causes([row(), row(**other)])}) == 2


def test_the_rule_parts_outcomes_that_it_did_not_decide() -> None:
    rows = [row("A3", rule=rule, run="1a-0001", seq=1) for rule in ("accepts", "releases")]
    assert len(causes(rows)) == 2
    assert len(causes([{**entry, "class": "A1"} for entry in rows])) == 1


def test_what_has_no_node_is_of_its_run() -> None:
    rows = [
        row("Q1", eid=None, node=None, store=None, run=run, detail="1 record missing: n 2") for run in ("1a-1", "1b-2")
    ]
    assert len(causes(rows)) == 2


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("stored at EIDs 4, 9", "stored at EIDs 4, 9, 1,234"),
        ("2 outcomes records missing: n 2 to 3", "12 outcomes records missing: n 2 to 13"),
        ("stored under the tags 5:1, 7:12", "stored under the tags 5:1, 7:12, 9:4"),
        ("since 2026-01-02 03:04:05 UTC", "since 2026-11-12 13:14:15 UTC"),
    ],
)
def test_numbers_are_no_part_of_it(first: str, other: str) -> None:
    assert worded(first) == worded(other) != ""
    assert worded(NO_SUCH) == NO_SUCH


def test_the_partition_is_named_where_a_node_has_several() -> None:
    findings = Causes({7: "partition 2"})
    findings.add(row(durable="news"))
    findings.add(row(durable="queue", store=9))
    assert sorted(cause.place for cause in findings.all()) == ["orders", "orders partition 2 news"]
