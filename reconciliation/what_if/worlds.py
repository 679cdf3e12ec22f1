"""What may have been: the facts of a recorded combination that its record contains, and each value that the others may
have had. Only those count under which the recorded tables decide as it is recorded; nothing is taken for likely.

What no record contains: whether a message came in several transfers, where the recorded tables put it together; whether
one more failed attempt would have been the last, where their rules do not ask; the default-outcome of a source; whether
an outcome was stated inside a transaction; whether another transformer makes an event of a message; and whatever axis
the recorded tables do not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from reconciliation.read.node_classes import AXIS
from reconciliation.what_if.chain import BY_DEFAULT, CHAINS, Told
from reconciliation.what_if.expanded_tables import ExpandedTables, Undecided
from reconciliation.what_if.recorded import GONE, Recorded

Values = dict[str, tuple[str, ...]]
"""Fact -> what it may have been."""
_ELSEWHERE = (AXIS, "state", "answer", "operation", "cause")
"""Axes that are known otherwise, or follow."""
_OF_POSTED, _OF_DEFAULT = "posted", "default"
_IN_TRANSACTION = ("transactional", "transactional-full", "transactional-unknown")
_OUTSIDE = ("silent", "sent-settled", "too-large")  # causes
TRANSFORMED = "transformed"


@dataclass(frozen=True, slots=True)
class World:
    """One way in which it may have been: `unrecorded` facts, what its own tables make of it, and the facts that the
    other tables see."""

    unrecorded: Mapping[str, str]
    own: Told
    facts: Mapping[str, str]


def worlds(recorded: Recorded, own: ExpandedTables, other: ExpandedTables, assumed: Mapping[str, str]) -> list[World]:
    """All that fit the record. `assumed`: of facts that it does not contain, where it allows that. Raises
    Undecided."""
    known = _known(recorded, own)
    possible = _possible(recorded, own, other, known)
    axes = {name: (assumed[name],) if assumed.get(name) in values else values for name, values in possible.items()}
    matches = list(_fitting(recorded, own, other, known, axes)) or list(_fitting(recorded, own, other, known, possible))
    if not matches:
        raise Undecided("the record does not agree with the tables that it names (reconcile: A3)")
    return matches


def _known(recorded: Recorded, own: ExpandedTables) -> dict[str, str]:
    """The facts that its cells stand for."""
    facts: dict[str, str] = {}
    for table, cell in recorded.steps:
        facts |= own.table(table or "").facts(-1 if cell is None else cell)
    facts.setdefault(AXIS, own.class_of(recorded.own_naming))
    return facts


def _fitting(
    recorded: Recorded, own: ExpandedTables, other: ExpandedTables, known: Mapping[str, str], possible: Values
) -> Iterator[World]:
    chain, _ = CHAINS[recorded.table or ""]
    node_class = other.class_of(recorded.other_naming)
    for choice in product(*possible.values()):
        unrecorded = dict(zip(possible, choice, strict=True))
        facts = {**known, **unrecorded}
        of_own = {**facts, TRANSFORMED: known[TRANSFORMED]} if TRANSFORMED in known else facts
        try:
            decision = chain(own, recorded, of_own)
        except Undecided:
            continue  # it cannot have been so
        if decision.steps == recorded.steps and not decision.unrecorded:
            yield World(unrecorded, decision, {**facts, AXIS: node_class})


def _possible(recorded: Recorded, own: ExpandedTables, other: ExpandedTables, known: dict[str, str]) -> Values:
    possible: Values = {}
    if recorded.table == "publish":
        possible = _of_publish(recorded, own, other, known)
    elif recorded.table == "settle":
        possible = _of_settle(recorded, known)
    for axis, values in _axes(recorded, own, other, known).items():
        if axis not in known and axis not in possible:
            possible[axis] = values
    return possible


def _axes(recorded: Recorded, own: ExpandedTables, other: ExpandedTables, known: Mapping[str, str]) -> Values:
    """All that the tables may ask for, with the values of both."""
    _, lookups = CHAINS[recorded.table or ""]
    unasked = {_OF_POSTED} if known.get("transactional", "no") == "no" else set()
    unasked |= {_OF_DEFAULT} if recorded.cause not in BY_DEFAULT else set()
    names = [name for name in lookups if name not in unasked]
    axes: Values = {}
    for tables in (own, other):
        for axis, values in tables.axes_of(*names).items():
            if axis not in _ELSEWHERE:
                axes[axis] = tuple(dict.fromkeys((*axes.get(axis, ()), *values)))
    return axes


def _of_publish(recorded: Recorded, own: ExpandedTables, other: ExpandedTables, known: dict[str, str]) -> Values:
    possible: Values = {}
    is_part = known.get("framing") == "partial"
    known["whole"] = "unknown" if is_part else "known"
    if not is_part:
        possible["framing"] = ("whole", "partial")
    transformers = own.transformer_of(recorded.own_naming), other.transformer_of(recorded.other_naming)
    if transformers[0] != transformers[1] and not is_part:
        possible[TRANSFORMED] = ("event", "null")
    return possible


def _of_settle(recorded: Recorded, known: dict[str, str]) -> Values:
    possible: Values = {"in_transaction": _transacted(recorded.cause, known.get("state"))}
    if known.get("attempts") == "below":
        possible["attempts"] = ("below", "last")
    if "peer_settled" not in known:
        heard = {"silent": ("no",), **dict.fromkeys(GONE, ("yes",))}
        possible["peer_settled"] = heard.get(recorded.cause or "", ("no", "yes"))
    return possible


def _transacted(cause: str | None, state: str | None) -> tuple[str, ...]:
    if state in _IN_TRANSACTION or cause in _OUTSIDE:
        return ("no",)
    return ("yes",) if cause == "rolled-back" else ("no", "yes")
