"""Tables, folds and times, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from reconciliation.model.window import readable


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> Iterator[str]:
    """`columns`: a name that begins with `#` is of numbers. `rows`: HTML. It is as wide as the page, never wider: its
    texts wrap."""
    names = [(name.lstrip("#"), ' class="n"' if name.startswith("#") else "") for name in columns]
    yield f'<table class="fit {kind}"><caption class="sr">{escape(caption)}</caption><thead><tr>'
    yield "".join(f'<th scope="col"{align}>{escape(name)}</th>' for name, align in names) + "</tr></thead><tbody>"
    for row in rows:
        # a narrow screen shows each cell in a line of its own, with its name before it
        cells = (
            f'<td{align} data-name="{escape(name)}">{cell}</td>' for (name, align), cell in zip(names, row, strict=True)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def folded(summary: str, content: Iterable[str], is_open: bool = False) -> Iterator[str]:
    yield f"<details{' open' if is_open else ''}><summary>{escape(summary)}</summary>"
    yield from content
    yield "</details>"


def command(words: str) -> str:
    """One click takes all of it."""
    return f'<code class="cmd">{escape(words)}</code>'


def number(value: int, kind: str = "") -> str:
    """`kind`: how it is shown where it is not 0."""
    if value == 0:
        return '<span class="zero">0</span>'
    return f'<span class="{kind}">{value:,}</span>' if kind else f"{value:,}"


def span_of(first: int | None, last: int | None) -> str:
    """From when to when, in microseconds since 1970."""
    if first is None or last is None:
        return '<span class="soft">no time is known</span>'
    if readable(first) == readable(last):
        return f"<time>{readable(first)}</time>"
    return f"<time>{readable(first)}</time> to <time>{readable(last)}</time>"


def some(names: Sequence[str], shown: int = 3) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(f"<b>{escape(name)}</b>" for name in names[:shown]) + more


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"
