"""The result as one HTML page: no script, no outside resource; light and dark, wide and narrow.

What is wrong comes first, then what is acknowledged, what has changed, the books, errors, what was checked and what was
read. Each is a piece of its own (`reconciliation.report.pieces`). Nothing is wider than the page.
"""

from __future__ import annotations

from importlib.resources import files

from reconciliation.report.pieces.acknowledged import acknowledged
from reconciliation.report.pieces.books import books
from reconciliation.report.pieces.checks import checks
from reconciliation.report.pieces.findings import findings, informational
from reconciliation.report.pieces.head import head
from reconciliation.report.pieces.inputs import inputs
from reconciliation.report.pieces.matrix import matrix
from reconciliation.report.pieces.trend import trend
from reconciliation.report.result import Result

_STYLE = files("reconciliation.report") / "page.css"
PIECES = (head, findings, acknowledged, trend, books, matrix, informational, checks, inputs)


def render(result: Result) -> str:
    title = f"{result.verdict.title.capitalize()} - realmgate reconciliation"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>\n{_STYLE.read_text()}</style>\n</head>\n<body>\n<main>",
            *(part for piece in PIECES for part in piece(result)),
            "</main>\n</body>\n</html>\n",
        ]
    )
