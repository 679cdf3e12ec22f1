"""How the records of each run are numbered: `transforms.runs.partial`, by rows."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from reconciliation.model.runs import RUN
from reconciliation.summing import shapes
from reconciliation.summing.shapes import BIGINT, NotPlainError
from reconciliation.summing.totals import most

_NAME = re.compile(RUN)
_Start = tuple[int, int, int | None] | None
"""Number and offset of a record, and its `next`."""


class _Run:
    """`first`: offset and time of the first record; `start`: of the outcome record with the lowest number, with its
    `next`."""

    __slots__ = ("ats", "closed", "digests", "first", "low", "numbers", "offsets", "start")

    def __init__(self, offset: int, at: int) -> None:
        self.numbers = array("q")
        self.ats, self.offsets = (at, at), (offset, offset)
        self.first = offset, at
        self.start: _Start = None
        self.low: int | None = None
        self.closed: int | None = None
        self.digests = set[str]()

    def see(self, offset: int, at: int) -> None:
        self.ats, self.offsets = _span(*self.ats, at), _span(*self.offsets, offset)
        self.first = min(self.first, (offset, at))


class Numbered:
    """By run."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def add(self, offset: int, record: dict[str, Any]) -> tuple[str, int]:
        """Its run and its time."""
        name, number, at = record.get("run"), shapes.number(record.get("n")), shapes.number(record.get("at"))
        if type(name) is not str:
            raise NotPlainError
        run = self._runs.get(name)
        if run is None:
            if _NAME.fullmatch(name) is None:
                raise NotPlainError
            run = self._runs[name] = _Run(offset, at)
        run.see(offset, at)
        run.numbers.append(number)
        return name, at

    def add_outcomes(self, offset: int, record: dict[str, Any]) -> tuple[str, int, str]:
        """The same of an outcome record, with the digest of its tables."""
        name, at = self.add(offset, record)
        run, following, digest = self._runs[name], record.get("next"), record.get("digest")
        low, closed = record.get("low"), record.get("closed")
        shapes.numbers_or_none((low, following), BIGINT)
        shapes.numbers_or_none((closed,))
        if low is None:
            raise NotPlainError
        if type(digest) is not str:
            raise NotPlainError
        if digest not in run.digests:
            shapes.texts_or_none((digest,))
            run.digests.add(digest)
        start = record["n"], offset, following
        run.start = _earlier(run.start, start)
        run.low, run.closed = most(run.low, low), most(run.closed, closed)
        return name, at, digest

    def merge(self, others: Numbered) -> None:
        for name, theirs in others._runs.items():
            ours = self._runs.setdefault(name, theirs)
            if ours is theirs:
                continue
            ours.numbers.extend(theirs.numbers)
            ours.offsets = _span(*ours.offsets, *theirs.offsets)
            ours.ats = _span(*ours.ats, *theirs.ats)
            ours.first = min(ours.first, theirs.first)
            ours.start = _earlier(ours.start, theirs.start)
            ours.low, ours.closed = most(ours.low, theirs.low), most(ours.closed, theirs.closed)
            ours.digests |= theirs.digests

    def rows(self, source: str) -> Iterator[dict[str, Any]]:
        for name, run in self._runs.items():
            numbers = np.frombuffer(run.numbers, np.int64)
            row = {
                "source": source, "run": name, "count": len(numbers), "undated": 0,
                "n_first": int(numbers.min()), "n_last": int(numbers.max()), "n_distinct": len(np.unique(numbers)),
                "at_first": run.ats[0], "at_last": run.ats[1],
                "offset_first": run.offsets[0], "offset_last": run.offsets[1], "at_offset_first": run.first[1],
            }  # fmt: skip
            marks = {
                "low": run.low,
                "next": run.start[2] if run.start else None,
                "closed": run.closed,
                "digests": sorted(run.digests),
            }
            yield row | (marks if source == "outcomes" else {})


def _span(*numbers: int) -> tuple[int, int]:
    return min(numbers), max(numbers)


def _earlier(left: _Start, right: _Start) -> _Start:
    return right if left is None else left if right is None else min(left, right, key=lambda start: start[:2])
