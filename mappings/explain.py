"""Why: the rule that decides given facts, where it is written, its reason and its source. With some facts left open,
what each open value would lead to. Asks the same compiled table as the gateway.

Errors: `UnknownFact` for a table, axis or value that does not exist, with the likeliest one that does.
May import: the standard library, `mappings`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mappings.compile import Decision, Table
from mappings.expand import write_then
from mappings.rules import Rule, TableRules, write_facts
from mappings.yaml_lines import suggest


class UnknownFact(Exception):
    """A word that the tables do not have."""


def explain(rules: TableRules, table: Table, profile: str, facts: Mapping[str, str]) -> list[str]:
    """Lines of text. `facts` may leave axes open."""
    for axis, value in facts.items():
        known("axis", axis, table.axes)
        known(axis, value, table.axes[axis])
    written = {rule.id: rule for rule in rules.profiles[profile].rules}
    heading = f"table {table.name}, profile {profile}"
    if facts.keys() == table.axes.keys():
        cell = table.index(**facts)
        lines = [f"{heading}, cell {cell}", f"  {write_facts({axis: facts[axis] for axis in table.axes})}"]
        decision = table.cells[cell]
        return lines + (_impossible(rules, cell, table) if decision is None else _why(written[decision.rule]))
    return [heading, f"  {write_facts(facts) or 'nothing given'}", *_open(table, facts, written)]


def known(what: str, word: str, words: Collection[str]) -> None:
    """Raise `UnknownFact` for a word that is not one of these."""
    if word not in words:
        raise UnknownFact(f"there is no {what} {word}; {suggest(word, words)}")


def _why(rule: Rule) -> list[str]:
    return [
        f"rule {rule.id} ({rule.place})",
        f"  then     {write_then(rule.then)}",
        f"  because  {rule.because}",
        f"  source   {', '.join(rule.sources)}",
    ]


def _impossible(rules: TableRules, cell: int, table: Table) -> list[str]:
    positions = [table.axes[axis].index(value) for axis, value in table.facts(cell).items()]
    return [
        f"impossible ({rules.file}:{item.line})\n  because  {item.because}"
        for item in rules.impossible
        if all(mask >> at & 1 for mask, at in zip(item.box, positions, strict=True))
    ][:1]


def _open(table: Table, facts: Mapping[str, str], written: Mapping[str, Rule]) -> list[str]:
    """What each value of each open axis can still be decided by; then the rules that this leaves."""
    lines: list[str] = []
    hit: dict[str, None] = {}
    for axis, values in table.axes.items():
        if axis in facts:
            continue
        lines.append(f"{axis}")
        for value in values:
            decided = _rules(table.slice(**facts, **{axis: value}).cells)
            hit |= dict.fromkeys(decided)
            lines.append(f"  {value:<30} {', '.join(decided) or 'impossible'}")
    lines.append("rules")
    lines.extend(f"  {rule:<30} {write_then(written[rule].then)}" for rule in hit)
    return lines


def _rules(cells: tuple[Decision | None, ...]) -> list[str]:
    return list(dict.fromkeys(decision.rule for decision in cells if decision is not None))
