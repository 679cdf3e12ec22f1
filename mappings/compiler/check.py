"""The proof that the rules of a profile fit together: every possible combination hits exactly one rule.

Rules are boxes. They are pairwise disjoint, and their volumes add up to the product of the axes less what is declared
impossible: then there is no gap and no clash, and nothing had to be enumerated. Where the proof fails, the problem
names a combination as an example, and the file and line of both rules.

Source: the hit policy *unique*.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from mappings.language.boxes import Box, first_of, full, subtract, subtract_all, volume, within
from mappings.language.rules import Profile, Rule, TableRules, facts_of, named, when_of, words_of, write_facts
from mappings.language.yaml_lines import Problem

_GAPS_NAMED = 3
RULES_MAX = (
    500  # of a profile: each is compared with every other, and no table has half as many combinations to tell apart
)


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
    """The profiles, those with the very same rules as one that carries all their names: a mistake is reported once."""
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
            problems.append(Problem(table.file, item.line, message, "remove it", item.column))
        left = subtract_all(left, [item.box])
    if not left:
        last = table.impossible[-1]
        message = "every combination is declared impossible"
        problems.append(Problem(table.file, last.line, message, "allow some", last.column))
    return problems


def _check_profile(table: TableRules, profile: Profile, space: list[Box]) -> list[Problem]:
    if len(profile.rules) > RULES_MAX:
        message = f"{len(profile.rules):,} rules in {profile.name}; that is too much"
        return [Problem(table.file, profile.line, message, f"write at most {RULES_MAX}", profile.column)]
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
    return Problem(rule.file, rule.line, message, "remove it, or mend its when", rule.column)


def _clash(table: TableRules, profile: Profile, first: Rule, second: Rule, common: Box) -> Problem:
    example = write_facts(facts_of(table.words, first_of(common)))
    message = (
        f"rules {first.id} ({first.place}) and {second.id} ({second.place}) clash in {profile.name}: "
        f"both hit {example} ({volume(common)} combinations)"
    )
    return Problem(second.file, second.line, message, _narrower(table, first, second), second.column)


def _narrower(table: TableRules, first: Rule, second: Rule) -> str:
    """How the clash ends: the `when` that one of them would need, if that is one."""
    for rule, other in ((second, first), (first, second)):
        left = subtract(rule.box, other.box)
        if len(left) == 1:
            return f"narrow one of them: write when: {when_of(table.words, left[0])} in {rule.id}"
        if not left:
            return f"narrow {other.id}, or remove {rule.id}: it says nothing of its own"
    return "narrow the when of one of them"


def _gaps(table: TableRules, profile: Profile, space: list[Box]) -> list[Problem]:
    left = subtract_all(space, [rule.box for rule in profile.rules])
    if not left:
        return []
    example = write_facts(facts_of(table.words, first_of(left[0])))
    count = sum(volume(box) for box in left)
    message = f"table {table.words.name} has a gap in {profile.name}: no rule hits {example} ({count} combinations)"
    facts = " or ".join(f"({words_of(table.words, box)})" for box in left[:_GAPS_NAMED])
    more = f" or {len(left) - _GAPS_NAMED} more" if len(left) > _GAPS_NAMED else ""
    remedy = f"write a rule for when {facts}{more}: when: {when_of(table.words, left[0])}, or declare it impossible"
    return [Problem(table.file, profile.line, message, remedy, profile.column)]
