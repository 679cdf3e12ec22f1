"""What records say of decisions that have everything in common but node, peer and time."""

from __future__ import annotations

from dataclasses import dataclass

DELIVERY = "delivery"
GONE = ("lost", "cut-off", "stopped", "rolled-back", "sent-settled", "too-large")
"""Causes of which the peer gets nothing: it has gone, or the delivery was settled before."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One combination. `what` is `delivery`, or what else was decided (docs/records.md, *decisions*); `own_naming` and
    `other_naming` are the rules of `classify` that name its node, under its own tables and under the others."""

    what: str
    direction: str | None
    digest: str | None
    table: str | None
    cell: int | None
    rule: str | None
    answer_table: str | None
    answer_cell: int | None
    answer_rule: str | None
    operation: str | None
    cause: str | None
    answer: str | None
    outcome: str | None
    condition: str | None
    severity: str | None  # the rule's class: fatal or transient
    presettled: int | None
    own_naming: str | None
    other_naming: str | None

    @property
    def steps(self) -> tuple[tuple[str | None, int | None], ...]:
        """The cells that decided."""
        first = (self.table, self.cell)
        return (first,) if self.answer_table is None else (first, (self.answer_table, self.answer_cell))

    @property
    def is_delivery(self) -> bool:
        return self.what == DELIVERY
