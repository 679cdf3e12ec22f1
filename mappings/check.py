"""The proof that the rules of a profile fit together: every possible combination hits exactly one rule.

Rules are boxes. They are pairwise disjoint, and their volumes add up to the product of the axes less what is declared
impossible: then there is no gap and no clash, and nothing had to be enumerated. Where the proof fails, the problem
names a combination as an example, and the file and line of both rules.

Source: the house's hit policy *unique*. May import: the standard library, `mappings`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from mappings.boxes import Box, first_of, full, subtract_all, volume, within
from mappings.rules import Profile, Rule, TableRules, facts_of, named, write_facts
from mappings.yaml_lines import Problem


def possible_space(table: TableRules) -> list[Box]:
    """Every combination that can occur, as disjoint boxes."""
    everything = full(len(values) for values in table.words.axes.values())
    return subtract_all([everything], [item.box for item in table.impossible])


def check_table(table: TableRules) -> list[Problem]:
    """What is wrong with how the rules of one table fit together, in each profile."""
    space = possible_space(table)
    problems = _check_impossible(table)
    for profile in _distinct(table):
        problems.extend(_check_profile(table, profile, space))
    return problems


def _distinct(table: TableRules) -> list[Profile]:
    """The profiles, those with the very same rules as one that carries all their names: a mistake is told once."""
    alike: dict[tuple[int, ...], list[Profile]] = {}
    for profile in table.profiles.values():
        alike.setdefault(tuple(map(id, profile.rules)), []).append(profile)
    return [
        replace(group[0], name=named([profile.name for profile in group]), line=min(item.line for item in group))
        for group in alike.values()
    ]


def _check_impossible(table: TableRules) -> list[Problem]:
    """Each declaration must rule out something that the ones before it did not."""
    problems = []
    everything = full(len(values) for values in table.words.axes.values())
    left = [everything]
    for item in table.impossible:
        if not within(item.box, left):
            message = "this rules out nothing that was still possible"
            problems.append(Problem(table.file, item.line, message, "remove it"))
        left = subtract_all(left, [item.box])
    if not left:
        line = table.impossible[-1].line
        problems.append(Problem(table.file, line, "every combination is declared impossible", "allow some"))
    return problems


def _check_profile(table: TableRules, profile: Profile, space: list[Box]) -> list[Problem]:
    parts = {rule.id: within(rule.box, space) for rule in profile.rules}
    problems = [_dead(profile, rule) for rule in profile.rules if not parts[rule.id]]
    clashes = [
        _clash(table, profile, first, second, common[0])
        for first, second in combinations(profile.rules, 2)
        if (common := [box for part in parts[first.id] for box in within(second.box, [part])])
    ]
    problems.extend(clashes)
    covered = sum(volume(part) for rule in profile.rules for part in parts[rule.id])
    wanted = sum(volume(box) for box in space)
    if clashes or covered != wanted:
        problems.extend(_gaps(table, profile, space))
    return problems


def _dead(profile: Profile, rule: Rule) -> Problem:
    message = f"rule {rule.id} is dead in {profile.name}: all it speaks of is declared impossible"
    return Problem(rule.file, rule.line, message, "remove it, or mend its when")


def _clash(table: TableRules, profile: Profile, first: Rule, second: Rule, common: Box) -> Problem:
    example = write_facts(facts_of(table.words, first_of(common)))
    message = (
        f"rules {first.id} ({first.place}) and {second.id} ({second.place}) clash in {profile.name}: "
        f"both hit {example} ({volume(common)} combinations)"
    )
    return Problem(second.file, second.line, message, "narrow the when of one of them")


def _gaps(table: TableRules, profile: Profile, space: list[Box]) -> list[Problem]:
    left = subtract_all(space, [rule.box for rule in profile.rules])
    if not left:
        return []
    example = write_facts(facts_of(table.words, first_of(left[0])))
    count = sum(volume(box) for box in left)
    message = f"table {table.words.name} has a gap in {profile.name}: no rule hits {example} ({count} combinations)"
    return [Problem(table.file, profile.line, message, "write a rule for it, or declare it impossible")]
