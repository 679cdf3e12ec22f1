"""Rules -> a table that decides by one look-up an axis. The gateway, `explain`, the scenarios and the expanded tables
all ask the same compiled table: there is no second implementation.

A table is its *decisions*: a dictionary for each axis in order, one within the other, `decisions[value][value]...`. A
*slice* fixes the axes that are constant for a link when it attaches; what is left is one or two look-ups a delivery,
and no object is made:

    settle = tables["settle"].slice(subscription="queue", source_durability="none", receiver_settle_mode="first")
    decision = settle.decisions["accepted"]["no"]["below"]  # state, already_settled, attempts
    decision = settle.decide(state="accepted", already_settled="no", attempts="below")  # by name, through the same

The same cell always gives the same `Decision` object, from a slice too, so decisions may be grouped by identity.
`cells` is all of it in a flat tuple, first axis slowest.

Errors: `KeyError` for an axis that is missing or unknown, `ValueError` for a value that an axis does not have,
`ImpossibleFacts` for a combination that the table declares impossible: all three are the caller's mistakes. In
`decisions` itself, what is unknown or impossible is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any

from mappings.language.boxes import combinations_of
from mappings.language.rules import Profile, TableRules, facts_of, write_facts

STEP_CELLS = 500  # of a table that is read in steps: some 0.2 ms


class ImpossibleFacts(Exception):
    """The table says that these facts cannot occur together: the caller is wrong."""


@dataclass(slots=True, eq=False)
class Origin:
    """The set of tables that a decision comes from: what its evidence names."""

    profile: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one cell says. `cell` counts in the full product, first axis slowest; `then` has every key of the
    vocabulary."""

    table: str
    rule: str
    cell: int
    then: Mapping[str, Any]
    origin: Origin | None = field(default=None, compare=False, repr=False)


class Slice:
    """A table with some axes fixed. `axes` are the remaining ones, in the table's order."""

    __slots__ = ("_slices", "axes", "cells", "constants", "decisions", "name")

    def __init__(
        self,
        name: str,
        axes: Mapping[str, tuple[str, ...]],
        cells: tuple[Decision | None, ...],
        constants: Mapping[str, str],
    ) -> None:
        self.name = name
        self.axes = dict(axes)
        self.cells = cells
        self.constants = dict(constants)
        self.decisions: Any = _nested([*axes.values()], cells)
        self._slices: dict[frozenset[tuple[str, str]], Slice] = {}  # there are no more than combinations of constants

    def decide(self, **facts: str) -> Decision:
        if facts.keys() != self.axes.keys():
            raise KeyError(_wrong_axes(self.name, self.axes, facts))
        branch = self.decisions
        for axis, values in self.axes.items():
            branch = branch.get(facts[axis]) if branch is not None else None
            if branch is None and facts[axis] not in values:
                raise ValueError(_wrong_value(self.name, axis, facts[axis], values))
        if branch is None:
            raise ImpossibleFacts(f"table {self.name}: {write_facts({**self.constants, **facts})}")
        decision: Decision = branch
        return decision

    def slice(self, **constants: str) -> Slice:
        """The same with these axes fixed, too. Links that attach alike share one."""
        key = frozenset(constants.items())
        cut = self._slices.get(key)
        if cut is None:
            cut = self._slices[key] = self._cut(constants)
        return cut

    def _cut(self, constants: Mapping[str, str]) -> Slice:
        for axis, value in constants.items():
            if axis not in self.axes:
                raise KeyError(f"table {self.name} has no axis {axis}")
            if value not in self.axes[axis]:
                raise ValueError(_wrong_value(self.name, axis, value, self.axes[axis]))
        strides = strides_of(self.axes)
        remaining = {axis: values for axis, values in self.axes.items() if axis not in constants}
        base = sum(self.axes[axis].index(value) * strides[axis] for axis, value in constants.items())
        steps = ([at * strides[axis] for at in range(len(values))] for axis, values in remaining.items())
        cells = tuple(self.cells[base + sum(offsets)] for offsets in product(*steps))
        return Slice(self.name, remaining, cells, {**self.constants, **constants})


def _nested(axes: Sequence[tuple[str, ...]], cells: Sequence[Decision | None]) -> Any:
    """A dictionary an axis, the first one outermost; the only cell where there is no axis."""
    if not axes:
        return cells[0]
    step = len(cells) // len(axes[0])
    inner = {value: _nested(axes[1:], cells[at * step : (at + 1) * step]) for at, value in enumerate(axes[0])}
    return {value: decision for value, decision in inner.items() if decision is not None}


class Table(Slice):
    """A whole table: a slice with nothing fixed."""

    __slots__ = ("_strides", "rules")

    def __init__(
        self,
        name: str,
        axes: Mapping[str, tuple[str, ...]],
        cells: tuple[Decision | None, ...],
        rules: Mapping[str, Mapping[str, Any]],
    ) -> None:
        super().__init__(name, axes, cells, {})
        self.rules = dict(rules)  # rule id -> then, in the file's order
        self._strides = strides_of(axes)

    def cell(self, **facts: str) -> int:
        """The place of a combination in `cells`, possible or not."""
        return sum(values.index(facts[axis]) * self._strides[axis] for axis, values in self.axes.items())

    def facts(self, cell: int) -> dict[str, str]:
        """The combination that a cell stands for."""
        return {axis: values[cell // self._strides[axis] % len(values)] for axis, values in self.axes.items()}


def strides_of(axes: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """How far apart two neighbouring values of an axis lie in the cells; the last axis is the fastest."""
    strides: dict[str, int] = {}
    step = 1
    for axis, values in reversed(list(axes.items())):
        strides[axis] = step
        step *= len(values)
    return {axis: strides[axis] for axis in axes}


def compile_table(table: TableRules, profile: Profile, origin: Origin | None = None) -> Table:
    """Rules that `mappings.compiler.check` has found to fit together."""
    axes = table.words.axes
    strides = tuple(strides_of(axes).values())
    impossible = {_cell(at, strides) for item in table.impossible for at in combinations_of(item.box)}
    cells: list[Decision | None] = [None] * (strides[0] * len(next(iter(axes.values()))))
    for rule in profile.rules:
        then = MappingProxyType(dict(rule.then))
        for at in combinations_of(rule.box):
            cell = _cell(at, strides)
            if cell not in impossible:
                if cells[cell] is not None:
                    raise AssertionError(f"unchecked rules: two hit {facts_of(table.words, at)}")
                cells[cell] = Decision(table.words.name, rule.id, cell, then, origin)
    return Table(table.words.name, axes, tuple(cells), {rule.id: rule.then for rule in profile.rules})


def table_in_steps(name: str, document: Mapping[str, Any], origin: Origin) -> Iterator[Table | None]:
    """A table from its part of the expanded document (`TableSet.expanded`), as it was when that was written. In steps
    of `STEP_CELLS`, so that others may have their turn in between: None until it is whole."""
    axes = {axis: tuple(values) for axis, values in document["axes"].items()}
    rules = {rule: MappingProxyType(dict(then)) for rule, then in document["rules"].items()}
    cells: list[Decision | None] = []
    for begin in range(0, len(document["cells"]), STEP_CELLS):
        if begin:
            yield None
        cells += [
            None if rule is None else Decision(name, rule, cell, rules[rule], origin)
            for cell, rule in enumerate(document["cells"][begin : begin + STEP_CELLS], begin)
        ]
    yield Table(name, axes, tuple(cells), rules)


def _cell(positions: Iterable[int], strides: tuple[int, ...]) -> int:
    return sum(at * stride for at, stride in zip(positions, strides, strict=True))


def _wrong_axes(name: str, axes: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    missing = [axis for axis in axes if axis not in facts]
    unknown = [axis for axis in facts if axis not in axes]
    problems = [f"axis {axis} is missing" for axis in missing] + [
        f"axis {axis} is not one that is open" for axis in unknown
    ]
    return f"table {name}: {', '.join(problems)}"


def _wrong_value(name: str, axis: str, value: str, values: tuple[str, ...]) -> str:
    return f"table {name}: {axis} has no value {value!r}; it has {', '.join(values)}"
