"""Fields of small records, as they must be: a damaged record is named, and read no further.

Errors: `LookupError` where a field is missing, `TypeError` where it is something else. `DAMAGED` has all that a reader
of such a record may raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DAMAGED = (LookupError, TypeError, AttributeError, ValueError)
_END = 1 << 63


def number(value: Any) -> int:
    """A whole number of 64 bits."""
    if type(value) is not int or not -_END <= value < _END:
        raise TypeError(f"{_shown(value)} is no whole number")
    return value


def text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{_shown(value)} is no text")
    return value


def text_or_none(value: Any) -> str | None:
    return None if value is None else text(value)


def rows(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError(f"{_shown(value)} is no list")
    return value


def fields(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise TypeError(f"{_shown(value)} is no object")
    return value


def field(record: Mapping[str, Any], name: str) -> Any:
    """Raises LookupError with words for a reader."""
    if name not in record:
        raise LookupError(f"it has no {name}")
    return record[name]


def why(error: Exception) -> str:
    """What is wrong, in a line."""
    return f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error) or type(error).__name__


def _shown(value: Any) -> str:
    return repr(value)[:40]
