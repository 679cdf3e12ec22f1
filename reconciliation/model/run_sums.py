"""How runs are numbered over several links, on the driver: what each link has of a run is added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from reconciliation.model.runs import Numbering


class RowsNeededError(Exception):
    """Partial aggregates cannot tell it: all rows are judged. The text says why."""


def added(parts: Iterable[Any], notes: Mapping[str | None, Any]) -> list[Numbering]:
    """`parts`: rows of `transforms.runs.partial`; `notes`: of `added_notes`, by run. Raises RowsNeededError where they
    cannot tell how many different numbers there are."""
    runs: dict[tuple[str, str], list[Any]] = {}
    for part in parts:
        if part["run"] is None or part["undated"]:
            raise RowsNeededError("some records cannot be read")
        runs.setdefault((part["source"], part["run"]), []).append(part)
    return [_numbering(rows, notes.get(run) if source == "journal" else None) for (source, run), rows in runs.items()]


def _numbering(rows: list[Any], noted: Any) -> Numbering:
    """Numbers of different links are different where those of one follow those of the other."""
    by_number = sorted(rows, key=lambda row: (row["n_first"], row["n_last"]))
    if any(right["n_first"] <= left["n_last"] for left, right in pairwise(by_number)):
        raise RowsNeededError(f"records of run {rows[0]['run']} are there twice, or in another order")
    first = min(rows, key=lambda row: row["offset_first"])
    at_last = max(row["at_last"] for row in rows)
    return Numbering(
        source=first["source"],
        run=first["run"],
        records=sum(row["count"] for row in rows),
        n_first=by_number[0]["n_first"],
        n_last=by_number[-1]["n_last"],
        n_distinct=sum(row["n_distinct"] for row in rows),
        at_first=min(row["at_first"] for row in rows),
        at_last=at_last,
        low=_most(rows, "low"),
        offset_first=first["offset_first"],
        at_offset_first=first["at_offset_first"],
        next=by_number[0]["next"],
        closed=_most(rows, "closed"),
        digests=tuple(sorted({digest for row in rows for digest in row["digests"] or ()})),
        recorded=noted["recorded"] if noted is not None else None,
        offset_last=max(row["offset_last"] for row in rows),
        at_read=at_last,
        noted_old=noted["noted_old"] if noted is not None else None,
        noted_young=noted["noted_young"] if noted is not None else None,
    )


def _most(rows: list[Any], name: str) -> int | None:
    return max((row[name] for row in rows if row[name] is not None), default=None)
