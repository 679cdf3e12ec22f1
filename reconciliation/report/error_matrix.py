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
    for tally in tallies:
        if not tally.inside or (tally.condition is None and tally.answer in _NO_ERROR):
            continue
        is_code = tally.native is not None and len(tally.native.split()) == 1
        code = tally.native if is_code and tally.native else tally.answer or "decided at once"
        cell = cells.setdefault((tally.condition or "no condition", code), Cell())
        cell.count += tally.count
        cell.at_first = min(cell.at_first, tally.at_first)
        cell.at_last = max(cell.at_last, tally.at_last)
        cell.nodes.add(tally.node or "")
        if tally.native and not is_code:
            cell.words.add(tally.native)
        cell.severity = "fatal" if "fatal" in (cell.severity, tally.severity) else tally.severity or cell.severity
    return cells
