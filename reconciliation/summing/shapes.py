"""Records as they are when a gateway wrote them; anything else is NotPlainError, and Spark makes the sums.

A record that is torn, a number where a text should be, a value too large: what becomes of them is decided once, by
Spark's reader.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

INT, BIGINT = 1 << 31, 1 << 63
_LITERALS: Final = b"true", b"false"
_DEPTH_MAX: Final = 500
"""Spark's parser takes 1,000 levels, orjson a few more. Names of more than 50,000 octets and numbers of more than 1,000
digits, which it does not take either, are not looked for, where they are in fields that are not read."""


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
    if type(record) is not dict:
        raise NotPlainError
    has_literals = any(literal in content for literal in _LITERALS)
    if has_literals or content.count(b"[") + content.count(b"{") > _DEPTH_MAX:
        _check_levels(record)
    return record


def _check_levels(record: dict[str, Any]) -> None:
    level: list[Any] = [record]
    for _ in range(_DEPTH_MAX):
        parts = [part for value in level for part in (value.values() if type(value) is dict else value)]
        if bool in map(type, parts):
            raise NotPlainError
        level = [part for part in parts if type(part) in (dict, list)]
        if not level:
            return
    raise NotPlainError


def check_there(part: Any, names: Iterable[str]) -> None:
    """What every part of a record has."""
    if type(part) is not dict or None in [part.get(name) for name in names]:
        raise NotPlainError


def number(value: Any) -> int:
    """Of 64 bits."""
    if type(value) is not int or not -BIGINT <= value < BIGINT:
        raise NotPlainError
    return value


def texts_or_none(values: Iterable[Any]) -> None:
    """Each is a text that can be written, or missing."""
    for value in values:
        if value is not None:
            if type(value) is not str:
                raise NotPlainError
            value.encode()


def numbers_or_none(values: Iterable[Any], widest: int = INT) -> None:
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
