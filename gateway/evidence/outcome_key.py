"""What the deliveries of one group of outcomes share: the key that outcome records group them by.

Records: docs/records.md "Outcomes".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from mappings import Decision

TOO_LARGE: Final = "too-large"
"""The cause of what is not given to a consumer, which takes no messages of that size."""
TOO_LARGE_FAULT: Final = "too-large-for-the-consumer"
_GIVES_UP: Final = ("dead-letter", "discard")


def class_of(rule: Decision) -> str | None:
    """Whether sending again may help, for counters, records and lists alike. A table that knows no class ends the link,
    session or connection where it names a condition."""
    klass: str | None = rule.then.get("class", "fatal" if rule.then.get("condition") else None)
    return klass


@dataclass(slots=True)
class LastOutcome:
    """Of one link, whatever its stores. Microseconds since 1970; 0: it had none yet."""

    at_us: int = 0


@dataclass(slots=True)
class LinkIdentity:
    """What an outcome record says of a link. `number` is unique in a run. `user` and `address` are its peer's, `counts`
    its deliveries by outcome, `totals` those of its connection by direction and outcome, `last` when it had one last:
    for operators."""

    number: int
    direction: str
    name: str
    container: str
    node: str | None = None
    store: int | None = None
    durable: str | None = None
    user: str = ""
    address: str = ""
    counts: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    totals: Counter[tuple[str, str]] = field(default_factory=Counter, compare=False, repr=False)
    last: LastOutcome = field(default_factory=LastOutcome, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeKey:
    """All that deliveries of one group share. Links keep theirs, so that a group is found by identity."""

    link: LinkIdentity
    rule: Decision
    answer_rule: Decision | None
    operation: str
    cause: str
    answer: str | None
    native: str | None
    outcome: str
    condition: str | None
    klass: str | None
    presettled: bool
    stated: str = ""  # by a consumer

    @property
    def fault(self) -> str:
        """What counters and lists call it, where nothing failed at the realm; else empty."""
        return TOO_LARGE_FAULT if self.cause == TOO_LARGE else ""

    @property
    def deciding(self) -> Decision:
        """The rule that a reader should look up: of a fault, the one that knows it; else the last one that spoke."""
        return self.rule if self.fault or self.answer_rule is None else self.answer_rule

    @property
    def is_given_up(self) -> bool:
        """The consumer wants no attempt more: a dead letter, or nothing is kept."""
        return self.operation in _GIVES_UP

    def columns(self) -> dict[str, Any]:
        link, answer = self.link, self.answer_rule
        return {
            "direction": link.direction,
            "link": link.number,
            "name": link.name,
            "container": link.container,
            "user": link.user,
            "node": link.node,
            "store": link.store,
            "durable": link.durable,
            "table": self.rule.table,
            "cell": self.rule.cell,
            "rule": self.rule.rule,
            "answer_table": answer.table if answer else None,
            "answer_cell": answer.cell if answer else None,
            "answer_rule": answer.rule if answer else None,
            "operation": self.operation,
            "cause": self.cause,
            "answer": self.answer,
            "native": self.native,
            "outcome": self.outcome,
            "condition": self.condition,
            "class": self.klass,
            "presettled": int(self.presettled),
        }
