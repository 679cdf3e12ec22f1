"""The history of verdicts: a line for each reconciliation, and what was new in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciliation.history.compared import Comparison, compare
from reconciliation.history.kept import KEPT, Kept
from reconciliation.history.record import Record
from reconciliation.model.window import BEGINNING, END, readable

_HEADER = ("when", "verdict", "findings", "messages", "acknowledged", "new", "grown", "gone", "books", "window")


@dataclass(frozen=True, slots=True)
class Step:
    """One reconciliation and what changed. The first of its realm and window has nothing before it, and so has one
    behind a record that is damaged."""

    record: Record
    since: Comparison


def steps(kept: Kept) -> list[Step]:
    """The oldest first, as the records are."""
    pairs = zip(kept.records, kept.before_each(), strict=True)
    return [Step(record, compare(record, before)) for record, before in pairs]


def write(kept: Kept) -> str:
    """For a terminal."""
    lines = [f"{kept.directory}: {len(kept.records)} records; the newest {KEPT} are kept."]
    if kept.records:
        rows = [_HEADER, *(_row(step) for step in steps(kept))]
        widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADER))]
        for row in rows:
            cells = (
                text.rjust(width) if 2 <= at <= 8 else text.ljust(width)
                for at, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append(f"  {'  '.join(cells)}".rstrip())
    return "\n".join([*lines, *kept.words_of_damaged()]) + "\n"


def _row(step: Step) -> tuple[str, ...]:
    record, counts = step.record, step.since.counts
    first = step.since.before is None
    numbers = [len(record.findings) + record.left_out, record.messages, record.messages - record.open]
    changes = ["-" if first else f"{counts[name]:,}" for name in ("new", "grown", "gone")]
    difference = record.books["difference"]
    books = f"{difference:,}" if difference else "close"
    since, until = record.window["since_us"], record.window["until_us"]
    everything = (since, until) == (BEGINNING, END)
    ends = (readable(since) if since != BEGINNING else "", readable(until) if until != END else "")
    window = "all" if everything else " to ".join(ends).strip()
    return (readable(record.at_us), record.verdict, *(f"{number:,}" for number in numbers), *changes, books, window)


def document(kept: Kept) -> dict[str, Any]:
    """For programs."""
    return {
        "v": 1,
        "directory": kept.directory,
        "kept": KEPT,
        "runs": [
            {
                "file": name,
                "at_us": step.record.at_us,
                "took_s": step.record.took_s,
                "verdict": step.record.verdict,
                "sentence": step.record.sentence,
                "complete": step.record.complete,
                "window": step.record.window,
                "findings": len(step.record.findings) + step.record.left_out,
                "messages": step.record.messages,
                "acknowledged": step.record.messages - step.record.open,
                "classes": step.record.classes,
                "books": step.record.books,
                "sources": step.record.sources,
                "errors": step.record.errors,
                "versions": step.record.versions,
                "since": step.since.as_json(),
            }
            for name, step in zip(kept.names, steps(kept), strict=True)
        ],
        "damaged": [{"file": file.name, "why": file.why} for file in kept.damaged],
    }
