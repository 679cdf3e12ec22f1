"""What was found, condensed: the classes that occur, with their first examples, and the totals for the balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciliation.history.cause import Cause
from reconciliation.history.first_rows import FirstRows
from reconciliation.model.classes import is_anomaly
from reconciliation.report.balance import Key

EXAMPLES = 10


@dataclass(slots=True)
class ClassReport:
    """One class that occurs: how often (`count`: rows), where, and its first examples."""

    code: str
    count: int = 0
    nodes: set[str] = field(default_factory=set)
    first_eid: int | None = None
    last_eid: int | None = None
    _first: FirstRows = field(default_factory=lambda: FirstRows(EXAMPLES))

    @property
    def examples(self) -> list[dict[str, Any]]:
        return [{**row, "tag": tag(row)} for row in self._first.rows()]

    def add(self, row: dict[str, Any]) -> None:
        self.count += row["count"]
        if row["node"] is not None:
            self.nodes.add(row["node"])
        if row["eid"] is not None:
            self.first_eid = min(row["eid"], self.first_eid) if self.first_eid is not None else row["eid"]
            self.last_eid = max(row["eid"], self.last_eid or 0)
        self._first.add(row)


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything found, condensed: classes in their order (within the window), totals of all time for the balance.
    `causes`: the same once more, by what they have in common, in the order of classes."""

    classes: list[ClassReport]
    totals: Counter[Key]
    causes: list[Cause] = field(default_factory=list)

    @property
    def anomalous(self) -> list[Cause]:
        return [cause for cause in self.causes if is_anomaly(cause.code)]

    @property
    def open(self) -> int:
        """Messages of anomalies that are not acknowledged."""
        return sum(cause.open for cause in self.anomalous)

    def messages(self, code: str) -> int:
        """Of a class. They may be fewer than its rows: one message can be wrong at several of its deliveries."""
        return sum(cause.count for cause in self.causes if cause.code == code)

    def acknowledged(self, code: str) -> int:
        """So many messages of a class."""
        return sum(cause.count - cause.open for cause in self.causes if cause.code == code)


def tag(row: Mapping[str, Any]) -> str | None:
    """The delivery tag under which the peer knows it."""
    return f"{row['store']}:{row['eid']}" if row["store"] is not None and row["eid"] is not None else None
