"""Earlier reconciliations of this realm and window, and what has changed since the one before."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from reconciliation.model.window import readable
from reconciliation.report import since
from reconciliation.report.pieces.html import command, number, plural, table
from reconciliation.report.pieces.spark_line import RUNS, spark_line
from reconciliation.report.result import Result
from reconciliation.report.trend import Step

SHOWN = 10
"""So many rows; the bars are of three times as many."""
COMMANDS = ("realmgate reconcile --history --out DIR", "realmgate reconcile --config FILE --out DIR --since-last")
_COLOURS = {"clean": "good", "clean but for acknowledged": "warn"}


def trend(result: Result) -> Iterator[str]:
    yield '<h2 id="trend">Since the reconciliation before</h2>'
    yield from (f'<p class="note">{escape(words)}</p>' for words in result.damaged)
    yield f"<p>{escape(since.heading(result.since))}</p>"
    if result.since.gone:
        names = ", ".join(cause.id for cause in result.since.gone[:SHOWN])
        more = f" and {len(result.since.gone) - SHOWN:,} more" if len(result.since.gone) > SHOWN else ""
        yield f"<p>Gone: {escape(names)}{more}.</p>"
    if result.since.books:
        lines = escape("; ".join(result.since.books))
        yield f'<p class="bad">The books have a line that is new or otherwise: {lines}</p>'
    steps = [*result.earlier[-RUNS:], Step(result.record, result.since)]
    if len(steps) < 2:
        return
    yield f"<p>Anomalies of {plural(len(steps), 'reconciliation')}, those that are acknowledged left out: "
    yield spark_line([step.record.open for step in steps], "anomalies") + "</p>"
    columns = ("when", "verdict", "#anomalies", "#acknowledged", "#new", "#grown", "#gone", "#difference")
    yield from table("reconciliations", columns, map(_row, reversed(steps[-SHOWN:])), "stack")
    yield "".join(f"<p>{command(words)}</p>" for words in COMMANDS)


def _row(step: Step) -> list[str]:
    record, counts = step.record, step.since.counts
    changes = ["-"] * 3 if step.since.before is None else [number(counts[name]) for name in ("new", "grown", "gone")]
    return [
        f"<time>{readable(record.at_us)}</time>",
        f'<span class="{_COLOURS.get(record.verdict, "bad")}">{escape(record.verdict)}</span>',
        number(record.open),
        number(record.messages - record.open),
        *changes,
        number(record.books["difference"], "bad"),
    ]
