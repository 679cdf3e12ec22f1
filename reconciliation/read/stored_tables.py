"""Are the stored tables those that their digest names (G2), and do the cells that outcomes name say what the outcomes
themselves say (A3)? A cell is a combination of facts: some of them the record has beside it.

Once for each combination, on the driver. Source: docs/records.md "Expanded tables", "Outcomes".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from math import prod
from typing import Any

from reconciliation.model.fields import field, fields, number, rows, text, text_or_none
from reconciliation.model.tally import Tally


def digest_of(document: Mapping[str, Any]) -> str:
    """Of the document as canonical JSON, without `digest` and `stored_us`."""
    content = {key: value for key, value in document.items() if key not in ("digest", "stored_us")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def check_tables(document: Mapping[str, Any]) -> None:
    """Has it the shape of expanded tables, or of reasons for some? Raises what `model.fields` names."""
    text(field(document, "digest"))
    if document.get("stored_us") is not None:
        number(document["stored_us"])
    for table in fields(field(document, "tables")).values():
        for values in fields(field(table, "axes")).values():
            if not [text(value) for value in rows(values)]:
                raise ValueError("an axis has no values")
        for rule in fields(field(table, "rules")).values():
            _check_rule(fields(rule))
        for rule in rows(field(table, "cells")):
            text_or_none(rule)
    classify = document.get("classify")
    for naming in fields(field(classify, "rules")).values() if classify is not None else ():
        text(field(naming, "node_class"))
        for pattern in [*rows(field(naming, "names")), *rows(field(naming, "unless"))]:
            text(pattern)


def _check_rule(then: Mapping[str, Any]) -> None:
    for name in ("native", "in_flight", "outcome", "condition", "class"):
        text_or_none(then.get(name))
    if then.get("failed") not in (None, False, True):
        raise TypeError(f"failed is {then['failed']!r}")


def digest_findings(documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """G2. What was decided by tables that were changed afterwards is held against the wrong ones."""
    findings = []
    for document in documents:
        computed = digest_of(document)
        if computed != document["digest"]:
            text = f"the tables stored under digest {document['digest']} have the digest {computed}: they were changed"
            findings.append({"class": "G2", "count": 1, "at": document.get("stored_us"), "detail": text})
    return findings


def by_digest(documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One for each digest: where several claim it, the one that has it."""
    tables: dict[str, dict[str, Any]] = {}
    for document in documents:
        if document["digest"] not in tables or digest_of(document) == document["digest"]:
            tables[document["digest"]] = dict(document)
    return list(tables.values())


class Cells:
    """The facts that a cell stands for, by digest and table."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self._axes: dict[tuple[str, str], dict[str, list[str]]] = {
            (document["digest"], name): table["axes"]
            for document in documents
            for name, table in document["tables"].items()
        }

    def fact(self, digest: str, table: str | None, cell: int | None, axis: str) -> str | None:
        """Its value on that axis; None where the table has no such axis or cell, or is not known. The first axis is the
        slowest."""
        axes = self._axes.get((digest, table or ""), {})
        if cell is None or axis not in axes or not 0 <= cell < prod(map(len, axes.values())):
            return None
        for name in reversed(axes):
            cell, place = divmod(cell, len(axes[name]))
            if name == axis:
                return axes[name][place]
        raise AssertionError("the axis is one of them")

    def checked(self, tally: Tally, kind: str | None) -> Tally:
        """The same, its mismatch told where the cells say something else than the group. `kind` of the node; None: not
        known."""
        texts = [
            f"{axis} {fact} in the cell of {table}, where the record says {recorded}"
            for table, cell, axis, recorded in _stated(tally, kind)
            if (fact := self.fact(tally.digest, table, cell, axis)) is not None and fact not in recorded.split(" or ")
        ]
        return replace(tally, mismatch="; ".join(filter(None, [tally.mismatch, *texts]))) if texts else tally


_MODES = {"queue": "queue or browse", "channel": "plain or browse"}
"""Of a link without a durable."""


def _stated(tally: Tally, kind: str | None) -> list[tuple[str | None, int | None, str, str]]:
    """Table, cell and axis, and the values that go with the rest of the record."""
    facts: list[tuple[str | None, int | None, str, str]] = []
    if tally.direction == "publish":
        settled = "yes" if tally.presettled else "no"
        facts += [
            (tally.table, tally.cell, "presettled", settled),
            (tally.answer_table, tally.answer_cell, "presettled", settled),
        ]
    else:
        mode = "durable" if tally.durable is not None else _MODES.get(kind or "", "queue or plain or browse")
        facts.append((tally.table, tally.cell, "subscription", mode))
    if tally.answer_table in ("published", "settled") and tally.answer is not None:
        facts.append((tally.answer_table, tally.answer_cell, "answer", tally.answer))
    if tally.answer_table == "settled":
        facts.append((tally.answer_table, tally.answer_cell, "operation", tally.operation))
    return facts
