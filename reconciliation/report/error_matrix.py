"""Errors by AMQP condition and native code: which answer of the realm became which condition, how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciliation.model.tally import Tally

_NO_ERROR = ("stored", "done", None)


@dataclass(slots=True)
class Cell:
    """Deliveries that met one condition by one native code. `severity` is the rules' class: fatal, transient or
    none."""

    count: int = 0
    severity: str = "none"
    at_last: int = 0
    nodes: set[str] = field(default_factory=set)


def error_cells(tallies: Iterable[Tally]) -> dict[tuple[str, str], Cell]:
    """By (condition, native code), within the window. Without a native code stands the realm's answer, or `decided at
    once`."""
    cells: dict[tuple[str, str], Cell] = {}
    for one in tallies:
        if not one.inside or (one.condition is None and one.answer in _NO_ERROR):
            continue
        native = f"{one.answer} {one.native}" if one.native else one.answer or "decided at once"
        cell = cells.setdefault((one.condition or "no condition", native), Cell())
        cell.count += one.count
        cell.at_last = max(cell.at_last, one.at_last)
        cell.nodes.add(one.node or "")
        cell.severity = "fatal" if "fatal" in (cell.severity, one.severity) else one.severity or cell.severity
    return cells
