"""The tables as this console reads them: every rule of a profile with what it inherits, and `explain` on chosen facts.

The tables in force are a gateway's; a digest says whether they are these. Loading takes about a second: it is done once
for a directory, in a thread of its own (`console.web.tables`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mappings.compiler.table_set import TableSet, compile_profile, load_rules
from mappings.language.rules import Rule, RuleBook, when_of
from mappings.language.vocabulary import DEFAULT_PROFILE, NODE_CLASS, PROFILES
from mappings.tools.expand import write_then
from mappings.tools.explain import explain, explain_node
from mappings.tools.facts import UnknownFact, read_question


@dataclass(slots=True)
class Tables:
    """Of one directory. `problems`: what is wrong with them; then there is no rule."""

    directory: Path | None
    rules: RuleBook
    problems: list[str] = field(default_factory=list)
    _compiled: dict[str, TableSet] = field(default_factory=dict)

    @classmethod
    def load(cls, directory: Path | None) -> Tables:
        """None: the shipped ones."""
        rules, problems = load_rules(directory)
        tables = cls(directory, RuleBook() if problems else rules, [str(problem) for problem in problems])
        if not problems:
            for profile in PROFILES:
                tables.compiled(profile)
        return tables

    def compiled(self, profile: str) -> TableSet:
        if profile not in self._compiled:
            self._compiled[profile] = compile_profile(self.rules, profile)
        return self._compiled[profile]

    def digest(self, profile: str) -> str:
        return self.compiled(profile).digest if self.rules and profile in PROFILES else ""

    def table(self, name: str, profile: str) -> list[dict[str, Any]]:
        """The rules of a table, inherited ones first, in the file's order. `first`: the profile that has it first."""
        table = self.rules[name]
        return [self._rule(name, rule, profile) for rule in table.profiles[profile].rules]

    def _rule(self, name: str, rule: Rule, profile: str) -> dict[str, Any]:
        table = self.rules[name]
        then = dict(rule.then)
        condition, klass = then.pop("condition", None), then.pop("class", None)
        return {
            "table": name,
            "rule": rule.id,
            "when": when_of(table.words, rule.box)[1:-1] or "always",
            "then": write_then(then),
            "condition": condition or "",
            "class": klass or "",
            "profile": self._first(name, rule, profile),
            "because": rule.because,
            "sources": [*rule.sources],
            "file": Path(rule.file).name,
            "line": rule.line,
        }

    def _first(self, name: str, rule: Rule, profile: str) -> str:
        """The profile in whose part of the file it is written."""
        starts = [(part.line, part.name) for part in self.rules[name].profiles.values() if part.line <= rule.line]
        return max(starts)[1] if starts else profile

    def axes(self, table: str) -> Mapping[str, Sequence[str]]:
        return self.rules[table].words.axes

    def explained(self, table: str, profile: str, node: str, facts: Mapping[str, str]) -> list[str]:
        """What `realmgate mappings explain` prints, in lines. What is wrong with the question is a line as well."""
        words = [table, *(f"{axis}={value}" for axis, value in facts.items())]
        lines: list[str] = []
        try:
            question = read_question(words, {name: table_rules.words for name, table_rules in self.rules.items()})
            chosen = dict(question.facts)
            if node:
                lines = explain_node(self.rules.classification, node)
                if NODE_CLASS in self.axes(table):
                    chosen[NODE_CLASS] = self.rules.classification(node).node_class
        except UnknownFact as error:
            return [str(error)]
        return [*lines, *explain(self.rules[table], self.compiled(profile)[table], profile, chosen)]


def profile_of(name: str) -> str:
    """A profile that there is."""
    return name if name in PROFILES else DEFAULT_PROFILE
