"""What one reconciliation found, against the one before: what is new, what has grown, what stays, what is gone.

Only anomalies are compared. Nothing is *the same* that the earlier record does not bear out: without one, or where it
has left some out, a finding is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reconciliation.history.cause import Cause
from reconciliation.history.record import LINES_MAX, Record


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that is there now. `more`: its messages that the one before did not have; `reopened`: so many that it
    had as acknowledged are covered by no acknowledgement now; `counts`: those, and what of `more` is not covered."""

    cause: Cause
    more: int
    reopened: int
    counts: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """`before`: the record that it was compared with; None: there was none. `books`: lines that did not close, or not
    by as much; empty: none is new."""

    before: Record | None
    new: Sequence[Change]
    grown: Sequence[Change]
    reopened: Sequence[Change]
    same: Sequence[Cause]
    gone: Sequence[Cause]
    books: Sequence[str]

    @property
    def is_news(self) -> bool:
        """Is there anything that is not acknowledged and was not there before?"""
        return bool(self.books) or any(change.counts for change in (*self.new, *self.grown, *self.reopened))

    @property
    def counts(self) -> dict[str, int]:
        """Findings by what became of them."""
        lists = (self.new, self.grown, self.reopened, self.same, self.gone)
        return dict(zip(("new", "grown", "reopened", "same", "gone"), map(len, lists), strict=True))

    def as_json(self) -> dict[str, Any]:
        """Of each list the first `LINES_MAX`; `counts` are of all."""
        changed = {
            name: [
                {**_named(diff.cause), "more": diff.more, "reopened": diff.reopened, "not_acknowledged": diff.counts}
                for diff in changes[:LINES_MAX]
            ]
            for name, changes in (("new", self.new), ("grown", self.grown), ("reopened", self.reopened))
        }
        stay = {
            name: [_named(cause) for cause in causes[:LINES_MAX]]
            for name, causes in (("same", self.same), ("gone", self.gone))
        }
        before = None if self.before is None else {"at_us": self.before.at_us, "verdict": self.before.verdict}
        news = {"is_news": self.is_news, "books": list(self.books[:LINES_MAX])}
        return {"before": before, "counts": self.counts, **changed, **stay, **news}


def _named(cause: Cause) -> dict[str, Any]:
    named = {"id": cause.id, "class": cause.code, "node": cause.node, "part": cause.part, "durable": cause.durable}
    return {**named, "messages": cause.count, "open": cause.open}


def compare(now: Record, before: Record | None) -> Comparison:
    known = {} if before is None else {finding.id: finding for finding in before.findings}
    new, grown, reopened, same = list[Change](), list[Change](), list[Change](), list[Cause]()
    for cause in now.findings:
        earlier = known.get(cause.id)
        if earlier is None:
            new.append(Change(cause, cause.count, 0, cause.open))
            continue
        more, fresh = (those.without(earlier.members).count for those in (cause.members, cause.uncovered))
        back = max(0, cause.open - fresh - earlier.open)
        change = Change(cause, more, back, fresh + back)
        if more:
            grown.append(change)
        elif back:
            reopened.append(change)
        else:
            same.append(cause)
    there = {finding.id for finding in now.findings}
    gone = [finding for finding in known.values() if finding.id not in there]
    return Comparison(before, new, grown, reopened, same, gone, _open_lines(now, before))


def _open_lines(now: Record, before: Record | None) -> list[str]:
    """Lines of the books that do not close, as they did not before."""
    known = {} if before is None else _lines(before)
    return [f"{line}: {difference:,}" for line, difference in _lines(now).items() if known.get(line) != difference]


def _lines(record: Record) -> dict[str, int]:
    unseen = {"events and publishes that could not be compared with anything": record.books["unseen"]}
    return {**record.books["lines"], **{line: count for line, count in unseen.items() if count}}
