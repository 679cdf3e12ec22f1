"""A set of tables as data: an expanded document, asked by facts. Nothing is decided that the document does not say.

Errors: `Undecided`, with the words for the report. Source: docs/records.md "Expanded tables".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from reconciliation.read.node_classes import DEFAULT


class Undecided(Exception):
    """The tables cannot be asked this; the text says why."""


class ImpossibleFacts(Undecided):
    """The tables declare that these facts do not occur together."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What decides a combination of facts. `cell` is the place of the combination."""

    table: str
    name: str
    cell: int
    then: Mapping[str, Any]

    @property
    def label(self) -> str:
        return f"{self.table}.{self.name}"


class ExpandedTable:
    """One table. The first axis is the slowest."""

    def __init__(self, name: str, document: Mapping[str, Any]) -> None:
        self.name = name
        self.axes: dict[str, tuple[str, ...]] = {axis: tuple(values) for axis, values in document["axes"].items()}
        self._rules: Mapping[str, Mapping[str, Any]] = document["rules"]
        self._cells: list[str | None] = document["cells"]
        self._places: dict[str, dict[str, int]] = {}
        stride = 1
        for axis, values in reversed(self.axes.items()):
            self._places[axis] = {value: at * stride for at, value in enumerate(values)}
            stride *= len(values)

    def facts(self, cell: int) -> dict[str, str]:
        """The combination that a cell stands for."""
        if not 0 <= cell < len(self._cells):
            raise Undecided(f"table {self.name} under its digest has no cell {cell}")
        combination = {}
        for axis, values in reversed(self.axes.items()):
            cell, place = divmod(cell, len(values))
            combination[axis] = values[place]
        return combination

    def combinations(self) -> Iterator[dict[str, str]]:
        """The possible ones."""
        return (self.facts(cell) for cell, rule in enumerate(self._cells) if rule is not None)

    def look_up(self, facts: Mapping[str, str]) -> Rule:
        """Facts that are no axis are ignored."""
        cell = 0
        for axis, places in self._places.items():
            place = places.get(facts[axis])
            if place is None:
                raise Undecided(f"table {self.name} does not know {axis} {facts[axis]}")
            cell += place
        rule = self._cells[cell]
        if rule is None:
            raise ImpossibleFacts(f"table {self.name} declares the recorded facts impossible")
        return Rule(self.name, rule, cell, self._rules[rule])


class ExpandedTables:
    """All tables of one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.digest: str = document["digest"]
        self.profile: str = document["profile"]
        self._tables = {name: ExpandedTable(name, part) for name, part in document["tables"].items()}
        classify = document.get("classify")
        self.naming: Mapping[str, Mapping[str, Any]] = {} if classify is None else classify["rules"]
        """How `classify` names nodes, by rule; version 1 does not."""

    def table(self, name: str) -> ExpandedTable:
        expanded = self._tables.get(name)
        if expanded is None:
            raise Undecided(f"there is no table {name} under digest {self.digest}")
        return expanded

    def axes_of(self, *names: str) -> dict[str, tuple[str, ...]]:
        """Of those of the tables that there are."""
        there = (self._tables[name] for name in names if name in self._tables)
        return {axis: values for table in there for axis, values in table.axes.items()}

    def class_of(self, rule: str | None) -> str:
        """Of a node that this rule of `classify` names; None: that none names."""
        return DEFAULT if rule is None else self.naming[rule]["node_class"]

    def transformer_of(self, rule: str | None) -> str | None:
        """None: the one that the configuration names."""
        return None if rule is None else self.naming[rule]["transformer"]


def differing(own: ExpandedTables, other: ExpandedTables, name: str, **facts: str) -> int:
    """How many combinations of a table, with these facts, the two decide differently; all, where one has no such
    table."""
    axes = {axis: values for tables in (own, other) for axis, values in tables.axes_of(name).items()}
    open_axes = {axis: (facts[axis],) if axis in facts else values for axis, values in axes.items()}
    count = 0
    for values in product(*open_axes.values()):
        combination = dict(zip(open_axes, values, strict=True))
        count += _then(own, name, combination) != _then(other, name, combination)
    return count


def _then(tables: ExpandedTables, name: str, facts: Mapping[str, str]) -> Mapping[str, Any] | None:
    try:
        return tables.table(name).look_up(facts).then
    except Undecided:
        return None
