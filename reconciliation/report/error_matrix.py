"""Errors by AMQP condition and native code: which code of the log, or answer of the realm, became which condition, how
often, and since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciliation.model.tally import Tally

_NO_ERROR = ("stored", "done", None)


@dataclass(slots=True)
class Cell:
    """Deliveries that met one condition by one code. `severity` is the rules' class: fatal, transient or none. `words`:
    what the log said, where that was more than a code."""

    count: int = 0
    severity: str = "none"
    at_first: int = 1 << 62
    at_last: int = 0
    nodes: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)


def error_cells(tallies: Iterable[Tally]) -> dict[tuple[str, str], Cell]:
    """By (condition, code), within the window. Where the log gave no code (one word, as `_MSG_TIMED_OUT`), the realm's
    answer stands for it, or `decided at once`."""
    cells: dict[tuple[str, str], Cell] = {}
    for one in tallies:
        if not one.inside or (one.condition is None and one.answer in _NO_ERROR):
            continue
        is_code = one.native is not None and len(one.native.split()) == 1
        code = one.native if is_code and one.native else one.answer or "decided at once"
        cell = cells.setdefault((one.condition or "no condition", code), Cell())
        cell.count += one.count
        cell.at_first = min(cell.at_first, one.at_first)
        cell.at_last = max(cell.at_last, one.at_last)
        cell.nodes.add(one.node or "")
        if one.native and not is_code:
            cell.words.add(one.native)
        cell.severity = "fatal" if "fatal" in (cell.severity, one.severity) else one.severity or cell.severity
    return cells
