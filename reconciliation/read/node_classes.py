"""Was each delivery decided for the class that its node is of? A cell of a table with the axis `node_class` says which
class it was taken for; the tables' own classification, stored under the same digest, says which one it is of (A3).

Once for each combination, on the driver, by the function that the gateway asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mappings.compiler.compile import strides_of
from mappings.language.classification import Classification
from mappings.language.vocabulary import NODE_CLASS
from reconciliation.model.tally import Tally


class NodeClasses:
    """The classifications of all stored tables, by digest. Tables without the axis cost nothing."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self._classify: dict[str, Classification] = {}
        self._axes: dict[tuple[str, str], tuple[int, list[str]]] = {}  # digest, table -> cells of a class, classes
        for document in documents:
            self._classify[document["digest"]] = Classification.read(document.get("classify"))
            for name, table in document["tables"].items():
                if NODE_CLASS in table["axes"]:
                    stride = strides_of(table["axes"])[NODE_CLASS]
                    self._axes[document["digest"], name] = stride, table["axes"][NODE_CLASS]

    def checked(self, one: Tally) -> Tally:
        """The same, its mismatch told where a cell is of another class than the node."""
        if not self._axes:
            return one
        sides = ((one.table, one.cell), (one.answer_table, one.answer_cell))
        mismatches = [text for table, cell in sides if (text := self._differs(one, table, cell))]
        return replace(one, mismatch="; ".join(filter(None, [one.mismatch, *mismatches]))) if mismatches else one

    def _differs(self, one: Tally, table: str | None, cell: int | None) -> str | None:
        axis = self._axes.get((one.digest, table or ""))
        if axis is None or cell is None:
            return None
        stride, classes = axis
        taken_for = classes[cell // stride % len(classes)]
        node_class = self._classify[one.digest](one.node or "").node_class
        if taken_for == node_class:
            return None
        return f"decided as class {taken_for} by {table} where its node is of class {node_class}"
