"""What the words of the mapping tables are made of: axes, what `then` may say, laws; and the words that several tables
share.

A *law* forbids a `then` that no sender of frames could carry out, or that would be a lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

Value = str | bool | None
NODE_CLASS = "node_class"  # the axis that a table file may have before its own

# AMQP 1.0 Part 2 (2.8.15 to 2.8.18) and Part 4 (4.5.8)
CONDITIONS = (
    "amqp:internal-error",
    "amqp:not-found",
    "amqp:unauthorized-access",
    "amqp:decode-error",
    "amqp:resource-limit-exceeded",
    "amqp:not-allowed",
    "amqp:invalid-field",
    "amqp:not-implemented",
    "amqp:resource-locked",
    "amqp:precondition-failed",
    "amqp:resource-deleted",
    "amqp:illegal-state",
    "amqp:frame-size-too-small",
    "amqp:connection:forced",
    "amqp:connection:framing-error",
    "amqp:connection:redirect",
    "amqp:session:window-violation",
    "amqp:session:errant-link",
    "amqp:session:handle-in-use",
    "amqp:session:unattached-handle",
    "amqp:link:detach-forced",
    "amqp:link:transfer-limit-exceeded",
    "amqp:link:message-size-exceeded",
    "amqp:link:redirect",
    "amqp:link:stolen",
    "amqp:transaction:unknown-id",
    "amqp:transaction:rollback",
    "amqp:transaction:timeout",
)


@dataclass(frozen=True, slots=True)
class Word:
    """A key of `then`: what it may say, and what it says when it is left out (no default: it must be written)."""

    values: tuple[Value, ...]
    default: tuple[Value, ...] = ()  # empty, or one value

    @property
    def required(self) -> bool:
        return not self.default


@dataclass(frozen=True, slots=True)
class Law:
    """Where `then` says `given`, it must say `then` too, and the rule may hold for `facts` only."""

    says: str
    given: Mapping[str, tuple[Value, ...]]
    then: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableWords:
    """One table: axes in order (first slowest), the keys of `then` in order, and the laws. `of_node`: it decides about
    one node, so its rules may speak of the node's class."""

    name: str
    axes: Mapping[str, tuple[str, ...]]
    then: Mapping[str, Word]
    laws: tuple[Law, ...] = ()
    of_node: bool = True

    def by_class(self, node_classes: tuple[str, ...]) -> TableWords:
        """The same with the class as its slowest axis."""
        return replace(self, axes={NODE_CLASS: node_classes, **self.axes})


NOTHING: tuple[Value, ...] = (None,)
FLAG: tuple[Value, ...] = (False, True)
CONDITION = Word((None, *CONDITIONS), NOTHING)
CLASS = Word((None, "fatal", "transient"), NOTHING)
SETTLES = Word(FLAG)
TRANSACTION = Word(("keep", "doom"), ("keep",))

NO_YES = ("no", "yes")
LISTED = ("agreed", "unlisted")  # whether an outcome is among those that the peer's source lists
UNLISTABLE = ("rejected", "released")  # the axes that say so, each of the outcome of its name

CLASS_LAWS = (
    Law("a fatal answer closes the link with a condition", {"class": ("fatal",)}, {"condition": CONDITIONS}),
    Law("a condition needs a class", {"condition": CONDITIONS}, {"class": ("fatal", "transient")}),
)


def told_unsettled_only(*outcomes: str) -> Law:
    """For tables in which a delivery may have come settled."""
    says = "a presettled delivery gets no outcome"
    return Law(says, {"outcome": outcomes}, {}, {"presettled": ("no",)})


def listed_only(outcome: str) -> Law:
    """For tables with an axis of that name."""
    return Law("only an outcome that was agreed on is given", {"outcome": (outcome,)}, {}, {outcome: ("agreed",)})


def accepted_when(says: str, answer: str, **then: tuple[Value, ...]) -> Law:
    """For tables about an answer of the realm: `accepted` would be a lie for any other."""
    return Law(
        says, {"outcome": ("accepted",)}, {"condition": NOTHING, "class": NOTHING, **then}, {"answer": (answer,)}
    )
