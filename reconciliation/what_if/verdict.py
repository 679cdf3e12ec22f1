"""The verdict on one recorded combination: other tables decide it alike, differently, or it cannot be decided, because
the answer depends on a fact that no record contains.

A fact that is not recorded does not matter where every value of it gives the same difference. Where it matters, the
verdict names it, with what each of its values would have led to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reconciliation.what_if.chain import CHAINS, Effects, Told
from reconciliation.what_if.expanded_tables import ExpandedTables, ImpossibleFacts, Undecided, differing
from reconciliation.what_if.recorded import Recorded
from reconciliation.what_if.worlds import World, worlds

Kind = Literal["alike", "differs", "undecided"]
Choice = tuple[tuple[str, str], ...]
"""A value of each fact that is not recorded and matters."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that was done or told, and what would have been; `new` None: no record contains that."""

    name: str
    old: str
    new: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """From one set of tables to the other. `effects` empty and no `unrecorded`: none. `unrecorded`: what no record
    contains of the new result; then the new outcome is not known. `problem`: why the others cannot decide."""

    old_rules: str
    new_rules: str
    effects: tuple[Effect, ...] = ()
    unrecorded: str = ""
    problem: str = ""

    @property
    def difference(self) -> tuple[object, ...]:
        """Without the names of rules."""
        return self.effects, self.unrecorded, self.problem

    @property
    def is_none(self) -> bool:
        return not any(self.difference)


@dataclass(frozen=True, slots=True)
class Alternative:
    """What these values of facts that are not recorded would have led to."""

    choices: tuple[Choice, ...]
    change: Change


@dataclass(frozen=True, slots=True)
class Verdict:
    """`renamed`: alike, by a rule of another name. `missing`: the facts on which it depends."""

    kind: Kind
    change: Change | None = None
    missing: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    reason: str = ""
    renamed: bool = False


ALIKE, RENAMED = Verdict("alike"), Verdict("alike", renamed=True)


def decide(
    recorded: Recorded, own: ExpandedTables, other: ExpandedTables, assumed: Mapping[str, str] | None = None
) -> Verdict:
    """`own`: the tables under the recorded digest."""
    try:
        possible = worlds(recorded, own, other, assumed or {})
        _asked_alike(recorded, own, other)
    except Undecided as error:
        return Verdict("undecided", reason=str(error))
    changes = [(world, _change(recorded, world, other)) for world in possible]
    decided = [(world, change) for world, change in changes if change is not None]
    if not decided:
        return Verdict("undecided", reason="the other tables declare the recorded facts impossible")
    if all(change.is_none for _, change in decided):
        return RENAMED if any(change.old_rules != change.new_rules for _, change in decided) else ALIKE
    if len({change.difference for _, change in decided}) > 1:
        return _undecided(decided)
    change = decided[0][1]
    return Verdict("undecided", change, reason=change.problem) if change.problem else Verdict("differs", change)


def _asked_alike(recorded: Recorded, own: ExpandedTables, other: ExpandedTables) -> None:
    """The realm refused an attach: what it was asked for has no record. Raises Undecided where the other tables may
    have asked for something else."""
    if recorded.what == "attach" and recorded.table == "attached":
        direction = {"direction": recorded.direction} if recorded.direction else {}
        if differing(own, other, "attach", **direction):
            raise Undecided("what the attach asked for is not recorded, and table attach is another one")


def _change(recorded: Recorded, world: World, other: ExpandedTables) -> Change | None:
    """None: the other tables declare that it cannot have been so."""
    chain, _ = CHAINS[recorded.table or ""]
    try:
        new = chain(other, recorded, world.facts)
    except ImpossibleFacts:
        return None
    except Undecided as error:
        return Change(world.own.first.label, "", problem=str(error))
    old = _as_recorded(world.own.effects, recorded)
    old_rules, new_rules = _labels(_rules_as_recorded(world.own, recorded), new.rules)
    shown = {**new.effects, **({"outcome": None} if new.unrecorded and "outcome" in old else {})}
    effects = [Effect(name, was, shown[name]) for name, was in old.items() if name in shown and shown[name] != was]
    return Change(old_rules, new_rules, tuple(effects), new.unrecorded)


def _as_recorded(effects: Effects, recorded: Recorded) -> Effects:
    """What the record says goes before what its tables say."""
    if not recorded.is_delivery:
        return effects
    fields = {"operation": recorded.operation, "outcome": recorded.outcome, "condition": recorded.condition}
    fields["class"] = recorded.severity
    return {**effects, **{name: value or "none" for name, value in fields.items()}}


def _rules_as_recorded(decision: Told, recorded: Recorded) -> dict[str, str]:
    steps = ((recorded.table, recorded.rule), (recorded.answer_table, recorded.answer_rule))
    return {**decision.rules, **{table: f"{table}.{rule}" for table, rule in steps if table is not None}}


def _labels(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, str]:
    """The rules that are others; of the same rules the last one, which says something else now."""
    others = [table for table in old if table in new and old[table] != new[table]]
    if others:
        return " + ".join(old[table] for table in others), " + ".join(new[table] for table in others)
    return list(old.values())[-1], list(new.values())[-1]


def _undecided(decided: Sequence[tuple[World, Change]]) -> Verdict:
    missing = _mattering(decided)
    groups: dict[tuple[object, ...], tuple[Change, dict[Choice, None]]] = {}
    for world, change in decided:
        choice = tuple((name, world.unrecorded[name]) for name in missing)
        groups.setdefault(change.difference, (change, {}))[1][choice] = None
    alternatives = tuple(Alternative(tuple(choices), change) for change, choices in groups.values())
    return Verdict("undecided", missing=missing, alternatives=alternatives)


def _mattering(decided: Sequence[tuple[World, Change]]) -> tuple[str, ...]:
    """The facts of which another value, all else alike, leads to another change; where no single one does, all that
    vary."""
    names = list(decided[0][0].unrecorded)
    mattering = []
    for name in names:
        by_rest: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
        for world, change in decided:
            rest = tuple(value for other, value in world.unrecorded.items() if other != name)
            by_rest.setdefault(rest, set()).add(change.difference)
        if any(len(changes) > 1 for changes in by_rest.values()):
            mattering.append(name)
    varying = (name for name in names if len({world.unrecorded[name] for world, _ in decided}) > 1)
    return tuple(mattering or varying)
