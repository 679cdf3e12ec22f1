"""Transforms on a few rows: given, expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reconciliation.model import schemas
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import SEQ_SIZE
from reconciliation.model.runs import numbering_findings, runs_of
from reconciliation.model.window import Window, parse
from reconciliation.report import report
from reconciliation.transforms import bases, blocks, runs, tallies
from reconciliation.transforms.frames import local_table
from tests.reconciliation.numberings import numbering

ACCOUNT = "run string, seq bigint, what string, durable string, store bigint, eid bigint"


def account(seq: int, what: str, eid: int | None, durable: str | None = None) -> tuple[str | int | None, ...]:
    return ("r", seq, what, durable, 1, eid)


def told(*seqs: int) -> list[tuple[str | int | None, ...]]:
    return [account(seq, "other", None) for seq in seqs]


def stored(seq: int, eid: int) -> list[tuple[str | int | None, ...]]:
    return [account(seq, "stored", eid), account(seq, "event", eid)]


def test_a_small_table_is_the_planners_own(session: SparkSession) -> None:
    """By Arrow, or empty: no executor needs Python for it."""
    rows: list[tuple[str | int | None, ...]] = [("it's \u00fc", None), (None, 1 << 40), ("", -1)]
    some = local_table(session, rows, "name string, number bigint")
    unknown = local_table(session, [(None, None)], "name string, number bigint")
    none = local_table(session, [], "name string, number bigint")
    assert [tuple(row) for row in some.collect()] == rows
    assert [tuple(row) for row in unknown.collect()] == [(None, None)] and none.collect() == []
    for table in (some, unknown, none):
        assert [field.dataType.simpleString() for field in table.schema.fields] == ["string", "bigint"]
        assert "LocalRelation" in table._jdf.queryExecution().optimizedPlan().toString()


@pytest.mark.parametrize(
    ("low", "rows", "suspect"),
    [
        (5, [*stored(1, 7), *told(2, 3, 4)], []),
        (5, [*stored(1, 7), *told(2, 3)], [0]),  # 4 is missing
        (5, told(1, 1, 4, 4), [0]),  # same count and same sum as 1, 2, 3, 4
        (5, [*told(1, 2, 3, 4), *stored(9, 1)], []),  # above low, and both agree
        (5, [*told(1, 2, 3, 4), account(9, "event", 1)], [0]),
        (2, [account(1, "stored", 7), account(1, "event", 8)], [0]),  # elsewhere than told
        (2, [account(1, "acknowledge", 7, "d"), account(1, "journal acknowledge", 7, "d")], []),
        (2, [account(1, "acknowledge", 7, "d"), account(1, "journal acknowledge", 7, "e")], [0]),
        (2, [account(1, "acknowledge", 7, "d"), account(1, "journal discard", 7, "d")], [0]),
        (2, [account(1, "publish-unknown", None)], [0]),
        (SEQ_SIZE + 1, told(*range(1, SEQ_SIZE)), [1]),  # of the second block nothing is left
    ],
)
def test_suspect_blocks(
    session: SparkSession, low: int, rows: list[tuple[str | int | None, ...]], suspect: list[int]
) -> None:
    of_runs = local_table(session, [("r", low, "live", 1)], schemas.RUNS)
    accounts = local_table(session, rows, ACCOUNT).unionByName(blocks.expected(of_runs), allowMissingColumns=True)
    assert [row["block"] for row in blocks.suspects(accounts, of_runs).collect()] == suspect


@pytest.mark.parametrize(
    ("base", "rows", "suspect"),
    [
        (3, told(3, 4), []),
        (3, told(4), [0]),
        (3, told(2, 4), [0]),
        (5, [], []),  # nothing to be judged
        (1 << 62, [], []),
        (SEQ_SIZE + 1, [], []),
    ],
)
def test_a_block_is_whole_from_the_base_on(
    session: SparkSession, base: int, rows: list[tuple[str | int | None, ...]], suspect: list[int]
) -> None:
    of_runs = local_table(session, [("r", 5, "live", base)], schemas.RUNS)
    accounts = local_table(session, rows, ACCOUNT).unionByName(blocks.expected(of_runs), allowMissingColumns=True)
    assert [row["block"] for row in blocks.suspects(accounts, of_runs).collect()] == suspect


def test_holes_are_found_from_the_first_number_on(session: SparkSession) -> None:
    records = local_table(session, [("a", 2), ("a", 3), ("a", 7), ("b", 4)], "run string, n bigint")
    holes = {(row["run"], row["first"], row["last"]) for row in runs.missing_numbers(records, ["a", "b"], 1).collect()}
    assert holes == {("a", 1, 1), ("a", 4, 6), ("b", 1, 3)}
    kept = {
        (row["run"], row["first"], row["last"]) for row in runs.missing_numbers(records, ["a", "b"], None).collect()
    }
    assert kept == {("a", 4, 6)}


CELLS = [
    ("d", "settle", 1, "accepts", "acknowledge", "accepted", None, None, None, None),
    ("d", "settled", 2, "as-asked", None, "asked", None, None, None, None),
    ("d", "settled", 3, "denied", None, "rejected", "amqp:unauthorized-access", "fatal", None, None),
]
TALLY = (
    "digest string, `table` string, cell int, rule string, answer_table string, answer_cell int, answer_rule string, "
    "operation string, outcome string, condition string, class string"
)


@pytest.mark.parametrize(
    ("changed", "mismatch"),
    [
        ({}, None),
        ({"rule": "other"}, "rule other where the table says accepts"),
        ({"answer_rule": "other"}, "answer rule other where the table says as-asked"),
        ({"operation": "discard"}, "operation discard where the table says acknowledge"),
        ({"outcome": "released"}, "outcome released where the table says accepted"),
        ({"answer_cell": 3, "answer_rule": "denied", "outcome": "rejected", "class": "fatal"},
         "condition none where the table says amqp:unauthorized-access"),
        ({"digest": "unknown", "rule": "other"}, None),  # not judged: the missing tables are Q1
    ],
)  # fmt: skip
def test_outcomes_are_held_against_the_tables(
    session: SparkSession, changed: dict[str, str | int], mismatch: str | None
) -> None:
    honest: dict[str, str | int | None] = {
        "digest": "d", "table": "settle", "cell": 1, "rule": "accepts", "answer_table": "settled", "answer_cell": 2,
        "answer_rule": "as-asked", "operation": "acknowledge", "outcome": "accepted", "condition": None, "class": None,
    }  # fmt: skip
    tallied = local_table(session, [tuple({**honest, **changed}.values())], TALLY)
    judged = tallies.judged(tallied, local_table(session, CELLS, schemas.CELLS))
    assert [row["mismatch"] for row in judged.collect()] == [mismatch]


def test_a_run_is_live_only_while_no_later_one_is_known() -> None:
    known = [numbering("a-0001"), numbering("b-0001"), numbering("9-0001", closed=1)]
    assert [run.state for run in runs_of(known)] == ["closed", "killed", "live"]
    later = numbering("c-0001", source="journal")
    assert [run.state for run in runs_of([*known, later])] == ["closed", "killed", "killed"]


def test_doubled_and_unreadable_records_and_missing_tables_are_evidence_gaps() -> None:
    findings = numbering_findings([numbering("a-1", n_distinct=2), numbering(None), numbering("b-1")], frozenset({"x"}))
    assert [finding["detail"] for finding in findings] == [
        "1 outcomes records are there twice (same run, same n)",
        "no expanded tables under digest d",
        "3 outcomes records cannot be read",
        "no expanded tables under digest d",
    ]


def test_a_window_reports_what_lies_in_it_and_balances_all(tmp_path: Path) -> None:
    noon = parse("2026-01-01T12:00:00+00:00")
    assert parse("2026-01-01 12:00") == noon
    rows = [
        {"class": "P1", "count": 1, "store": 5, "eid": at, "at": at, "detail": ""} for at in (noon - 1, noon, noon + 9)
    ]
    folder = LocalFolder(tmp_path)
    report.add_findings(folder, [{**dict.fromkeys(schemas.FINDING_COLUMNS), **row} for row in rows])
    findings = report.condense(folder, Window(noon, noon + 9))
    assert [(entry.code, entry.count, entry.first_eid) for entry in findings.classes] == [("P1", 1, noon)]
    assert findings.totals["P1", 5, None] == 3


def test_a_run_whose_name_is_too_long_to_be_a_time_is_judged(session: SparkSession) -> None:
    """Anybody may write such a key; it ended every reconciliation of a realm of which evidence was trimmed."""
    rows = local_table(session, [("f" * 40 + "-0001", 1, 5), ("1-0001", 1, 6)], "run string, seq bigint, eid bigint")
    known = local_table(session, [], "run string, base bigint")
    judged = bases.with_judged(rows, known, None, 10**15).collect()
    assert {row["eid"]: row["judged"] for row in judged} == {5: True, 6: False}
