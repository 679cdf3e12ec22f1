"""What is acknowledged: apart from what counts, and never left out."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from reconciliation.history.standing import Known
from reconciliation.model.classes import CLASSES
from reconciliation.report import acknowledged as words
from reconciliation.report.pieces.html import number, table
from reconciliation.report.result import Result


def acknowledged(result: Result) -> Iterator[str]:
    if not result.known:
        return
    yield f'<h2 id="acknowledged">Acknowledged</h2><p>In {escape(result.acknowledged_in)}.</p>'
    columns = ("finding", "where", "#messages", "#acknowledged", "until", "by, and why")
    yield from table("acknowledged findings", columns, map(_row, result.known), "stack")


def _row(note: Known) -> list[str]:
    entry, cause = note.said, note.cause
    kind = CLASSES.get(entry.id.partition("-")[0])
    small = f"<small>{escape(kind.name)}</small>" if kind is not None else ""
    name = f'<code class="id">{entry.id}</code>{small}'
    until = f'<span class="bad">{words.until_words(note)}</span>' if note.expired else escape(words.until_words(note))
    standing = words.standing_words(note).removeprefix(". ")
    if cause is None:
        standing = f"It is not found any more: remove the entry, line {entry.line}"
    return [
        name,
        escape(cause.place) if cause is not None else "-",
        number(0 if cause is None else cause.count),
        number(note.covered),
        until,
        f"<b>{escape(entry.by)}</b>: {escape(entry.reason)}"
        + (f'<small class="bad">{escape(standing)}.</small>' if standing else ""),
    ]
