"""Table files -> rules. Everything that one rule can have wrong by itself is found here, all of it, with its line:
unknown keys and words, a `then` that is incomplete or unlawful, an unknown source.

How rules fit together (gaps, clashes) is the business of `mappings.compiler.check`.

A file:

    table: settle
    hit_policy: unique
    axes: {state: [...], ...}                 # the vocabulary's, spelt out for the reader; node_class before them,
                                              # where rules speak of classes (`classify.yaml`)
    impossible: [{when: {...}, because: ...}]
    profiles:
      um-9.12: {rules: [{id, when, then, because, source}]}
      extended: {extends: um-9.12, without: [id, ...], rules: [...]}

What a profile that extends another writes down is its differences from that one: each a rule of its own, with its id,
its because and its source, in place of those that it names under `without`. A profile that a table does not mention
differs in nothing from its base (`vocabulary.BASES`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mappings.compiler.classify_file import TABLE as CLASSIFY
from mappings.compiler.classify_file import load_classification
from mappings.language.classification import DEFAULT_CLASS
from mappings.language.reader import Reader, choices, contains, listed, shown
from mappings.language.rules import Impossible, Profile, Rule, RuleBook, TableRules
from mappings.language.vocabulary import BASES, HIT_POLICY, NODE_CLASS, PROFILES, TABLES, Law, TableWords, Value, Word
from mappings.language.yaml_lines import Node, Problem, load_document, refuse_unknown_keys, suggest

_RULE_KEYS = ("id", "when", "then", "because", "source")
_RULE_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def load_directory(directory: Path) -> tuple[RuleBook, list[Problem]]:
    """Every table of `directory` (one file per table, `NAME.yaml`), in the vocabulary's order."""
    if not directory.is_dir():
        remedy = "name a directory that holds the table files"
        return RuleBook(), [Problem(str(directory), 1, "is no directory", remedy)]
    classification, problems = load_classification(directory)
    tables = RuleBook(classification)
    known = (CLASSIFY, *TABLES)
    problems.extend(
        Problem(str(path), 1, f"there is no table {path.stem}", suggest(path.stem, known))
        for path in sorted(directory.glob("*.yaml"))
        if path.stem not in known
    )
    for name, words in TABLES.items():
        path = directory / f"{name}.yaml"
        if not path.is_file():
            problems.append(Problem(str(path), 1, f"the file of table {name} is missing", "write it"))
        elif (table := load_table(path, words, problems, classification.node_classes)) is not None:
            tables[name] = table
    return tables, problems


def load_table(
    path: Path, words: TableWords, problems: list[Problem], node_classes: tuple[str, ...] = (DEFAULT_CLASS,)
) -> TableRules | None:
    """One table file; None when it has problems (they are appended). `node_classes`: what a rule may speak of when the
    file has that axis."""
    document, faults = load_document(path)
    reader = _TableReader(words, str(path), faults, node_classes)
    table = reader.read(document.root) if document.readable else None
    problems.extend(sorted(faults, key=lambda problem: (problem.line, problem.column)))
    return None if faults else table


class _TableReader(Reader):
    """Reads one file, appending to `problems`; what it returns is of use only when it appended none."""

    def read(self, root: Node) -> TableRules | None:
        self._broken: set[str] = set()  # ids of rules with a problem of their own: they are there all the same
        fields = self.fields(root, ("table", "hit_policy", "axes", "impossible", "profiles"), ("impossible",))
        if fields is None:
            return None
        self.exactly(fields.get("table"), self.words.name)
        self.exactly(fields.get("hit_policy"), HIT_POLICY)
        if (axes := fields.get("axes")) is not None:
            self._axes(axes)
        impossible = [self._impossible(node) for node in self.items(fields.get("impossible"))]
        profiles = fields.get("profiles")
        if profiles is None:
            return None
        return TableRules(
            self.words,
            self.file,
            tuple(item for item in impossible if item is not None),
            self._profiles(profiles),
        )

    # -- the parts of a table

    def _axes(self, node: Node) -> None:
        if not self.is_a(node, "mapping"):
            return
        if NODE_CLASS in node and not self.words.of_node:
            self.refuse(node[NODE_CLASS], f"table {self.words.name} decides about no one node", "remove the axis")
            return
        if NODE_CLASS in node:
            self.words = self.words.by_class(self.node_classes)
        refuse_unknown_keys(node, self.words.axes, self.problems)
        for axis, values in self.words.axes.items():
            written = node.get(axis)
            if written is None:
                self.refuse(node, f"axis {axis} is missing", f"write {axis}: {listed(values)}")
            elif written.value != list(values):
                self.refuse(written, f"axis {axis} has other values", f"write {axis}: {listed(values)}")
        if not self.problems and list(node.mapping()) != list(self.words.axes):
            self.refuse(node, "the axes are in another order", f"write them as {listed(self.words.axes)}")

    def _impossible(self, node: Node) -> Impossible | None:
        fields = self.fields(node, ("when", "because"))
        if fields is None or len(fields) < 2:
            return None
        because = self.text(fields["because"])
        return Impossible(self.box(fields["when"]), because, node.line, node.column)

    def _profiles(self, node: Node) -> dict[str, Profile]:
        if not self.is_a(node, "mapping"):
            return {}
        refuse_unknown_keys(node, PROFILES, self.problems)
        profiles: dict[str, Profile] = {}
        for name in PROFILES:
            self._read_profile(name, node, profiles, ())
        return {name: profiles[name] for name in PROFILES if name in profiles}

    def _read_profile(self, name: str, node: Node, profiles: dict[str, Profile], path: tuple[str, ...]) -> None:
        """Read a profile after the one that it extends. `path`: the profiles that extend this one, outermost first."""
        if name in profiles:
            return
        written, base = node.get(name), BASES[name]
        if written is None and base is None:
            self.refuse(node, f"profile {name} is missing", f"write {name}: {{rules: [...]}}")
            return
        extends = None if written is None else written.get("extends")
        if extends is not None:
            base = extends.content if extends.content in PROFILES else None
        if base is not None and (extends is not None or written is None):
            if base in (*path, name):
                self._refuse_circle(extends or node, (*path, name, base))
                return
            self._read_profile(base, node, profiles, (*path, name))
        if written is not None:
            profile = self._profile(name, written, profiles)
        else:
            of_base = profiles.get(base or "")
            profile = of_base and replace(of_base, name=name)
        if profile is not None:
            profiles[name] = profile

    def _refuse_circle(self, node: Node, path: tuple[str, ...]) -> None:
        circle = path[path.index(path[-1]) :]
        if not any(problem.message.startswith("profiles in a circle") for problem in self.problems):
            message = f"profiles in a circle: {' extends '.join(circle)}"
            self.refuse(node, message, "let one of them extend none of the others")

    def _profile(self, name: str, node: Node, others: Mapping[str, Profile]) -> Profile | None:
        fields = self.fields(node, ("extends", "without", "rules"), ("extends", "without"))
        if fields is None:
            return None
        inherited = self._inherited(fields, others)
        rules = {rule.id: rule for rule in inherited}
        for item in self.items(fields.get("rules")):
            rule = self._rule(item)
            if rule is None:
                self._broken |= {node.content for node in [item.get("id")] if node is not None and node.kind == "text"}
                continue
            if rule.id in rules:
                first = rules[rule.id]
                remedy = "name it under without" if first in inherited else "give one of them another id"
                self.refuse(item, f"rule {rule.id} is there already ({first.place})", remedy)
                continue
            rules[rule.id] = rule
        return Profile(name, tuple(rules.values()), node.line, node.column)

    def _inherited(self, fields: Mapping[str, Node], others: Mapping[str, Profile]) -> list[Rule]:
        extends, without = fields.get("extends"), fields.get("without")
        if extends is None:
            if without is not None:
                self.refuse(without, "without needs a profile to take rules from", "write extends: PROFILE")
            return []
        name = self.text(extends)
        if name not in others and name in PROFILES:
            return []  # its own problem was reported
        if name not in others:
            self.refuse(extends, f"there is no profile {name}", suggest(name, PROFILES))
            return []
        rules = {rule.id: rule for rule in others[name].rules}
        for item in self.items(without):
            rule_id = self.text(item)
            if rules.pop(rule_id, None) is None and rule_id not in self._broken:
                self.refuse(item, f"{name} has no rule {rule_id}", suggest(rule_id, list(rules)))
        return list(rules.values())

    # -- rules

    def _rule(self, node: Node) -> Rule | None:
        count = len(self.problems)
        fields = self.fields(node, _RULE_KEYS)
        if fields is None:
            return None
        rule_id = self.text(fields["id"]) if "id" in fields else ""
        if rule_id and not _RULE_ID.fullmatch(rule_id):
            self.refuse(fields["id"], f"rule id {rule_id} is not made of words", "write lower-case-words-like-this")
        box = self.box(fields["when"]) if "when" in fields else ()
        then = self._then(fields["then"]) if "then" in fields else {}
        because = self.text(fields["because"]) if "because" in fields else ""
        sources = self.sources(fields["source"]) if "source" in fields else ()
        if len(self.problems) > count:
            return None
        rule = Rule(rule_id, box, then, because, sources, self.file, node.line, node.column)
        for law in self.words.laws:
            self._obey(law, rule, fields["then"], fields["when"])
        return rule

    def _then(self, node: Node) -> dict[str, Value]:
        if not self.is_a(node, "mapping"):
            return {}
        refuse_unknown_keys(node, self.words.then, self.problems)
        then: dict[str, Value] = {}
        for key, word in self.words.then.items():
            written = node.get(key)
            if written is not None:
                then[key] = self.word(key, word, written)
            elif word.required:
                self.refuse(node, f"then does not say {key}", f"write {key}: {choices(word)}")
            else:
                then[key] = word.default[0]
        return then

    def _obey(self, law: Law, rule: Rule, then: Node, when: Node) -> None:
        if not all(contains(values, rule.then[key]) for key, values in law.given.items()):
            return
        for key, values in law.then.items():
            if not contains(values, rule.then[key]):
                remedy = f"write {key}: {choices(Word(values))}" if values != (None,) else f"leave {key} out"
                self.refuse(then.get(key) or then, f"{law.says}: {key} is {shown(rule.then[key])}", remedy)
        for at, (axis, known) in enumerate(self.words.axes.items()):
            allowed = law.facts.get(axis, known)
            if any(rule.box[at] >> bit & 1 for bit, value in enumerate(known) if value not in allowed):
                remedy = f"write {axis}: {listed(allowed)} or less"
                self.refuse(when.get(axis) or when, f"{law.says}: {axis} may be something else", remedy)
