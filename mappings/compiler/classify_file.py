"""The file `classify.yaml`: names of nodes -> a class and a transformer, read strictly, and proven unambiguous.

    table: classify
    node_classes: [default, bulk]            # default is always there; the others are given by rules
    rules:
      - id: bulk-orders
        names: ["orders.bulk.*"]             # whole names; * stands for any characters, none included
        unless: ["orders.bulk.audit"]        # may be left out
        node_class: bulk                     # may be left out: default
        transformer: none                    # may be left out: the one that the configuration names
        because: No client waits for one of these.
        source: 3.6

No name may match two rules; where one would, the problem names both patterns, the place of both, and such a name. A
directory without the file classifies nothing. Whether a transformer can be made is known above this room
(`unusable_transformers`). Source: docs/tables-vocabulary.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from mappings.language.classification import DEFAULT_CLASS, Classification, Naming
from mappings.language.globs import Budget, example
from mappings.language.reader import Shapes
from mappings.language.yaml_lines import Node, Problem, load_document, suggest

TABLE = "classify"
PATTERNS_MAX = 500  # in one file
PATTERN_BYTES_MAX = 1_024  # as long as a node's name may be
SEARCH_STEPS = 50_000  # of the proof: about half a second

_KEYS = ("id", "names", "unless", "node_class", "transformer", "because", "source")
_OPTIONAL = ("unless", "node_class", "transformer")
_WORD = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TRANSFORMER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # none, basic, complete, or the name of an entry point

ErrorDescription = tuple[str, str]  # what is wrong, and what to do
Complain = Callable[[str], ErrorDescription | None]  # name of a transformer -> why it cannot be used; None: it can


def nothing_to_say(_: str) -> ErrorDescription | None:
    """Of transformers, where their names are not known."""
    return None


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern and where it is written."""

    text: str
    unless: tuple[str, ...]
    node: Node
    rule: int

    @property
    def place(self) -> str:
        return f"{self.node.file}:{self.node.line}"


def load_classification(directory: Path) -> tuple[Classification, list[Problem]]:
    """What DIRECTORY/classify.yaml says; of use only when there is no problem."""
    path = directory / f"{TABLE}.yaml"
    return read_classification(path) if path.is_file() else (Classification(), [])


def read_classification(path: Path) -> tuple[Classification, list[Problem]]:
    document, problems = load_document(path)
    classification = _FileReader(str(path), problems).read(document.root) if document.readable else Classification()
    return classification, sorted(problems, key=lambda problem: (problem.line, problem.column))


def unusable_transformers(classification: Classification, complain: Complain) -> list[Problem]:
    """What the rules name and what cannot be made here."""
    problems = []
    for rule in classification.rules:
        complaint = None if rule.transformer is None else complain(rule.transformer)
        if complaint is not None:
            file, line, column = rule.transformer_place
            problems.append(Problem(file, line, f"rule {rule.id}: {complaint[0]}", complaint[1], column))
    return problems


class _FileReader(Shapes):
    """Reads the file, appending to `problems`."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        super().__init__(file, problems)
        self._patterns: list[_Pattern] = []

    def read(self, root: Node) -> Classification:
        fields = self.fields(root, ("table", "node_classes", "rules"))
        if fields is None:
            return Classification()
        self.exactly(fields.get("table"), TABLE)
        classes = self._classes(fields["node_classes"]) if "node_classes" in fields else ()
        rules: dict[str, Naming] = {}
        for item in self.items(fields.get("rules")):
            rule = self._rule(item, classes, len(rules))
            if rule is not None and rule.id in rules:
                remedy = "give one of them another id"
                self.refuse(item, f"rule {rule.id} is there already ({rules[rule.id].place})", remedy)
            elif rule is not None:
                rules[rule.id] = rule
        if not self.problems:
            self._refuse_idle(fields["node_classes"], {rule.node_class for rule in rules.values()})
            self._prove()
        return Classification(classes, tuple(rules.values()))

    def _classes(self, node: Node) -> tuple[str, ...]:
        classes: list[str] = []
        for item in self.items(node):
            name = self._word(item, "class")
            if name in classes:
                self.refuse(item, f"class {name} is named twice", "keep one")
            classes.append(name)
        if node.is_sequence and classes[:1] != [DEFAULT_CLASS]:
            remedy = f"write {DEFAULT_CLASS} first: it is the class of every other node"
            self.refuse(node, f"the first class is not {DEFAULT_CLASS}", remedy)
        return tuple(classes)

    def _refuse_idle(self, node: Node, given: set[str]) -> None:
        for item in node.sequence():
            if item.content not in given and item.content != DEFAULT_CLASS:
                self.refuse(item, f"no rule gives class {item.content}", "write one, or remove the class")

    def _rule(self, node: Node, classes: tuple[str, ...], number: int) -> Naming | None:
        count = len(self.problems)
        fields = self.fields(node, _KEYS, _OPTIONAL)
        if fields is None:
            return None
        rule_id = self._word(fields["id"], "rule id") if "id" in fields else ""
        unless = self._names(fields["unless"]) if "unless" in fields else {}
        names = self._names(fields["names"]) if "names" in fields else {}
        node_class = self._class(fields["node_class"], classes) if "node_class" in fields else DEFAULT_CLASS
        transformer = self._transformer(fields["transformer"]) if "transformer" in fields else None
        if transformer is None and node_class == DEFAULT_CLASS and len(self.problems) == count:
            self.refuse(node, f"rule {rule_id} says nothing", "write node_class, transformer or both")
        because = self.text(fields["because"]) if "because" in fields else ""
        sources = self.sources(fields["source"]) if "source" in fields else ()
        if len(self.problems) > count:
            return None
        self._patterns += [_Pattern(name, tuple(unless), item, number) for name, item in names.items()]
        place = f"{self.file}:{node.line}"
        at = fields.get("transformer", node)
        written = (at.file, at.line, at.column)
        return Naming(rule_id, tuple(names), tuple(unless), node_class, transformer, because, sources, place, written)

    def _word(self, node: Node, what: str) -> str:
        word = self.text(node)
        if word and not _WORD.fullmatch(word):
            self.refuse(node, f"{what} {word} is not made of words", "write lower-case-words-like-this")
        return word

    def _class(self, node: Node, classes: tuple[str, ...]) -> str:
        name = self.text(node)
        if name and name not in classes:
            self.refuse(node, f"there is no class {name}", f"{suggest(name, classes)}, or add it to node_classes")
        return name

    def _transformer(self, node: Node) -> str:
        name = self.text(node)
        if name and not _TRANSFORMER.fullmatch(name):
            self.refuse(node, f"{name} names no transformer", "write none, basic, complete or an entry point's name")
        return name

    def _names(self, node: Node) -> dict[str, Node]:
        """Patterns, each with where it is written."""
        patterns: dict[str, Node] = {}
        for item in self.items(node):
            pattern = self.text(item)
            if not pattern.isprintable():
                self.refuse(item, "an invisible character", "write names as they are shown")
            elif "?" in pattern or "[" in pattern:
                self.refuse(item, f"{pattern} has a wildcard other than *", "write * for any characters")
            elif len(pattern.encode()) > PATTERN_BYTES_MAX:
                what = f"a pattern of {len(pattern.encode()):,} octets"
                self.refuse(item, what, f"write at most {PATTERN_BYTES_MAX:,}, as long as a name may be")
            elif pattern in patterns:
                self.refuse(item, f"{pattern} is named twice", "keep one")
            elif pattern:
                patterns[pattern] = item
        if node.is_sequence and not node.sequence():
            self.refuse(node, "no pattern is named", "write at least one")
        return patterns

    # -- the proof that no name matches two rules

    def _prove(self) -> None:
        if len(self._patterns) > PATTERNS_MAX:
            last = self._patterns[PATTERNS_MAX].node
            self.refuse(last, f"{len(self._patterns):,} patterns", f"write at most {PATTERNS_MAX:,}")
            return
        budget = Budget(SEARCH_STEPS)
        try:
            for pattern in self._patterns:
                self._refuse_dead(pattern, budget)
            for first, second in combinations(self._patterns, 2):
                self._refuse_overlap(first, second, budget)
        except Budget.Spent:
            message = f"after {SEARCH_STEPS:,} steps it is not known whether two rules match one name"
            self.refuse(self._patterns[0].node, message, "write patterns that begin or end with different words")

    def _refuse_dead(self, pattern: _Pattern, budget: Budget) -> None:
        if pattern.unless and example([pattern.text], pattern.unless, budget) is None:
            self.refuse(pattern.node, f"{pattern.text} is dead: unless takes every name of it", "remove one of them")

    def _refuse_overlap(self, first: _Pattern, second: _Pattern, budget: Budget) -> None:
        if first.rule == second.rule:
            return
        name = example([first.text, second.text], [*first.unless, *second.unless], budget)
        if name is not None:
            message = f"{first.text} ({first.place}) and {second.text} ({second.place}) both match {name}"
            remedy = f"write unless: ['{second.text}'] beside {first.text}, or other names"
            self.refuse(second.node, message, remedy)
