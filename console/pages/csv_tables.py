"""The tables of a document as CSV: the rows that JSON has, under the same names.

A cell that a spreadsheet would take for a formula begins with an apostrophe: what peers call themselves is in cells.
Source: RFC 4180; OWASP, "CSV Injection". Errors: none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

Rows = Sequence[Mapping[str, Any]]
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "|", "%")
_NAMES: Final[Mapping[tuple[str, ...], str]] = {
    ("open", "first"): "problems",
    ("letters", "rows"): "letters",
    ("commands", "rows"): "commands",
    ("matrix", "rows"): "matrix",
}
_FRAME: Final = ("gateways", "silent", "digests", "profiles", "problems")
"""What every page has."""
_INNER: Final = ("class", "table")
"""What a table of several alike is called by."""


def tables(document: Mapping[str, Any]) -> dict[str, Rows]:
    """By name, in the order of the page. A list of nothing is a table of no row."""
    by_name: dict[str, Rows] = {}
    for name, rows in _walk(document, ()):
        by_name.setdefault(name, rows)
    return by_name


def first_of(tables_by_name: Mapping[str, Rows]) -> str:
    """The page's own first one."""
    return next((name for name in tables_by_name if name not in _FRAME), _FRAME[-1])


def _walk(document: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Rows]]:
    for key, value in document.items():
        if isinstance(value, Mapping) and len(path) < 2:
            yield from _walk(value, (*path, key))
        elif isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
            inner = [table for table in value if isinstance(table.get("rows"), list)]
            if inner:
                for table in inner:
                    yield str(next((table[name] for name in _INNER if name in table), key)), table["rows"]
            else:
                yield _NAMES.get((*path, key), key), value


def as_csv(rows: Rows) -> str:
    """With a line of titles; empty: there is no row."""
    out = io.StringIO()
    titles = [*dict.fromkeys(title for row in rows for title in row)]
    writer = csv.writer(out)
    if titles:
        writer.writerow([_harmless(title) for title in titles])
    writer.writerows([_cell(row.get(title)) for title in titles] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A number stays one; a list of words is one text, and what is more than that is JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if isinstance(value, list) and all(isinstance(word, str | int | float) for word in value):
        value = "; ".join(map(str, value))
    return _harmless(value if isinstance(value, str) else orjson.dumps(value).decode())


def _harmless(text: str) -> str:
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_FORMULA) or text.startswith(_FORMULA) else text
