"""Records as they are when a gateway wrote them; anything else is NotPlainError, and Spark makes the sums.

Spark's own reader knows what to make of a record that is torn, of a number where a text should be, of a value too
large. To know it here as well would be a second reader of everything that may be wrong.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

_WIDEST: Final = 1 << 31
_LITERALS: Final = b"true", b"false"


class NotPlainError(Exception):
    """A record that is not of the plain shape."""


def record_of(content: bytes | None) -> dict[str, Any]:
    """A mapping without any `true` or `false`: Python takes them for numbers."""
    if content is None:
        raise NotPlainError
    try:
        record = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise NotPlainError from None
    if type(record) is not dict or (any(literal in content for literal in _LITERALS) and _has_literals(record)):
        raise NotPlainError
    return record


def _has_literals(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_literals(part) for part in value.values())
    if isinstance(value, list):
        return any(_has_literals(part) for part in value)
    return isinstance(value, bool)


def number(value: Any) -> int:
    if type(value) is not int:
        raise NotPlainError
    return value


def texts_or_none(values: Iterable[Any]) -> None:
    """Each is a text that can be written, or missing."""
    for value in values:
        if value is not None:
            if type(value) is not str:
                raise NotPlainError
            value.encode()


def numbers_or_none(values: Iterable[Any], widest: int = _WIDEST) -> None:
    """Each is a whole number below `widest`, or missing."""
    for value in values:
        if value is not None and (type(value) is not int or not -widest <= value < widest):
            raise NotPlainError


def rows_of(value: Any) -> Sequence[Any]:
    if type(value) is not list:
        raise NotPlainError
    return value


def extend(column: array[int], numbers: Sequence[Any]) -> None:
    """Raises NotPlainError where one is no whole number of 64 bits."""
    try:
        column.extend(numbers)
    except (TypeError, OverflowError):
        raise NotPlainError from None
