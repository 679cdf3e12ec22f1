"""Which class a node is of, by its name, and what transforms its messages: what a link asks once, when it attaches.

    tables.classify("orders.bulk.7").node_class     # "bulk": a fact for the tables that have the axis node_class
    tables.classify("orders.bulk.7").transformer    # "none"; None: the one that the configuration names

Rules give classes to patterns of names; no two of them match the same name (`mappings.compiler.classify_file` proves
it), so their order never matters. A name that none of them matches is of class `default`.

Source: docs/tables-vocabulary.md, *classify*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mappings.language.globs import compiled

DEFAULT_CLASS = "default"
NAMES_KEPT = 4_096  # peers choose names; what was found out about more than so many is forgotten


@dataclass(frozen=True, slots=True)
class Naming:
    """One rule: names that match one of `names` and none of `unless`."""

    id: str
    names: tuple[str, ...]
    unless: tuple[str, ...]
    node_class: str
    transformer: str | None
    because: str = ""
    sources: tuple[str, ...] = ()
    place: str = ""  # FILE:LINE
    transformer_place: tuple[str, int, int] = ("", 0, 0)  # file, line, column of that word


@dataclass(frozen=True, slots=True)
class Classified:
    """What is known of a node by its name. `rule` None: no rule matches it."""

    node_class: str = DEFAULT_CLASS
    transformer: str | None = None
    rule: str | None = None


class Classification:
    """The classes of a set of tables, and the names of each."""

    def __init__(self, node_classes: tuple[str, ...] = (DEFAULT_CLASS,), rules: tuple[Naming, ...] = ()) -> None:
        self.node_classes = node_classes
        self.rules = rules
        self._matchers = [
            (
                compiled(rule.names).fullmatch,
                compiled(rule.unless).fullmatch,
                Classified(rule.node_class, rule.transformer, rule.id),
            )
            for rule in rules
        ]
        self._known: dict[str, Classified] = {}

    @classmethod
    def read(cls, document: Mapping[str, Any] | None) -> Classification:
        """From its part of an expanded document; those of version 1 have none."""
        if document is None:
            return cls()
        rules = (
            Naming(
                rule,
                tuple(rule_document["names"]),
                tuple(rule_document["unless"]),
                rule_document["node_class"],
                rule_document["transformer"],
            )
            for rule, rule_document in document["rules"].items()
        )
        return cls(tuple(document["node_classes"]), tuple(rules))

    def document(self) -> dict[str, Any]:
        """Its part of the expanded document."""
        return {
            "node_classes": list(self.node_classes),
            "rules": {
                rule.id: {
                    "names": list(rule.names),
                    "unless": list(rule.unless),
                    "node_class": rule.node_class,
                    "transformer": rule.transformer,
                }
                for rule in self.rules
            },
        }

    def __call__(self, name: str) -> Classified:
        node_class = self._known.get(name)
        if node_class is None:
            if len(self._known) >= NAMES_KEPT:
                self._known.clear()
            node_class = self._known[name] = self._find(name)
        return node_class

    def _find(self, name: str) -> Classified:
        for matches, except_for, classified in self._matchers:
            if matches(name) and not except_for(name):
                return classified
        return _OTHERS


_OTHERS = Classified()
