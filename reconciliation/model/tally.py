"""Counted combinations of what deliveries met, on the driver, and what is wrong with them (A3, A12), or cannot be
checked (Q1)."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

TERMINAL = ("acknowledge", "discard", "dead-letter")
"""What ends an event because its consumer said so: the outcome record and the journal both have it."""


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
    found = []
    for one in tallies:
        if one.inside and one.mismatch:
            found.append(_finding(one, "A3", one.mismatch))
        if one.inside and is_expected_loss(one):
            went = one.answer or "not asked for"
            found.append(_finding(one, "A12", f"pre-settled {one.direction}; the realm's answer: {went}"))
    return found


def unknown_cells(
    tallies: Iterable[Tally], cells: Set[tuple[str, str, int]], digests: Set[str]
) -> list[dict[str, Any]]:
    """Q1 for each combination that names a cell in which the stored tables have no rule: there is nothing to hold it
    against. `cells`: digest, table and cell of all that have one. Tables that are not stored are a finding of their
    own."""
    found = []
    for one in tallies:
        if one.digest and one.digest not in digests:
            continue
        answer = (one.answer_table, one.answer_cell)
        for table, cell in ((one.table, one.cell), *(() if answer == (None, None) else (answer,))):
            if (one.digest, table, cell) not in cells:
                text = f"the tables under digest {one.digest} have no rule in cell {cell} of table {table}"
                found.append(_finding(one, "Q1", f"{text}, by which it was decided"))
    return found


def is_expected_loss(one: Tally) -> bool:
    """Pre-settled, and not stored or not acknowledged. A plain subscription acknowledges nothing: there is nothing to
    lose."""
    if not one.presettled:
        return False
    if one.direction == "publish":
        return one.answer != "stored"
    return one.operation != "none" and (one.operation != "acknowledge" or one.answer != "done")


def _finding(one: Tally, code: str, detail: str) -> dict[str, Any]:
    example = one.example
    return {
        "class": code,
        "node": one.node,
        "durable": one.durable,
        "store": one.store,
        "eid": example.eid if example.eid >= 0 else None,
        "run": example.run,
        "seq": example.seq,
        "link": example.link,
        "container": example.container,
        "rule": one.answer_rule or one.rule,
        "count": one.count,
        "at": example.at,
        "detail": detail,
    }
