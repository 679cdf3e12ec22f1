"""The balance sheet: lines that do not close, or have something wrong in them, then a total, and all others folded.

A line is a sum in words, of what is not 0: so it is never wider than the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from reconciliation.report import summary
from reconciliation.report.balance import DurableBalance, NodeBalance
from reconciliation.report.pieces.html import folded, number, plural, table
from reconciliation.report.pieces.picture import picture
from reconciliation.report.result import Result

ROWS_MAX = 2_000
"""So many lines of one table."""
OPEN_MAX = 30
"""So many lines with something wrong stand before the total; the others are folded."""
BAD = ("anomalies", "unproven", "unread", "skipped", "ended before stored", "lost by retention")
_WORDS = {
    "stored": "in store",
    "retained out": "no longer kept",
    "older": "older than the evidence",
    "native": "of plain producers",
    "unproven": "without evidence",
    "unread": "not readable",
}
Line = tuple[str, str, dict[str, int]]
"""Of what; its kind, partition or level; and its terms, with `difference`."""


def books(result: Result) -> Iterator[str]:
    sheet = result.sheet
    yield '<h2 id="books">Balance sheet</h2>'
    yield "<p>What publishers were told, against what the stores hold. Both sides come from different topics.</p>"
    yield from picture(sheet)
    yield from _sheet([_of_node(node) for node in sheet.nodes], "node")
    yield from (f"<p>{escape(words)}</p>" for words in summary.gone_words(sheet))
    yield "<h2>Queues and durable subscriptions</h2>"
    yield "<p>Every event each of them is entitled to, and what became of it.</p>"
    yield from _sheet([_of_durable(durable) for durable in sheet.durables], "queue or durable")
    yield f"<p>Difference in all: <strong>{sheet.difference:,}</strong> - {summary.difference_words(sheet)}.</p>"


def _of_node(balance: NodeBalance) -> Line:
    row = summary.node_row(balance)
    return balance.node, " ".join(filter(None, (balance.kind, balance.part))), _terms(row)


def _of_durable(balance: DurableBalance) -> Line:
    row = summary.durable_row(balance)
    return f"{balance.node} {balance.durable}", balance.part, _terms(row)


def _terms(row: dict[str, str | int]) -> dict[str, int]:
    """Signs stay before the names: `=` begins the other side."""
    return {name: value for name, value in row.items() if isinstance(value, int)}


def _is_bad(line: Line) -> bool:
    return bool(line[2]["difference"]) or any(value and name.lstrip("+=") in BAD for name, value in line[2].items())


def _sheet(lines: Sequence[Line], noun: str) -> Iterator[str]:
    if not lines:
        yield '<p class="soft">None.</p>'
        return
    bad = sorted(filter(_is_bad, lines), key=lambda line: (-abs(line[2]["difference"]), line[0]))
    others = [line for line in lines if not _is_bad(line)]
    full = [line for line in others if any(line[2].values())]
    total = {name: sum(line[2][name] for line in lines) for name in lines[0][2]}
    total["difference"] = sum(abs(line[2]["difference"]) for line in lines)
    yield from _table([*bad[:OPEN_MAX], (f"All {len(lines):,}", "", total)], noun, "total")
    if len(bad) > OPEN_MAX:
        more = bad[OPEN_MAX : OPEN_MAX + ROWS_MAX]
        yield from folded(f"{plural(len(bad) - OPEN_MAX, noun)} more with something wrong", _table(more, noun))
    if full:
        yield from folded(f"{plural(len(full), noun)} with nothing wrong", _table(full[:ROWS_MAX], noun))
    left = max(0, len(bad) - OPEN_MAX - ROWS_MAX) + max(0, len(full) - ROWS_MAX)
    if left:
        yield f'<p class="soft">{left:,} more are in manifest.json.</p>'
    if len(others) > len(full):
        yield f'<p class="soft">{plural(len(others) - len(full), noun)} without any event.</p>'


def _table(lines: Sequence[Line], noun: str, kind: str = "") -> Iterator[str]:
    def row(line: Line) -> list[str]:
        name, what, terms = line
        place = f"<b>{escape(name)}</b>{f'<small>{escape(what)}</small>' if what else ''}"
        difference = terms["difference"]
        return [place, number(difference, "bad"), "".join(_sum(terms))]

    yield from table(f"the books by {noun}", (noun, "#difference", "sum"), map(row, lines), f"sums {kind}")


def _sum(terms: dict[str, int]) -> Iterator[str]:
    """`10 accepted + 2 in flight = 12 in store`."""
    sides = ["", ""]
    side = 0
    for name, value in terms.items():
        if name == "difference":
            continue
        side = 1 if name.startswith("=") else side
        word = name.lstrip("+=")
        kind = ' class="bad"' if word in BAD else ""
        if value:
            sign = (" - " if value < 0 else " + ") if sides[side] else "-" if value < 0 else ""
            sides[side] += f"{sign}<span{kind}>{abs(value):,} {escape(_WORDS.get(word, word))}</span>"
    yield " = ".join(half or "0" for half in sides)
