"""Aggregates by key that grow as batches come, and are added to those of another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import add, or_, xor
from typing import Any, Final

import numpy as np

from reconciliation.model.ranges import EID_SIZE
from reconciliation.summing.hashing import Column

Key = tuple[Any, ...]
Row = dict[str, Any]
_SPARSE: Final = 16
"""Rows with the same key that follow each other, on average: with fewer, they are sorted first."""


def _places(column: Column, starts: Column) -> list[int]:
    """Of each run of rows, which places of a block it has, as a number with a bit for each."""
    bits = []
    for first, end in zip(starts, [*starts[1:], len(column)], strict=True):
        has = np.zeros(EID_SIZE, bool)
        has[column[first:end]] = True
        bits.append(int.from_bytes(np.packbits(has).tobytes(), "big"))
    return bits


def _by(reduce: np.ufunc) -> Callable[[Column, Column], list[int]]:
    return lambda column, starts: reduce.reduceat(column, starts).tolist()


_WAYS: Final[Mapping[str, tuple[Callable[[Any, Any], Any], Callable[[Column, Column], list[int]]]]] = {
    "sum": (add, _by(np.add)),
    "xor": (xor, _by(np.bitwise_xor)),
    "least": (min, _by(np.minimum)),
    "most": (max, _by(np.maximum)),
    "places": (or_, _places),
}


class Totals:
    """`columns`: by name, the way in which its numbers are put together. `count` is that of the rows; `places` are
    counted, each once."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = {"count": "sum", **columns}
        self._rows: dict[Key, list[int]] = {}

    def add(
        self, labels: Sequence[Key], label_of: Column, keys: Sequence[Column], values: Mapping[str, Column]
    ) -> None:
        """`label_of`: of each row, which of the `labels` its key begins with; `keys`: what follows in it."""
        if not len(label_of):
            return
        columns = [np.asarray(label_of, np.int64), *keys]
        rows = {name: values[name] for name in self._columns if name != "count"}
        starts = _starts(columns)
        if len(starts) * _SPARSE > len(label_of):
            order = np.lexsort(columns[::-1])
            columns = [column[order] for column in columns]
            rows = {name: column[order] for name, column in rows.items()}
            starts = _starts(columns)
        counts = np.diff(starts, append=len(label_of)).tolist()
        reduced = [_WAYS[self._columns[name]][1](column, starts) for name, column in rows.items()]
        places = zip(*(column[starts].tolist() for column in columns), strict=True)
        for (label, *rest), numbers in zip(places, zip(counts, *reduced, strict=True), strict=True):
            self.put((*labels[label], *rest), numbers)

    def put(self, key: Key, numbers: Sequence[int]) -> None:
        there = self._rows.get(key)
        if there is None:
            self._rows[key] = [*numbers]
            return
        for place, (way, number) in enumerate(zip(self._columns.values(), numbers, strict=True)):
            there[place] = _WAYS[way][0](there[place], number)

    def merge(self, others: Totals) -> None:
        for key, numbers in others._rows.items():
            self.put(key, numbers)

    def rows(self, *names: str) -> Iterator[dict[str, Any]]:
        """`names`: of the parts of the key."""
        counted = [name for name, way in self._columns.items() if way == "places"]
        for key, numbers in self._rows.items():
            row = dict(zip(self._columns, numbers, strict=True))
            yield {**dict(zip(names, key, strict=True)), **row, **{name: row[name].bit_count() for name in counted}}


def most(left: Any, right: Any) -> Any:
    """None is nothing."""
    return right if left is None else left if right is None else max(left, right)


def _starts(columns: Sequence[Column]) -> Column:
    """Where in the rows another key begins."""
    is_start = np.zeros(len(columns[0]), bool)
    is_start[0] = True
    for column in columns:
        is_start[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_start)
