"""Was each delivery decided for the class that its node is of? A cell of a table with the axis `node_class` says which
class it was taken for; the tables' own classification, stored under the same digest, says which one it is of (A3).

Once for each combination, on the driver. Source: docs/records.md "Expanded tables"; docs/tables-vocabulary.md,
*classify*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from reconciliation.model.tally import Tally

AXIS = "node_class"
DEFAULT = "default"


class Classification:
    """The classes of one set of tables: its rules give them to patterns of names, in which `*` stands for any
    characters. No two rules match one name; what none matches is of class `default`. Version 1 has no rules."""

    def __init__(self, document: Mapping[str, Any] | None) -> None:
        rules = document["rules"].values() if document is not None else ()
        self._rules = [(_pattern(rule["names"]), _pattern(rule["unless"]), rule["node_class"]) for rule in rules]

    def class_of(self, name: str) -> str:
        classes = (kind for names, unless, kind in self._rules if names.fullmatch(name) and not unless.fullmatch(name))
        return next(classes, DEFAULT)


def _pattern(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(pattern_text(patterns), re.DOTALL)


def pattern_text(patterns: Iterable[str]) -> str:
    """A regular expression for whole names, in which a dot is any character; Python and Java read it alike. What
    follows a `*` is looked for once: the first place where it fits is as good as any later one."""
    return "|".join(map(_expression, patterns)) or "(?!)"


def _expression(pattern: str) -> str:
    first, *parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    return first + "".join(f"(?>.*?{part})" for part in parts[:-1]) + (f".*{parts[-1]}" if parts else "")


class NodeClasses:
    """The classifications of all stored tables, by digest. Tables without the axis cost nothing."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self._classify: dict[str, Classification] = {}
        self._axes: dict[tuple[str, str], tuple[int, list[str]]] = {}  # digest, table -> cells of a class, classes
        for document in documents:
            self._classify[document["digest"]] = Classification(document.get("classify"))
            for name, table in document["tables"].items():
                axes = list(table["axes"])
                if AXIS in axes:
                    faster = axes[axes.index(AXIS) + 1 :]  # the last axis is the fastest
                    stride = prod(len(table["axes"][axis]) for axis in faster)
                    self._axes[document["digest"], name] = stride, table["axes"][AXIS]

    def checked(self, tally: Tally) -> Tally:
        """The same, its mismatch told where a cell is of another class than the node."""
        if not self._axes:
            return tally
        sides = ((tally.table, tally.cell), (tally.answer_table, tally.answer_cell))
        mismatches = [text for table, cell in sides if (text := self._differs(tally, table, cell))]
        return replace(tally, mismatch="; ".join(filter(None, [tally.mismatch, *mismatches]))) if mismatches else tally

    def _differs(self, tally: Tally, table: str | None, cell: int | None) -> str | None:
        axis = self._axes.get((tally.digest, table or ""))
        if axis is None or cell is None:
            return None
        stride, classes = axis
        taken_for = classes[cell // stride % len(classes)]
        node_class = self._classify[tally.digest].class_of(tally.node or "")
        if taken_for == node_class:
            return None
        return f"decided as class {taken_for} by {table} where its node is of class {node_class}"
