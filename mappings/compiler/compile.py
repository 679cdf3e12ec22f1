"""Rules -> a table that decides by one tuple index. The gateway, `explain`, the scenarios and the expanded tables all
ask the same compiled table: there is no second implementation.

A table is a flat tuple of decisions, one for each combination of its axes, first axis slowest. A *slice* fixes the
axes that are constant for a link when it attaches; what is left is a small tuple and a stride for each axis that
varies:

    link = tables["settle"].slice(subscription="queue", source_durability="none", receiver_settle_mode="first")
    decision = link.decide(state="accepted", already_settled="no")
    # or, with the strides looked up once:  link.cells[position_of_state * stride_of_state + ...]

The same cell always gives the same `Decision` object, from a slice too, so decisions may be grouped by identity.

Errors: `KeyError` for an axis that is missing or unknown, `ValueError` for a value that an axis does not have,
`ImpossibleFacts` for a combination that the table declares impossible: all three are the caller's mistakes.

May import: the standard library, `mappings.boxes`, `mappings.rules`, `mappings.vocabulary`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any

from mappings.boxes import combinations_of
from mappings.rules import Profile, TableRules, facts_of, write_facts

STEP_CELLS = 500  # of a table that is read in steps: some 0.2 ms


class ImpossibleFacts(Exception):
    """These facts cannot occur together, says the table; whoever put them together is wrong."""


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

    __slots__ = ("_slices", "axes", "cells", "constants", "name", "positions", "strides")

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
        self.strides = strides_of(self.axes)
        self.positions = {axis: {value: at for at, value in enumerate(values)} for axis, values in self.axes.items()}
        self._slices: dict[frozenset[tuple[str, str]], Slice] = {}  # there are no more than combinations of constants

    def index(self, **facts: str) -> int:
        """The place of a combination in `cells`."""
        if facts.keys() != self.axes.keys():
            raise KeyError(_wrong_axes(self.name, self.axes, facts))
        return sum(self._position(axis, value) * self.strides[axis] for axis, value in facts.items())

    def decide(self, **facts: str) -> Decision:
        decision = self.cells[self.index(**facts)]
        if decision is None:
            raise ImpossibleFacts(f"table {self.name}: {write_facts({**self.constants, **facts})}")
        return decision

    def slice(self, **constants: str) -> Slice:
        """The same with these axes fixed, too. Links that attach alike share one."""
        key = frozenset(constants.items())
        found = self._slices.get(key)
        if found is None:
            found = self._slices[key] = self._cut(constants)
        return found

    def _cut(self, constants: Mapping[str, str]) -> Slice:
        for axis, value in constants.items():
            if axis not in self.axes:
                raise KeyError(f"table {self.name} has no axis {axis}")
            self._position(axis, value)
        remaining = {axis: values for axis, values in self.axes.items() if axis not in constants}
        base = sum(self._position(axis, value) * self.strides[axis] for axis, value in constants.items())
        steps = ([at * self.strides[axis] for at in range(len(values))] for axis, values in remaining.items())
        cells = tuple(self.cells[base + sum(offsets)] for offsets in product(*steps))
        return Slice(self.name, remaining, cells, {**self.constants, **constants})

    def _position(self, axis: str, value: str) -> int:
        try:
            return self.positions[axis][value]
        except KeyError:
            raise ValueError(_wrong_value(self.name, axis, value, self.axes[axis])) from None


class Table(Slice):
    """A whole table: a slice with nothing fixed."""

    __slots__ = ("rules",)

    def __init__(
        self,
        name: str,
        axes: Mapping[str, tuple[str, ...]],
        cells: tuple[Decision | None, ...],
        rules: Mapping[str, Mapping[str, Any]],
    ) -> None:
        super().__init__(name, axes, cells, {})
        self.rules = dict(rules)  # rule id -> then, in the file's order

    def facts(self, cell: int) -> dict[str, str]:
        """The combination that a cell stands for."""
        return {axis: values[cell // self.strides[axis] % len(values)] for axis, values in self.axes.items()}


def strides_of(axes: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """How far apart two neighbouring values of an axis lie in the cells; the last axis is the fastest."""
    strides: dict[str, int] = {}
    step = 1
    for axis, values in reversed(list(axes.items())):
        strides[axis] = step
        step *= len(values)
    return {axis: strides[axis] for axis in axes}


def compile_table(table: TableRules, profile: Profile, origin: Origin | None = None) -> Table:
    """Rules that `mappings.check` has found to fit together."""
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
    said = [f"axis {axis} is missing" for axis in missing] + [
        f"axis {axis} is not one that is open" for axis in unknown
    ]
    return f"table {name}: {', '.join(said)}"


def _wrong_value(name: str, axis: str, value: str, values: tuple[str, ...]) -> str:
    return f"table {name}: {axis} has no value {value!r}; it has {', '.join(values)}"
