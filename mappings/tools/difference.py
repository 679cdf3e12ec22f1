"""What a change of tables changes, in words: two sets of expanded tables, compared combination by combination, and the
combinations that change alike as one group.

Expanded tables are read from compiled rules, from `expanded/*.tsv` of a folder, or from those of a git revision; so a
revision whose vocabulary was another one can be compared too. An axis that only one side has is compared for each of
its values.

Source: docs/cli.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mappings.language.vocabulary import NODE_CLASS

ERRORS = "error"  # the table of native errors: it follows from others, and a side may be without it
_VALUES_MAX = 12  # of an axis are listed one by one
CLASSES = ("", "classify")  # where a side keeps the patterns of names: they are the same in every profile

_OF_ERRORS = {"was impossible": "is new", "is impossible now": "is gone"}

Facts = tuple[tuple[str, str], ...]  # axis, value; in the table's order
Cells = Mapping[Facts, tuple[str, str]]  # combination -> rule, then


@dataclass(frozen=True, slots=True)
class Expanded:
    """One table in one profile: every possible combination."""

    axes: tuple[str, ...]
    cells: Cells


@dataclass(slots=True)
class Group:
    """Combinations of one table that change in the same way."""

    table: str
    change: str
    behaviour: bool  # False: only the rule's name is another
    profiles: list[str] = field(default_factory=list)
    combinations: list[Facts] = field(default_factory=list)


def read_expanded(text: str) -> Expanded:
    """One `.tsv`."""
    header, *lines = text.rstrip("\n").split("\n")
    axes = tuple(header.split("\t")[1:-2])
    cells: dict[Facts, tuple[str, str]] = {}
    for line in lines:
        _, *values, rule, then = line.split("\t")
        cells[tuple(zip(axes, values, strict=True))] = (rule, then)
    return Expanded(axes, cells)


def compare(old: Mapping[tuple[str, str], Expanded], new: Mapping[tuple[str, str], Expanded]) -> list[Group]:
    """Both by (profile, table). Groups in the order of the new tables."""
    groups: dict[tuple[object, ...], Group] = {}
    for key in (*new, *(key for key in old if key not in new)):
        profile, table = key
        if key == CLASSES or (table == ERRORS and (key not in old or key not in new)):
            continue
        by_change: dict[tuple[str, bool], list[Facts]] = {}
        was, now = old.get(key), new.get(key)
        if table == ERRORS and was is not None and now is not None:
            was, now = _as_fine_as(was, now), _as_fine_as(now, was)
        for facts, change, behaviour in _changes(was, now):
            change = _OF_ERRORS.get(change, change) if table == ERRORS else change
            by_change.setdefault((change, behaviour), []).append(facts)
        for (change, behaviour), combinations in by_change.items():
            alike = (table, change, behaviour, tuple(combinations))
            group = groups.setdefault(alike, Group(table, change, behaviour, combinations=combinations))
            group.profiles.append(profile)
    return [*_classified_otherwise(old.get(CLASSES), new.get(CLASSES)), *groups.values()]


def _as_fine_as(side: Expanded, other: Expanded) -> Expanded:
    """Errors with one answer whatever the facts, where the other side distinguishes facts: a line for each of them.
    Which facts matter is the last of a line's own."""
    apart: dict[Facts, list[Facts]] = {}
    for facts in other.cells:
        apart.setdefault(facts[:-1], []).append(facts)
    cells: dict[Facts, tuple[str, str]] = {}
    for facts, cell in side.cells.items():
        alike = apart.get(facts[:-1], []) if not facts[-1][1] else []
        cells.update(dict.fromkeys(alike or [facts], cell))
    return Expanded(side.axes, cells)


def read_classes(text: str) -> Expanded:
    """`classify.tsv`."""
    rows = [line.split("\t") for line in text.rstrip("\n").split("\n")[1:]]
    cells: Cells = {(("names", names), ("unless", unless)): (rule, then) for names, unless, rule, then in rows}
    return Expanded(("names", "unless"), cells)


def _classified_otherwise(old: Expanded | None, new: Expanded | None) -> list[Group]:
    """Patterns whose names have another class or transformer now: pattern by pattern, as they are written."""
    was, now = ({} if side is None else side.cells for side in (old, new))
    groups: dict[str, Group] = {}
    for facts in (*now, *(facts for facts in was if facts not in now)):
        before, after = (side.get(facts, ("", "node_class=default"))[1] for side in (was, now))
        if before != after:
            change = _in_words(before, after).replace("nothing", "as configured")
            group = groups.setdefault(change, Group(CLASSES[1], change, behaviour=True, profiles=[CLASSES[0]]))
            group.combinations.append(facts)
    return list(groups.values())


def _changes(old: Expanded | None, new: Expanded | None) -> Iterable[tuple[Facts, str, bool]]:
    if old is None or new is None:
        yield (), "the table is new" if old is None else "the table is gone", True
        return
    common = [axis for axis in new.axes if axis in old.axes]
    before, after = _on_axes(old, common), _on_axes(new, common)
    for facts in (*after, *(facts for facts in before if facts not in after)):
        was, now = before.get(facts), after.get(facts)
        if was is None or now is None:
            yield facts, "was impossible" if was is None else "is impossible now", True
            continue
        for mine, (rule, then) in now:
            for _, (old_rule, old_then) in was:
                if then != old_then:
                    yield mine, _in_words(old_then, then), True
                elif rule != old_rule:
                    yield mine, f"rule {old_rule} -> {rule}, to the same effect", False


def _on_axes(table: Expanded, common: list[str]) -> dict[Facts, list[tuple[Facts, tuple[str, str]]]]:
    cells: dict[Facts, list[tuple[Facts, tuple[str, str]]]] = {}
    for facts, cell in table.cells.items():
        given = dict(facts)
        cells.setdefault(tuple((axis, given[axis]) for axis in common), []).append((facts, cell))
    return cells


def _in_words(old: str, new: str) -> str:
    """`native: return -> discard, outcome: ...`."""
    was, now = _pairs(old), _pairs(new)
    keys = [key for key in (*was, *(key for key in now if key not in was)) if was.get(key) != now.get(key)]
    return ", ".join(f"{key}: {was.get(key, 'nothing')} -> {now.get(key, 'nothing')}" for key in keys)


def _pairs(then: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in then.split(" ")) if then else {}


def write_groups(groups: Iterable[Group], *sides: Mapping[tuple[str, str], Expanded]) -> list[str]:
    """A paragraph for each group."""
    lines = []
    for group in groups:
        if group.profiles == [CLASSES[0]]:
            lines.append(f"classify: {', '.join(_pattern(*facts) for facts in group.combinations)}: {group.change}")
            continue
        where = f"{group.table} in {', '.join(group.profiles)}"
        if group.combinations == [()]:
            lines.append(f"{where}: {group.change}")
            continue
        count = len(group.combinations)
        facts = _facts_in_words(group.combinations, _possible(group, sides))
        what = "case" if group.table == ERRORS else "combination"
        lines.append(f"{where}: {count} {what}{'s' if count > 1 else ''}: {facts}")
        lines.append(f"  {group.change}")
    return lines


def _pattern(names: tuple[str, str], unless: tuple[str, str]) -> str:
    return names[1] + (f" (unless {unless[1]})" if unless[1] != "[]" else "")


def _facts_in_words(combinations: list[Facts], possible: set[Facts]) -> str:
    """What the combinations have in common: the values of each axis that is not open. Where others have that too, it
    says so."""
    hit = [set(column) for column in zip(*combinations, strict=True)]
    known = [{column[at] for column in possible} for at in range(len(hit))]
    parts = []
    for column, all_of_it in zip(hit, known, strict=True):
        if column != all_of_it and not all(value == "" for _, value in column):
            in_order = dict.fromkeys(pair for facts in combinations for pair in facts if pair in column)
            axis = next(iter(column))[0]
            label = "for class" if axis == NODE_CLASS else axis
            parts.append(f"{label} {_listed([value or 'nothing' for _, value in in_order])}")
    alike = sum(all(pair in column for pair, column in zip(facts, hit, strict=True)) for facts in possible)
    return ("" if alike == len(combinations) else "some of ") + (", ".join(parts) or "whatever the facts")


def _listed(values: list[str]) -> str:
    if len(values) > _VALUES_MAX:
        values = [*values[: _VALUES_MAX // 2], f"{len(values) - _VALUES_MAX // 2} more"]
    return " or ".join(values)


def _possible(group: Group, sides: Iterable[Mapping[tuple[str, str], Expanded]]) -> set[Facts]:
    """The possible combinations of a group's table, with its axes."""
    axes = tuple(axis for axis, _ in group.combinations[0])
    cases = {facts for side in sides for (_, name), grid in side.items() if name == group.table for facts in grid.cells}
    return {facts for facts in cases if tuple(axis for axis, _ in facts) == axes} | set(group.combinations)
