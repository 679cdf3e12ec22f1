"""What gateways counted earlier: the rows of `/api/history` as facts, and their sums.

A gateway answers for its realm, so also for earlier runs and for other gateways on that realm: `distinct` keeps one
answer a realm. Errors are counted by class as on the console's board; a fault of a peer is one of them, so `faults` are
not added to them. Source: gateway/admin/history/row.py, docs/admin-api.md. Microseconds since 1970, counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from gateway.verdict.answers import list_of, number, read_list, text
from gateway.verdict.kinds import board_class
from gateway.verdict.limits import HISTORY_ENTRIES, ROWS

MINUTE_US: Final = 60_000_000
STEPS_US: Final = {"minute": MINUTE_US, "5min": 5 * MINUTE_US, "15min": 15 * MINUTE_US, "hour": 60 * MINUTE_US}
"""What the records of one row have in common: the time of that length that they began in."""
FAMILIES: Final = {"deliveries": 3, "errors": 5, "rules": 2, "dead_letters": 2, "faults": 1, "alarms": 1}
"""How many names an entry has before its count."""
NUMBERS: Final = ("records", "missed", "new_connections", "new_links", "evidence_failed")
CLASSES: Final = ("fatal", "transient", "indeterminate", "other")
OTHER: Final = "other"
"""The node under which deliveries are counted that are too many to be named."""
_CLASSES_MS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
_GIVEN_BACK: Final = ("released", "modified")
_TAKEN: Final = ("accepted", "none")
_NODE_AT: Final = {"deliveries": 1, "errors": 4, "dead_letters": 0}
"""Families that are counted by node, and where its name stands."""
_OF_NO_NODE: Final = ("faults", "new_connections")
_ACCEPT: Final = "accept"
_P99: Final = 0.99
Key = tuple[str, ...]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunTime:
    """What the records of one run in a row cover, without a gap. `closed`: the run ended in order with them."""

    run: str
    begin_us: int
    end_us: int
    closed: bool


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """`accept`: how many published messages waited how long for their outcome, by class."""

    begin_us: int
    end_us: int
    runs: tuple[RunTime, ...]
    numbers: Mapping[str, int]
    counts: Mapping[str, Mapping[Key, int]]
    accept: tuple[int, ...]


def read_history(body: bytes, most: int = ROWS) -> tuple[Row, list[HistoryRow]]:
    """A page: its gateway (run, at_us, state, next, known_us), and its rows, at most so many. Raises WrongAnswer."""
    head, rows = read_list(body, "history", most)
    return head, [history_row(row) for row in rows]


def history_row(entry: Mapping[str, Any]) -> HistoryRow:
    """What has another form than it should is left out."""
    begin_us, end_us = _whole(entry.get("begin_us")), _whole(entry.get("end_us"))
    runs = tuple(_run_time(run) for run in list_of(entry.get("runs")) if isinstance(run, dict))
    numbers = {name: _whole(entry.get(name)) for name in NUMBERS}
    counts = {name: _entries(entry.get(name), width) for name, width in FAMILIES.items()}
    seconds = entry.get("seconds")
    accept = seconds.get(_ACCEPT) if isinstance(seconds, dict) else None
    classes = list_of(accept.get("counts") if isinstance(accept, dict) else None)[: len(_CLASSES_MS) + 1]
    return HistoryRow(begin_us, end_us, runs, numbers, counts, tuple(map(_whole, classes)))


def _run_time(entry: Mapping[str, Any]) -> RunTime:
    run, begin_us, end_us = text(entry.get("run")) or "", _whole(entry.get("begin_us")), _whole(entry.get("end_us"))
    return RunTime(run, begin_us, end_us, entry.get("closed") is True)


def _entries(value: object, width: int) -> Mapping[Key, int]:
    counts: Counter[Key] = Counter()
    for entry in list_of(value)[:HISTORY_ENTRIES]:
        if isinstance(entry, list) and len(entry) == width + 1:
            counts[tuple(text(name) or "" for name in entry[:width])] += _whole(entry[width])
    return counts


def _whole(value: object) -> int:
    return int(number(value) or 0)


def distinct(answers: Mapping[str, Sequence[HistoryRow]]) -> dict[str, Sequence[HistoryRow]]:
    """By name of the gateway. Of those that answer from the same records, the one that has the latest."""
    kept: dict[str, Sequence[HistoryRow]] = {}
    for name, rows in sorted(answers.items(), key=lambda answer: -max((row.end_us for row in answer[1]), default=0)):
        runs = _runs(rows)
        if not runs or not any(runs & _runs(others) for others in kept.values()):
            kept[name] = rows
    return {name: rows for name, rows in answers.items() if name in kept}


def _runs(rows: Iterable[HistoryRow]) -> set[str]:
    return {run.run for row in rows for run in row.runs}


class Sums:
    """Rows together."""

    def __init__(self, rows: Iterable[HistoryRow] = ()) -> None:
        self.numbers: Counter[str] = Counter()
        self.counts: dict[str, Counter[Key]] = {name: Counter() for name in FAMILIES}
        self.accept = [0] * (len(_CLASSES_MS) + 1)
        for row in rows:
            self.add(row)

    def add(self, row: HistoryRow) -> None:
        self.numbers.update(row.numbers)
        for name, counts in row.counts.items():
            self.counts[name].update(counts)
        for at, count in enumerate(row.accept):
            self.accept[at] += count

    def by_node(self) -> dict[str, Sums]:
        """What is counted by node. Empty: deliveries and errors of no node."""
        sums: dict[str, Sums] = {}
        for name, at in _NODE_AT.items():
            for key, count in self.counts[name].items():
                sums.setdefault(key[at], Sums()).counts[name][key] += count
        return sums

    def of_node(self, node: str) -> Sums:
        """What is counted under that name; empty: all."""
        return self.by_node().get(node, Sums()) if node else self

    @property
    def unnamed(self) -> int:
        """Deliveries that are counted under `OTHER`: their nodes are too many to be named."""
        return sum(count for key, count in self.counts["deliveries"].items() if key[_NODE_AT["deliveries"]] == OTHER)

    def figures(self) -> dict[str, int]:
        """`refused`: came in and was not accepted. `returned`: a consumer gave it back."""
        came, went = Counter[str](), Counter[str]()
        for (direction, _, outcome), count in self.counts["deliveries"].items():
            (came if direction == "in" else went)[outcome] += count
        by_class = dict.fromkeys(CLASSES, 0)
        for (_, code, klass, _, _), count in self.counts["errors"].items():
            by_class[board_class(klass, code)] += count
        return {
            "in": came.total(),
            "refused": sum(count for outcome, count in came.items() if outcome not in _TAKEN),
            "out": went.total(),
            "rejected": went["rejected"],
            "returned": sum(count for outcome, count in went.items() if outcome.partition("-")[0] in _GIVEN_BACK),
            **by_class,
            "faults": self.counts["faults"].total(),
            "dead_letters": self.counts["dead_letters"].total(),
            "new_connections": self.numbers["new_connections"],
        }

    def accept_p99_ms(self) -> float | None:
        """99 of 100 published messages had their outcome within so long, to the class; infinite: longer than the last
        class. None: there were none."""
        wanted, counted = _P99 * sum(self.accept), 0
        if not wanted:
            return None
        for bound_ms, count in zip((*_CLASSES_MS, inf), self.accept, strict=True):
            counted += count
            if counted >= wanted:
                return bound_ms
        raise AssertionError

    def nodes(self) -> list[Row]:
        """Each with its figures, the most deliveries and errors first."""
        rows: list[Row] = []
        for node, sums in self.by_node().items():
            figures = sums.figures()
            rows.append({"node": node, **{name: figures[name] for name in figures if name not in _OF_NO_NODE}})
        return sorted(rows, key=lambda row: (-sum(row[name] for name in row if name != "node"), row["node"]))

    def errors(self) -> list[Row]:
        """Class, condition, code, rule and node, the most frequent first."""
        return [
            {"class": board_class(klass, code), "condition": condition, "code": code, "rule": rule, "node": node,
             "count": count}
            for (condition, code, klass, rule, node), count in self._most("errors")
        ]  # fmt: skip

    def rules(self) -> list[Row]:
        """The deliveries that each decided about."""
        return [{"rule": f"{table}.{rule}", "count": count} for (table, rule), count in self._most("rules")]

    def _most(self, family: str) -> list[tuple[Key, int]]:
        return sorted(self.counts[family].items(), key=lambda pair: (-pair[1], pair[0]))


def by_slot(rows: Iterable[HistoryRow], step_us: int) -> dict[int, Sums]:
    """By the time at which the slot begins, in order."""
    sums: dict[int, Sums] = {}
    for row in sorted(rows, key=lambda entry: entry.begin_us):
        sums.setdefault(row.begin_us // step_us * step_us, Sums()).add(row)
    return sums
