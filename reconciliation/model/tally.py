"""Counted combinations of what deliveries met, on the driver, and what is wrong with them (A3, A12)."""

from __future__ import annotations

from collections.abc import Iterable
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
