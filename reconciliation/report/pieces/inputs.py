"""What was read: runs and offsets."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from reconciliation.model.window import readable
from reconciliation.report.pieces.html import folded, table
from reconciliation.report.result import Result

ROWS_MAX = 2_000


def inputs(result: Result) -> Iterator[str]:
    runs, ranges = result.judgement.runs, result.landed.extent.ranges
    yield "<h2>What was read</h2>"
    yield from folded(f"{len(runs):,} runs of gateways, {len(ranges):,} partitions of topics", _lists(result))


def _lists(result: Result) -> Iterator[str]:
    runs, ranges = result.judgement.runs[-ROWS_MAX:], result.landed.extent.ranges[:ROWS_MAX]
    of_runs = (
        [
            f"<code>{escape(run.name)}</code>",
            run.state,
            f"{run.low:,}",
            f"<time>{readable(run.at_first)}</time>",
            f"<time>{readable(run.at_last)}</time>",
        ]
        for run in runs
    )
    yield from table("runs of gateways", ("run", "state", "#judged below seq", "from", "to"), of_runs)
    of_ranges = (
        [f"<code>{escape(row.topic)}</code>", f"{row.partition}", f"{row.first:,}", f"{row.end:,}"] for row in ranges
    )
    yield from table("offsets that were read", ("topic", "#partition", "#from", "#to"), of_ranges)
    left = len(result.judgement.runs) - len(runs) + len(result.landed.extent.ranges) - len(ranges)
    if left:
        yield f'<p class="soft">{left:,} more are in manifest.json.</p>'
