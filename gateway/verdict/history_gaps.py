"""Times of which the history has no record: what was counted then is not known, and is never 0 instead.

The records of a run follow one another without a gap, so a gap lies between two runs, before the first one or behind
the last one. Microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.verdict.history import MINUTE_US, HistoryRow, RunTime

STOPPED: Final = "stopped"
KILLED: Final = "killed"
NOT_KEPT: Final = "not kept"
NONE: Final = "none"
SILENT: Final = "silent"
WORDS: Final = {
    STOPPED: "the gateway was down, stopped in order",
    KILLED: "the gateway was killed or cut off; its last minute is not counted",
    NOT_KEPT: "none is kept, or none was written",
    NONE: "none was written",
    SILENT: "the gateway does not answer, so what it wrote is not known",
}


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """`why`: a key of `WORDS`."""

    begin_us: int
    end_us: int
    why: str

    @property
    def words(self) -> str:
        return WORDS[self.why]


def gaps(rows: Sequence[HistoryRow], begin_us: int, end_us: int, known_us: int | None) -> list[Gap]:
    """Within that time, of the rows of one gateway. `end_us`: not later than its answer. `known_us`: when the oldest
    record begins; None: there is none."""
    runs = _whole_runs(rows)
    kept_us = end_us if known_us is None else min(max(known_us, begin_us), end_us)
    listed = [Gap(begin_us, kept_us, NOT_KEPT)]
    at_us, why = kept_us, NONE
    for run in runs:
        listed.append(Gap(at_us, min(run.begin_us, end_us), why))
        if run.end_us >= at_us:
            at_us, why = run.end_us, STOPPED if run.closed else KILLED
    if not runs or end_us - at_us > under_way_us(rows):
        listed.append(Gap(at_us, end_us, why))
    return [gap for gap in listed if gap.end_us > gap.begin_us]


def _whole_runs(rows: Iterable[HistoryRow]) -> list[RunTime]:
    """Each run with all its rows, by its beginning."""
    runs: dict[str, RunTime] = {}
    for span in (run for row in rows for run in row.runs):
        known = runs.get(span.run, span)
        begin_us, end_us = min(known.begin_us, span.begin_us), max(known.end_us, span.end_us)
        runs[span.run] = RunTime(span.run, begin_us, end_us, known.closed or span.closed)
    return sorted(runs.values(), key=lambda span: span.begin_us)


def under_way_us(rows: Sequence[HistoryRow]) -> int:
    """So long the newest record may be ago while all is well: two intervals, or two minutes."""
    covered_us = sum(run.end_us - run.begin_us for row in rows for run in row.runs)
    records = sum(row.numbers["records"] for row in rows)
    return 2 * max(MINUTE_US, covered_us // records if records else 0)
