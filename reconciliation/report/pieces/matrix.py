"""Errors told to peers: by AMQP condition and code, with their times, and how many there were in earlier
reconciliations."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from reconciliation.report.error_matrix import Cell, error_cells
from reconciliation.report.pieces.html import number, some, span_of, table
from reconciliation.report.pieces.spark_line import RUNS, spark_line
from reconciliation.report.result import Result

ROWS_MAX = 50


def matrix(result: Result) -> Iterator[str]:
    yield '<h2 id="errors">Errors told to peers</h2>'
    yield "<p>By AMQP condition and the log's code, or the realm's answer. Deliveries within the window.</p>"
    cells = sorted(error_cells(result.judgement.tallies).items(), key=lambda item: (-item[1].count, item[0]))
    if not cells:
        yield '<p class="soft">No delivery met an error.</p>'
        return
    earlier = [
        {(error["condition"], error["code"]): error["deliveries"] for error in step.record.errors}
        for step in result.earlier[-RUNS:]
    ]

    def row(item: tuple[tuple[str, str], Cell]) -> list[str]:
        (condition, code), cell = item
        counts = [errors.get((condition, code), 0) for errors in earlier]
        words = f"<small>{escape('; '.join(sorted(cell.words)[:3]))}</small>" if cell.words else ""
        return [
            f"<code>{escape(condition)}</code>",
            f'<span class="cell {escape(cell.severity)}">{escape(code)}</span>{words}',
            number(cell.count),
            _change(cell.count, counts),
            spark_line([*counts, cell.count], f"{condition} {code}"),
            f"{span_of(cell.at_first, cell.at_last)}<small>{some(sorted(filter(None, cell.nodes)))}</small>",
        ]

    columns = ("condition", "code", "#deliveries", "#before", "earlier", "first and last, nodes")
    yield from table("errors by code", columns, map(row, cells[:ROWS_MAX]), "stack")
    if len(cells) > ROWS_MAX:
        left = sum(cell.count for _, cell in cells[ROWS_MAX:])
        yield f'<p class="soft">And {len(cells) - ROWS_MAX} more codes, of {left:,} deliveries.</p>'
    yield '<p class="soft">Colours: <span class="cell fatal">fatal</span> closes the link, '
    yield '<span class="cell transient">transient</span> does not, <span class="cell none">no class</span>.</p>'


def _change(count: int, counts: list[int]) -> str:
    """Against the reconciliation before. Evidence that was trimmed meanwhile makes it less."""
    if not counts:
        return "-"
    return f"{counts[-1]:,}" if counts[-1] == count else f"{counts[-1]:,}<small>{count - counts[-1]:+,}</small>"
