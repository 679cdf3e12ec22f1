"""The terms of a selector as closures over a message: three-valued logic, comparison, arithmetic, LIKE.

A value is a number (int, float), a string, a truth (bool), something else that AMQP can carry, or unknown (None). What
is unknown makes unknown what is made of it, but for AND with false and OR with true. Values that are not alike (a
number and a string, say) are neither equal nor unequal nor in any order: such a comparison is false. Exact numbers are
Java's long: they wrap, they divide towards zero, and division by zero is unknown; approximate ones are IEEE 754.

Source: JMS 2.0 section 3.8.1.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from transformers.selector.fields import Reader

Operator: TypeAlias = Callable[[Any, Any], Any]
_LONG = 2**63
_WORD = 2**64


def constant(value: Any) -> Reader:
    return lambda message: value


def conjunction(terms: list[Reader]) -> Reader:
    return _decided_by(False, terms)


def disjunction(terms: list[Reader]) -> Reader:
    return _decided_by(True, terms)


def _decided_by(decisive: bool, terms: list[Reader]) -> Reader:
    """The first term with that truth decides; where each has the other one, that is it; else it is unknown."""
    other = not decisive

    def read(message: Any) -> bool | None:
        result: bool | None = other
        for term in terms:
            value = term(message)
            if value is decisive:
                return not other
            if value is not other:
                result = None
        return result

    return read


def negation(term: Reader) -> Reader:
    """What is no truth at all (a name whose value is a number) is unknown here, as in AND and OR."""

    def read(message: Any) -> bool | None:
        value = term(message)
        return not value if isinstance(value, bool) else None

    return read


def comparison(sign: str, left: Reader, right: Reader) -> Reader:
    if sign in ("=", "<>"):
        return _equality(sign == "=", left, right)
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign]

    def read(message: Any) -> bool | None:
        first, second = left(message), right(message)
        if first is None or second is None:
            return None
        return bool(is_number(first) and is_number(second) and compare(first, second))

    return read


def _equality(wanted: bool, left: Reader, right: Reader) -> Reader:
    def read(message: Any) -> bool | None:
        first, second = left(message), right(message)
        if first is None or second is None:
            return None
        alike = (
            (isinstance(first, str) and isinstance(second, str))
            or (is_number(first) and is_number(second))
            or (isinstance(first, bool) and isinstance(second, bool))
        )
        return alike and (first == second) is wanted

    return read


def between(term: Reader, low: Reader, high: Reader) -> Reader:
    return conjunction([comparison(">=", term, low), comparison("<=", term, high)])


def is_null(term: Reader) -> Reader:
    return lambda message: term(message) is None


def is_in(term: Reader, strings: frozenset[str]) -> Reader:
    def read(message: Any) -> bool | None:
        value = term(message)
        return None if value is None else isinstance(value, str) and value in strings

    return read


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- arithmetic


def arithmetic(sign: str, left: Reader, right: Reader) -> Reader:
    calculate: Operator = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided}[sign]

    def read(message: Any) -> Any:
        first, second = left(message), right(message)
        if not is_number(first) or not is_number(second):
            return None
        return _wrapped(calculate(first, second))

    return read


def negative(term: Reader) -> Reader:
    def read(message: Any) -> Any:
        value = term(message)
        return _wrapped(-value) if is_number(value) else None

    return read


def positive(term: Reader) -> Reader:
    def read(message: Any) -> Any:
        value = term(message)
        return value if is_number(value) else None

    return read


def _wrapped(number: Any) -> Any:
    return (number + _LONG) % _WORD - _LONG if isinstance(number, int) else number


def _divided(first: float, second: float) -> float | None:
    if isinstance(first, int) and isinstance(second, int):
        if second == 0:
            return None
        quotient = abs(first) // abs(second)
        return quotient if (first < 0) == (second < 0) else -quotient
    if second == 0:
        if first == 0 or math.isnan(first):
            return math.nan
        return math.copysign(math.inf, first) * math.copysign(1.0, second)
    return first / second


# -- LIKE


def is_like(term: Reader, pattern: str, escape: str | None) -> Reader:
    """`_` is any character, `%` any number of any, `escape` takes the meaning of the next character away
    (also where that has none, as other brokers do). Takes time in proportion to pattern times value, whatever they are.
    ValueError: nothing stands behind the escape character."""
    segments = _segments(pattern, escape)
    first, middle, last = segments[0], [segment for segment in segments[1:-1] if segment], segments[-1]
    if len(segments) == 1:
        whole = re.compile(_expression(first), re.DOTALL).fullmatch
        return _matching(term, lambda value: whole(value) is not None)
    begin = re.compile(_expression(first), re.DOTALL).match
    end = re.compile(_expression(last), re.DOTALL).fullmatch
    finds = [re.compile(_expression(segment), re.DOTALL).search for segment in middle]
    shortest, tail = len(first) + len(last), len(last)

    def matches(value: str) -> bool:
        stop = len(value) - tail
        if len(value) < shortest or not begin(value) or not end(value, stop):
            return False
        at = len(first)
        for find in finds:
            match = find(value, at, stop)
            if match is None:
                return False
            at = match.end()
        return True

    return _matching(term, matches)


def _matching(term: Reader, matches: Callable[[str], bool]) -> Reader:
    def read(message: Any) -> bool | None:
        value = term(message)
        return None if value is None else isinstance(value, str) and matches(value)

    return read


def _segments(pattern: str, escape: str | None) -> list[list[str | None]]:
    """Between the `%`: characters, None for any one."""
    segments: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if not following:
                raise ValueError("the escape character stands before another one")
            segments[-1].append(following)
        elif character == "%":
            segments.append([])
        else:
            segments[-1].append(None if character == "_" else character)
    return segments


def _expression(segment: list[str | None]) -> str:
    return "".join("." if character is None else re.escape(character) for character in segment)
