"""Counted combinations of what deliveries met, on the driver, and what is wrong with them (A3, A12), or cannot be
checked (Q1)."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

TERMINAL = ("acknowledge", "discard", "dead-letter")
"""What ends an event because its consumer said so: the outcome record and the journal both have it."""


KEYS = (
    "direction", "node", "store", "durable", "digest", "table", "cell", "rule",
    "answer_table", "answer_cell", "answer_rule",
    "operation", "cause", "answer", "native", "outcome", "condition", "class", "presettled",
)  # fmt: skip
"""What deliveries of a combination have in common."""


@dataclass(frozen=True, slots=True)
class Example:
    """The first delivery of a combination."""

    at: int
    run: str
    seq: int
    eid: int
    link: str | None
    container: str | None


@dataclass(frozen=True, slots=True)
class Tally:
    """Deliveries that have all of this in common. `inside`: within the window. `mismatch`: what is not by the rule."""

    direction: str
    node: str | None
    store: int | None
    durable: str | None
    digest: str
    table: str
    cell: int
    rule: str | None
    answer_table: str | None
    answer_cell: int | None
    answer_rule: str | None
    operation: str
    cause: str | None
    answer: str | None
    native: str | None
    outcome: str
    condition: str | None
    severity: str | None  # the rule's class: fatal or transient
    presettled: bool
    inside: bool
    count: int
    at_first: int
    at_last: int
    mismatch: str | None
    example: Example

    @classmethod
    def of(cls, row: Any) -> Tally:
        values = row.asDict(recursive=True)
        values["severity"] = values.pop("class")
        values["presettled"] = bool(values["presettled"])
        values["example"] = Example(**values["example"])
        return cls(**{name: values[name] for name in cls.__dataclass_fields__})


def tally_findings(tallies: Iterable[Tally]) -> list[dict[str, Any]]:
    findings = []
    for tally in tallies:
        if tally.inside and tally.mismatch:
            findings.append(_finding(tally, "A3", tally.mismatch))
        if tally.inside and is_expected_loss(tally):
            went = tally.answer or "not asked for"
            findings.append(_finding(tally, "A12", f"pre-settled {tally.direction}; the realm's answer: {went}"))
    return findings


def unknown_cells(
    tallies: Iterable[Tally], cells: Set[tuple[str, str, int]], digests: Set[str]
) -> list[dict[str, Any]]:
    """Q1 for each combination that names a cell in which the stored tables have no rule: there is nothing to hold it
    against. `cells`: digest, table and cell of all that have one. Tables that are not stored are a finding of their
    own."""
    findings = []
    for tally in tallies:
        if tally.digest and tally.digest not in digests:
            continue
        answer = (tally.answer_table, tally.answer_cell)
        for table, cell in ((tally.table, tally.cell), *(() if answer == (None, None) else (answer,))):
            if (tally.digest, table, cell) not in cells:
                text = f"the tables under digest {tally.digest} have no rule in cell {cell} of table {table}"
                findings.append(_finding(tally, "Q1", f"{text}, by which it was decided"))
    return findings


def is_expected_loss(tally: Tally) -> bool:
    """Pre-settled, and not stored or not acknowledged. A plain subscription acknowledges nothing: there is nothing to
    lose."""
    if not tally.presettled:
        return False
    if tally.direction == "publish":
        return tally.answer != "stored"
    return tally.operation != "none" and (tally.operation != "acknowledge" or tally.answer != "done")


def _finding(tally: Tally, code: str, detail: str) -> dict[str, Any]:
    example = tally.example
    return {
        "class": code,
        "node": tally.node,
        "durable": tally.durable,
        "store": tally.store,
        "eid": example.eid if example.eid is not None and example.eid >= 0 else None,
        "run": example.run,
        "seq": example.seq,
        "link": example.link,
        "container": example.container,
        "rule": tally.answer_rule or tally.rule,
        "count": tally.count,
        "at": example.at,
        "detail": detail,
    }
