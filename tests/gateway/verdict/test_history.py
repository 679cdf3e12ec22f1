"""Rows of the history become sums and gaps: what has no record is never 0, and nothing counts twice."""

from __future__ import annotations

from math import inf
from typing import Any

import orjson
import pytest

from gateway.cli.gateways.peer_arguments import STEPS
from gateway.verdict.history import MINUTE_US, STEPS_US, HistoryRow, Sums, by_slot, distinct, history_row, read_history
from gateway.verdict.history_gaps import Gap, gaps
from gateway.verdict.samples import WrongAnswer

T = 1_795_561_200_000_000  # 2026-11-24T23:00:00Z


def row(run: str, begin: float, end: float, *, closed: bool = False, **other: Any) -> HistoryRow:
    """`begin`, `end`: minutes behind `T`."""
    begin_us, end_us = T + round(begin * MINUTE_US), T + round(end * MINUTE_US)
    times = {"begin_us": begin_us, "end_us": end_us}
    return history_row({**times, "runs": [{**times, "run": run, "closed": closed}], "records": 1, **other})


def gaps_between(
    rows: list[HistoryRow], begin: float, end: float, known: float | None = -9
) -> list[tuple[float, float, str]]:
    known_us = None if known is None else T + round(known * MINUTE_US)
    missing = gaps(rows, T + round(begin * MINUTE_US), T + round(end * MINUTE_US), known_us)
    return [((gap.begin_us - T) / MINUTE_US, (gap.end_us - T) / MINUTE_US, gap.why) for gap in missing]


def test_minutes_of_one_run_have_no_gap_and_the_minute_under_way_is_none() -> None:
    rows = [row("a", 0, 1), row("a", 1, 2), row("a", 2, 3)]
    assert gaps_between(rows, 0, 3.9) == []
    assert gaps_between(rows, 0.5, 2) == [], "records reach beyond the time that was asked for"
    assert gaps_between(rows, 0, 5.5) == [(3, 5.5, "killed")]


def test_between_two_runs_the_history_says_how_the_first_one_ended() -> None:
    stopped = [row("a", 0, 1), row("a", 1, 1.5, closed=True), row("b", 20, 21)]
    assert gaps_between(stopped, 0, 21) == [(1.5, 20, "stopped")]
    assert gaps_between([row("a", 0, 1), row("b", 1.6, 2)], 0, 2) == [(1, 1.6, "killed")]
    assert gaps_between([row("b", 1.6, 2), row("a", 0, 1, closed=True)], 0, 2) == [(1, 1.6, "stopped")], "in any order"
    assert gaps_between([row("a", 0, 1), row("b", 1.005, 2)], 0, 2) == [(1, 1.005, "killed")], "however short it is"
    assert gaps_between([row("a", 0, 3), row("b", 1, 2), row("b", 2, 4)], 0, 4) == [], (
        "a run that was frozen, and its heir"
    )


def test_a_time_without_any_record() -> None:
    assert gaps_between([], 0, 9, None) == [(0, 9, "not kept")]
    assert gaps_between([], 0, 1, -5) == [(0, 1, "none")], "however short it is"
    assert gaps_between([row("a", 4, 5)], 0, 5, 4) == [(0, 4, "not kept")]
    assert gaps_between([row("a", 4, 5)], 0, 5, -5) == [(0, 4, "none")], (
        "what lies before is kept, and this was not written"
    )
    assert Gap(1, 2, "stopped").words == "the gateway was down, stopped in order"


def test_records_of_an_hour_may_be_an_hour_late() -> None:
    assert gaps_between([row("a", 0, 60, records=1)], 0, 170) == []
    assert gaps_between([row("a", 0, 60, records=60)], 0, 170) == [(60, 170, "killed")]


COUNTS: dict[str, Any] = {
    "deliveries": [["in", "q", "accepted", 5], ["in", "q", "rejected", 2], ["in", "other", "none", 1],
                   ["out", "q", "accepted", 3], ["out", "q", "modified", 1], ["out", "c", "rejected", 1]],
    "errors": [["amqp:x", "capacity-reached", "transient", "published.full", "q", 2],
               ["", "", "fatal", "attach.no", "", 4],
               ["", "_MSG_TIMED_OUT", "transient", "published.r", "q", 1], ["", "", "", "settle.r", "q", 1]],
    "rules": [["publish", "p", 8]],
    "dead_letters": [["c", "rejected", 1]],
    "faults": [["framing", 3]],
    "new_connections": 2,
    "seconds": {"accept": {"counts": [98, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "total_us": 9}},
}  # fmt: skip


def test_figures_of_counts() -> None:
    sums = Sums([row("a", 0, 1, **COUNTS), row("a", 1, 2, **COUNTS)])
    assert sums.figures() == {
        "in": 16, "refused": 4, "out": 10, "rejected": 2, "returned": 2, "fatal": 8, "transient": 4,
        "indeterminate": 2, "other": 2, "faults": 6, "dead_letters": 2, "new_connections": 4,
    }  # fmt: skip
    assert [(node["node"], node["in"], node["dead_letters"]) for node in sums.nodes()] == [
        ("q", 14, 0), ("", 0, 0), ("c", 0, 2), ("other", 2, 0),
    ]  # fmt: skip
    assert sums.by_node()["q"].figures()["out"] == 8
    assert sums.errors()[0] == {
        "class": "fatal", "condition": "", "code": "", "rule": "attach.no", "node": "", "count": 8,
    }  # fmt: skip
    assert sums.rules() == [{"rule": "publish.p", "count": 16}]
    assert sums.accept_p99_ms() == 5
    slow: dict[str, Any] = {"seconds": {"accept": {"counts": [0] * 13 + [1]}}}
    assert Sums().accept_p99_ms() is None and Sums([row("a", 0, 1, **slow)]).accept_p99_ms() == inf


def test_rows_of_one_time_are_one_line() -> None:
    rows = [row("b", 1.5, 2, **COUNTS), row("a", 0, 1, **COUNTS), row("a", 1, 1.4, **COUNTS)]
    minutes = by_slot(rows, MINUTE_US)
    assert [((at - T) // MINUTE_US, sums.figures()["in"]) for at, sums in minutes.items()] == [(0, 8), (1, 16)]
    assert [*STEPS_US] == [*STEPS]


def test_of_gateways_on_one_realm_one_answers() -> None:
    early, late, other = [row("a", 0, 1)], [row("a", 0, 1), row("b", 2, 3)], [row("z", 0, 1)]
    assert distinct({"gw-a": early, "gw-b": late, "gw-c": other, "gw-d": []}) == {
        "gw-b": late, "gw-c": other, "gw-d": [],
    }  # fmt: skip


def test_an_answer_of_another_form_counts_nothing() -> None:
    odd = {"begin_us": "x", "runs": [7, {"run": 4}], "deliveries": [["in", 7, "accepted", 2], ["in"], 3, [1, 2, 3, ""]],
           "seconds": [], "errors": {}, "records": True}  # fmt: skip
    made = history_row(odd)
    assert (made.begin_us, made.runs[0].run, made.numbers["records"]) == (0, "", 0)
    assert made.counts["deliveries"] == {("in", "", "accepted"): 2, ("", "", ""): 0}
    gateway = {"run": "r", "at_us": T, "state": "ready", "history": [odd, 3], "next": None, "known_us": T - 1}
    head, rows = read_history(orjson.dumps({"gateways": [gateway]}))
    assert (head["known_us"], rows) == (T - 1, [made])
    with pytest.raises(WrongAnswer, match="the log does not answer"):
        read_history(b'{"gateways": [{"problem": "the log does not answer"}]}')
