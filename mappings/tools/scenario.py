"""Scenarios: tests of the rules, as data beside them. `scenarios/TABLE_test.yaml` says what must be decided for which
facts, and every rule of every profile must be reached by one: a rule that no scenario speaks of is a rule without a
test.

    table: settle
    tests:
      - name: A durable subscriber's accepted delivery is acknowledged at its store
        profiles: [um-9.12]                      # left out: all
        given: {state: accepted, already_settled: "no", subscription: durable}
        expect: {rule: accepted-durable-acknowledges, then: {native: acknowledge, outcome: accepted}}

An axis that `given` leaves out, or lists, stands for each of its values: every possible combination must be decided as
expected. `then` names what matters, at least one key; `rule` may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mappings.compiler.compile import Decision, ImpossibleFacts, Table
from mappings.compiler.table_set import TableSet
from mappings.language.boxes import Box, combinations_of
from mappings.language.reader import Reader, contains, shown
from mappings.language.rules import Rule, RuleBook, TableRules, facts_of, named, write_facts
from mappings.language.vocabulary import PROFILES, TABLES, TableWords, Value
from mappings.language.yaml_lines import Node, Problem, load_document, refuse_unknown_keys, suggest

_SUFFIX = "_test"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One test of a table's rules."""

    words: TableWords
    name: str
    profiles: tuple[str, ...]
    given: Box
    rule: str | None
    then: Mapping[str, Value]
    file: str
    line: int
    column: int


@dataclass(slots=True)
class ScenarioResult:
    """What came of running scenarios: how many a table has, and what failed or is missing."""

    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)  # scenarios that failed, or that could not be read
    missed: list[Problem] = field(default_factory=list)  # rules that no scenario reaches
    rules: int = 0  # of all tables and profiles
    reached: int = 0


def run_scenarios(directory: Path, rules: RuleBook, sets: Mapping[str, TableSet]) -> ScenarioResult:
    """Run every scenario of `directory` on compiled tables (by profile), and report the rules that none reaches."""
    result = ScenarioResult()
    reached: set[tuple[str, str, str]] = set()  # profile, table, rule
    for scenario in _load(directory, rules, result.problems):
        name = scenario.words.name
        if name not in rules:
            continue
        result.counts[name] = result.counts.get(name, 0) + 1
        for profile in scenario.profiles:
            decided = _run(scenario, profile, sets[profile][name], result.problems)
            reached.update((profile, name, rule) for rule in decided)
    for table in rules.values():
        result.missed.extend(_uncovered(table, reached, directory))
        result.rules += sum(len(profile.rules) for profile in table.profiles.values())
    result.reached = len(reached)
    return result


def _uncovered(table: TableRules, reached: set[tuple[str, str, str]], directory: Path) -> list[Problem]:
    name = table.words.name
    remedy = f"write one in {directory / (name + _SUFFIX)}.yaml"
    missed: dict[str, tuple[Rule, list[str]]] = {}  # a rule, and the profiles in which it is not reached
    for profile in table.profiles.values():
        for rule in profile.rules:
            if (profile.name, name, rule.id) not in reached:
                missed.setdefault(rule.place, (rule, []))[1].append(profile.name)
    return [
        Problem(rule.file, rule.line, f"no scenario reaches rule {rule.id} ({named(profiles)})", remedy, rule.column)
        for rule, profiles in missed.values()
    ]


def _run(scenario: Scenario, profile: str, table: Table, problems: list[Problem]) -> set[str]:
    """The rules that decided; the first combination that is decided otherwise is a problem."""
    decided: set[str] = set()
    for positions in combinations_of(scenario.given):
        facts = facts_of(scenario.words, positions)
        try:
            decision = table.decide(**facts)
        except ImpossibleFacts:
            continue
        if difference := _difference(scenario, decision):
            message = f"{scenario.name}: {profile} decides {write_facts(facts)} by rule {decision.rule}: {difference}"
            remedy = "mend the rule or the scenario"
            problems.append(Problem(scenario.file, scenario.line, message, remedy, scenario.column))
            return decided
        decided.add(decision.rule)
    if not decided:
        message = f"{scenario.name}: every combination given is declared impossible"
        remedy = "give facts that can occur"
        problems.append(Problem(scenario.file, scenario.line, message, remedy, scenario.column))
    return decided


def _difference(scenario: Scenario, decision: Decision) -> str:
    if scenario.rule is not None and scenario.rule != decision.rule:
        return f"expected rule {scenario.rule}"
    wrong = [
        f"{key} is {shown(decision.then[key])}, expected {shown(value)}"
        for key, value in scenario.then.items()
        if not contains((decision.then[key],), value)
    ]
    return ", ".join(wrong)


def _load(directory: Path, rules: RuleBook, problems: list[Problem]) -> list[Scenario]:
    if not directory.is_dir():
        problems.append(Problem(str(directory), 1, "is no directory", "write the scenarios of each table there"))
        return []
    scenarios: list[Scenario] = []
    for path in sorted(directory.glob("*.yaml")):
        name = path.stem.removesuffix(_SUFFIX)
        if name not in TABLES or path.stem == name:
            remedy = suggest(path.stem, [table + _SUFFIX for table in TABLES])
            problems.append(Problem(str(path), 1, f"{path.stem} names no scenarios of a table", remedy))
            continue
        document, faults = load_document(path)
        if document.readable:
            reader = _ScenarioReader(_words(name, rules), str(path), faults, rules.classification.node_classes)
            scenarios.extend(reader.read(document.root))
        problems.extend(sorted(faults, key=lambda problem: (problem.line, problem.column)))
    return scenarios


def _words(name: str, rules: RuleBook) -> TableWords:
    """Those of the table as it is written; where it has problems, a scenario may name a class all the same."""
    if name in rules:
        return rules[name].words
    words = TABLES[name]
    return words.by_class(rules.classification.node_classes) if words.of_node else words


class _ScenarioReader(Reader):
    """Reads one scenario file; a scenario with a problem of its own is left out, and the problem told."""

    def read(self, root: Node) -> list[Scenario]:
        fields = self.fields(root, ("table", "tests"))
        if fields is None:
            return []
        self.exactly(fields.get("table"), self.words.name)
        return [scenario for node in self.items(fields.get("tests")) if (scenario := self._scenario(node)) is not None]

    def _scenario(self, node: Node) -> Scenario | None:
        count = len(self.problems)
        fields = self.fields(node, ("name", "profiles", "given", "expect"), ("profiles",))
        if fields is None:
            return None
        name = self.text(fields["name"]) if "name" in fields else ""
        profiles = self._profiles(fields["profiles"]) if "profiles" in fields else PROFILES
        given = self.box(fields["given"]) if "given" in fields else ()
        rule, then = self._expect(fields["expect"]) if "expect" in fields else (None, {})
        if len(self.problems) > count:
            return None
        return Scenario(self.words, name, profiles, given, rule, then, self.file, node.line, node.column)

    def _profiles(self, node: Node) -> tuple[str, ...]:
        names = [self.text(item) for item in self.items(node)]
        for item, name in zip(self.items(node), names, strict=True):
            if name not in PROFILES:
                self.refuse(item, f"there is no profile {name}", suggest(name, PROFILES))
        if not names:
            self.refuse(node, "profiles names no profile", "leave it out to mean all")
        return tuple(names)

    def _expect(self, node: Node) -> tuple[str | None, dict[str, Value]]:
        fields = self.fields(node, ("rule", "then"), ("rule",))
        if fields is None:
            return None, {}
        rule = self.text(fields["rule"]) if "rule" in fields else None
        if "then" not in fields or not self.is_a(fields["then"], "mapping"):
            return rule, {}
        written = fields["then"]
        refuse_unknown_keys(written, self.words.then, self.problems)
        if not written.mapping():
            self.refuse(written, "then expects nothing", "write at least one key")
        known = {key: node for key, node in written.items() if key in self.words.then}
        return rule, {key: self.word(key, self.words.then[key], item) for key, item in known.items()}
