"""The job: outcome records in, what other tables would have decided out. One aggregation over groups; each distinct
combination is decided once, on the driver; a second query names nodes and peers of what is not alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from reconciliation.model.window import Window
from reconciliation.read.landing import Landed
from reconciliation.read.stored_tables import by_digest, digest_of
from reconciliation.transforms.frames import landed_records, local_table
from reconciliation.what_if import counted
from reconciliation.what_if.chain import CHAINS
from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.recorded import DELIVERY, Recorded
from reconciliation.what_if.verdict import ALIKE, Verdict, decide


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `name` of the other tables, for the reader; `assumed`: values of facts where no record has them;
    `lines`: how many nodes and peers are named of each change, at most."""

    name: str
    tables: ExpandedTables
    window: Window = field(default_factory=Window)
    assumed: Mapping[str, str] = field(default_factory=dict)
    lines: int = 10


@dataclass(frozen=True, slots=True)
class Line:
    """One node and peer, with its first decision."""

    node: str | None
    user: str | None
    container: str | None
    count: int
    example: Mapping[str, Any]


@dataclass(slots=True)
class Changed:
    """Decisions of which the same is to be said. `of` counts the nodes and peers; `lines` names those with most."""

    what: str
    direction: str | None
    verdict: Verdict
    count: int = 0
    of: int = 0
    lines: list[Line] = field(default_factory=list)

    @property
    def unnamed(self) -> int:
        """Decisions at the nodes and peers that `lines` does not name."""
        return self.count - sum(line.count for line in self.lines)


@dataclass(slots=True)
class Totals:
    """Exact. `renamed` of those alike: by a rule of another name; `assumed`: that would be undecided without what was
    assumed."""

    alike: int = 0
    renamed: int = 0
    differently: int = 0
    undecided: int = 0
    assumed: int = 0

    @property
    def all(self) -> int:
        return self.alike + self.differently + self.undecided

    def add(self, verdict: Verdict, count: int) -> None:
        self.alike += count if verdict.kind == "alike" else 0
        self.renamed += count if verdict.renamed else 0
        self.differently += count if verdict.kind == "differs" else 0
        self.undecided += count if verdict.kind == "undecided" else 0


@dataclass(slots=True)
class Answer:
    """`deliveries` and `others` (attaches, faults, requests) are counted apart. `digests`: deliveries by the tables
    that decided. `left_out`: decisions that were counted and not recorded. Microseconds since 1970; 0: none."""

    deliveries: Totals = field(default_factory=Totals)
    others: Totals = field(default_factory=Totals)
    changes: list[Changed] = field(default_factory=list)
    own: Mapping[str, ExpandedTables] = field(default_factory=dict)
    digests: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    at_first: int = 0
    at_last: int = 0


def what_if(
    spark: SparkSession,
    landed: Landed,
    stored: Iterable[Mapping[str, Any]],
    question: Question,
    tell: Callable[[str], None],
) -> Answer:
    """`stored`: the expanded documents that the realm keeps. `tell` gets each step in words."""
    documents = by_digest(stored)
    own = {tables["digest"]: ExpandedTables(tables) for tables in documents if digest_of(tables) == tables["digest"]}
    altered = {tables["digest"] for tables in documents} - own.keys()
    records = landed_records(spark, landed, "outcomes")
    window = question.window
    tell("counting what was decided")
    decisions = counted.named(counted.counted(records, window.since, window.until), own, question.tables).persist()
    answer = Answer(own=own)
    numbers: dict[tuple[str, str | None, Verdict], int] = {}
    changed: list[tuple[str | int | None, ...]] = []
    for row in counted.combinations(decisions).collect():
        number = _decided(row, answer, numbers, altered, question)
        if number is not None:
            changed.append((*(row[name] for name in counted.COMBINATION), number))
    tell("naming nodes and peers of what is not alike")
    if changed:
        _name(decisions, local_table(spark, changed, counted.COMBINATION_DDL), answer, question.lines)
    decisions.unpersist()
    answer.changes.sort(key=lambda change: (change.verdict.kind, -change.count, change.what, str(change.verdict)))
    return answer


def _decided(
    row: Any,
    answer: Answer,
    numbers: dict[tuple[str, str | None, Verdict], int],
    altered: set[str],
    question: Question,
) -> int | None:
    """The number of its change; None where there is none."""
    if row["torn"]:
        answer.unreadable += row["rows"]
        if row["what"] != DELIVERY:
            return None  # else its deliveries are there to be counted
    if not row["count"] and not row["left_out"]:
        return None
    answer.at_first = min(answer.at_first or row["at_first"], row["at_first"])
    answer.at_last = max(answer.at_last, row["at_last"])
    if row["left_out"]:
        answer.left_out[row["what"]] += row["left_out"]
    if not row["count"]:
        return None
    recorded = Recorded(*(row[name] for name in counted.COMBINATION))
    totals = answer.deliveries if recorded.is_delivery else answer.others
    if recorded.is_delivery:
        answer.digests[recorded.digest or ""] += row["count"]
    verdict = _verdict(recorded, answer, altered, question, question.assumed)
    if question.assumed and verdict.kind != "undecided":
        totals.assumed += row["count"] * (_verdict(recorded, answer, altered, question, {}).kind == "undecided")
    totals.add(verdict, row["count"])
    if verdict.kind == "alike":
        return None
    key = recorded.what, recorded.direction, verdict
    if key not in numbers:
        numbers[key] = len(answer.changes)
        answer.changes.append(Changed(*key))
    answer.changes[numbers[key]].count += row["count"]
    return numbers[key]


def _verdict(
    recorded: Recorded, answer: Answer, altered: set[str], question: Question, assumed: Mapping[str, str]
) -> Verdict:
    own = answer.own.get(recorded.digest or "")
    if recorded.table is None:
        no_table = Verdict("undecided", reason="the record does not say which table decided")
        return no_table if recorded.is_delivery else ALIKE  # no table decided what is none
    if own is None:
        words = "were changed afterwards (reconcile: G2)" if recorded.digest in altered else "are not stored"
        return Verdict("undecided", reason=f"the tables under digest {recorded.digest} {words}")
    if recorded.table not in CHAINS:
        return Verdict("undecided", reason=f"table {recorded.table} is not known here")
    return decide(recorded, own, question.tables, assumed)


def _name(decisions: DataFrame, changes: DataFrame, answer: Answer, most: int) -> None:
    for row in counted.lines(decisions, changes, most).collect():
        change = answer.changes[row["change"]]
        change.of = row["of"]
        change.lines.append(Line(row["node"], row["user"], row["container"], row["count"], row["example"].asDict()))
