"""The rules of the active tables, and what they decided about in this run: `/api/rules`."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

from gateway.admin.answers import Answering, WrongParameter, following, limit_of
from gateway.admin.http import Request, Response
from gateway.session.gateway import Gateway
from mappings import Table

_STEP: Final = 20  # rules without a pause
Row = dict[str, Any]


async def rules(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?limit=&after=&table=`, by table and rule; `hits` is null where nothing is counted. Raises WrongParameter."""
    tables, limit, wanted = gateway.tables, limit_of(request.query), request.query.get("table")
    if wanted is not None and wanted not in tables:
        raise WrongParameter(f"there is no table {wanted[:40]}: {', '.join(tables)}")
    known = (
        (f"{name}.{rule}", (tables[name], rule))
        for name in tables
        for rule in tables[name].rules
        if wanted in (None, name)
    )
    page = await following(known, request.query.get("after"), limit + 1)
    errors = Counter[str]()
    for error, count in [*gateway.outcomes.counters.errors.items()]:
        errors[error.rule] += count
    cells: dict[str, Counter[str]] = {}
    rows: list[Row] = []
    for at, (id_, (table, rule)) in enumerate(page[:limit], 1):
        if table.name not in cells:
            cells[table.name] = _cells(table)
            await asyncio.sleep(0)
        hits = gateway.outcomes.counters.hits(table.name, rule)
        row = {"id": id_, "table": table.name, "rule": rule, "then": dict(table.rules[rule])}
        rows.append({**row, "cells": cells[table.name][rule], "hits": hits, "errors": errors[id_]})
        if at % _STEP == 0:
            await asyncio.sleep(0)
    following_id = rows[-1]["id"] if len(page) > limit else None
    return answering.answer(digest=tables.digest, profile=tables.profile, rules=rows, next=following_id)


def _cells(table: Table) -> Counter[str]:
    """How many combinations of facts meet each rule."""
    return Counter(decision.rule for decision in table.cells if decision is not None)
