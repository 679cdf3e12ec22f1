"""The first few of many findings, in the order of their time and place, whatever order they come in."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from typing import Any

from reconciliation.model.schemas import FINDING

_FIRST = ("at", "store", "eid")  # first what has no time: whole sources
_ORDER = (*_FIRST, *(name for name in FINDING.names if name not in _FIRST))
"""By every column: the order in which Spark's tasks end is to leave no trace."""
Place = tuple[tuple[bool, Any], ...]


class FirstRows:
    """At most `most` of those that were added."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: list[tuple[Place, int, Mapping[str, Any]]] = []
        self._number = 0  # of rows that are equal the first stays, and rows themselves have no order

    def add(self, row: Mapping[str, Any]) -> None:
        if len(self._rows) == self._most and _place(row, "at") > self._rows[-1][0][0]:
            return  # nearly always
        self._number += 1
        insort(self._rows, (tuple(_place(row, name) for name in _ORDER), self._number, row))
        del self._rows[self._most :]

    def rows(self) -> list[Mapping[str, Any]]:
        return [row for _, _, row in self._rows]


def _place(row: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    value = row[name]
    return value is not None, value
