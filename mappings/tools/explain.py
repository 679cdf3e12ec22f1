"""Why: the rule that decides given facts, where it is written, its reason and its source; and the runners-up, each with
the one condition that failed. With some facts left open, what each open value would lead to. Asks the same compiled
table as the gateway.

Facts have been checked (`mappings.tools.facts`).
"""

from __future__ import annotations

from collections.abc import Mapping

from mappings.compiler.compile import Decision, Table
from mappings.language.classification import Classification
from mappings.language.rules import Rule, TableRules, values_in, write_facts
from mappings.tools.expand import write_then

_RUNNERS_UP = 5


def explain(rules: TableRules, table: Table, profile: str, facts: Mapping[str, str]) -> list[str]:
    """Lines of text. `facts` may leave axes open."""
    written = {rule.id: rule for rule in rules.profiles[profile].rules}
    facts = {axis: facts[axis] for axis in table.axes if axis in facts}
    heading = f"table {table.name}, profile {profile}"
    if facts.keys() == table.axes.keys():
        cell = table.cell(**facts)
        lines = [f"{heading}, cell {cell}", f"  {write_facts(facts)}"]
        decision = table.cells[cell]
        if decision is None:
            return lines + _impossible(rules, cell, table)
        return lines + _why(written[decision.rule]) + _runners_up(rules, list(written.values()), facts)
    return [heading, f"  {write_facts(facts) or 'nothing given'}", *_open(table, facts, written)]


def explain_node(classification: Classification, name: str) -> list[str]:
    """What is known of a node by its name, and why."""
    classified = classification(name)
    transformer = classified.transformer or "as configured"
    lines = [f"node {name}: class {classified.node_class}, transformer {transformer}"]
    rule = next((rule for rule in classification.rules if rule.id == classified.rule), None)
    if rule is None:
        return [*lines, "  no rule of classify.yaml matches the name"]
    return [
        *lines,
        f"rule {rule.id} ({rule.place})",
        f"  names    {', '.join(rule.names)}" + (f"; not {', '.join(rule.unless)}" if rule.unless else ""),
        f"  because  {rule.because}",
        f"  source   {', '.join(rule.sources)}",
    ]


def _runners_up(table: TableRules, rules: list[Rule], facts: Mapping[str, str]) -> list[str]:
    """The rules that one condition kept from deciding, and which; first those of a condition that few failed by."""
    by_axis: dict[str, list[str]] = {}
    for rule in rules:
        failed = [
            (axis, values_in(values, mask))
            for (axis, values), mask in zip(table.words.axes.items(), rule.box, strict=True)
            if not mask >> values.index(facts[axis]) & 1
        ]
        if len(failed) == 1:
            [(axis, allowed)] = failed
            line = f"  {rule.id} ({rule.place}): {axis} is {facts[axis]}, not {' or '.join(allowed)}"
            by_axis.setdefault(axis, []).append(line)
    lines = [line for alike in sorted(by_axis.values(), key=len) for line in alike]
    if not lines:
        return []
    more = [f"  and {len(lines) - _RUNNERS_UP} more"] if len(lines) > _RUNNERS_UP else []
    return ["runners-up, each with the one condition that failed", *lines[:_RUNNERS_UP], *more]


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
