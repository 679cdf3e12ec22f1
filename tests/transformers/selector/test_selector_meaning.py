"""Selectors against a slow evaluator, written from the text of JMS 2.0 section 3.8 and nothing else: terms that
hypothesis makes up, as text to the parser and as they are to the evaluator."""

from __future__ import annotations

import math
import struct
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformers.selector.selected import matches, message
from transformers.selector.grammar import SelectorError
from transformers.selector.selector import selector

NAMES = ("a", "b", "c", "d", "missing")
VALUES = st.one_of(
    st.integers(-5, 5),
    st.sampled_from([2**62, -(2**63), 2**63 - 1]),
    st.sampled_from([0.0, 1.5, -2.5, 1e300, math.inf]),
    st.text("ab%_'", max_size=4),
    st.booleans(),
    st.none(),
)
MESSAGES = st.fixed_dictionaries(dict.fromkeys(NAMES[:-1], VALUES))
name = st.sampled_from(NAMES).map(lambda n: ("name", n))
number = st.one_of(st.integers(0, 9), st.sampled_from([0.5, 2.0, 1e3])).map(lambda n: ("number", n))
string = st.text("ab%_'", max_size=4).map(lambda s: ("string", s))
truth = st.booleans().map(lambda t: ("truth", t))
numeric = st.recursive(
    st.one_of(name, number),
    lambda inner: st.one_of(
        st.tuples(st.just("arithmetic"), st.sampled_from("+-*/"), inner, inner), st.tuples(st.just("minus"), inner)
    ),
    max_leaves=5,
)
plain = st.one_of(
    st.tuples(st.just("compare"), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), numeric, numeric),
    st.tuples(st.just("compare"), st.sampled_from(["=", "<>"]), name, st.one_of(string, truth)),
    st.tuples(st.just("between"), numeric, numeric, numeric),
    st.tuples(st.just("like"), name, st.text("ab%_", max_size=5)),
    st.tuples(st.just("in"), name, st.lists(st.text("ab'", max_size=2), min_size=1, max_size=3)),
    st.tuples(st.just("null"), name),
    name,
    truth,
)
conditions = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=8,
)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def text_of(term: Any) -> str:
    kind, *rest = term
    if kind in ("name", "number"):
        return str(rest[0])
    if kind == "truth":
        return str(rest[0]).upper()
    if kind == "string":
        return quoted(rest[0])
    if kind in ("arithmetic", "compare"):
        return f"({text_of(rest[1])} {rest[0]} {text_of(rest[2])})"
    if kind in ("minus", "not"):
        return f"({'-' if kind == 'minus' else 'NOT'} {text_of(rest[0])})"
    if kind == "between":
        return "({} BETWEEN {} AND {})".format(*map(text_of, rest))
    if kind == "like":
        return f"({text_of(rest[0])} LIKE {quoted(rest[1])})"
    if kind == "in":
        return f"({text_of(rest[0])} IN ({', '.join(map(quoted, rest[1]))}))"
    if kind == "null":
        return f"({text_of(rest[0])} IS NULL)"
    return f"({text_of(rest[0])} {kind.upper()} {text_of(rest[1])})"


def numbers(*values: Any) -> bool:
    return all(type(value) in (int, float) for value in values)


def value_of(term: Any, given: dict[str, Any]) -> Any:
    kind, *rest = term
    if kind == "name":
        return given.get(rest[0])
    if kind in ("number", "truth", "string"):
        return rest[0]
    if kind == "minus":
        value = value_of(rest[0], given)
        return java(-value) if numbers(value) else None
    if kind == "arithmetic":
        left, right = value_of(rest[1], given), value_of(rest[2], given)
        return calculated(rest[0], left, right) if numbers(left, right) else None
    if kind == "compare":
        return compared(rest[0], value_of(rest[1], given), value_of(rest[2], given))
    if kind == "between":
        value, low, high = (value_of(part, given) for part in rest)
        return both(compared(">=", value, low), compared("<=", value, high))
    if kind == "null":
        return value_of(rest[0], given) is None
    if kind in ("like", "in"):
        value = value_of(rest[0], given)
        if not isinstance(value, str):
            return None if value is None else False
        return value in rest[1] if kind == "in" else fnmatchcase(value, rest[1].replace("%", "*").replace("_", "?"))
    known = [logical(value_of(part, given)) for part in rest]
    if kind == "not":
        return None if known[0] is None else not known[0]
    if kind == "and":
        return both(*known)
    return True if True in known else None if None in known else False


def logical(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def both(left: bool | None, right: bool | None) -> bool | None:
    return False if left is False or right is False else None if left is None or right is None else True


def java(number: Any) -> Any:
    return struct.unpack(">q", (number % 2**64).to_bytes(8))[0] if isinstance(number, int) else number


def calculated(sign: str, left: Any, right: Any) -> Any:
    if sign == "/":
        if isinstance(left, int) and isinstance(right, int):
            return (
                None
                if right == 0
                else java(int(math.copysign(1, left) * math.copysign(1, right)) * (abs(left) // abs(right)))
            )
        if right == 0:
            negative = math.copysign(1, left) * math.copysign(1, right) < 0
            return math.nan if left == 0 or math.isnan(left) else -math.inf if negative else math.inf
        return left / right
    return java({"+": left + right, "-": left - right, "*": left * right}[sign])


def compared(sign: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if numbers(left, right):
        order = {"=": left == right, "<>": left != right, "<": left < right, "<=": left <= right}
        return bool({**order, ">": left > right, ">=": left >= right}[sign])
    if type(left) is not type(right) or sign not in ("=", "<>"):
        return False
    return bool(left == right) is (sign == "=")


@settings(max_examples=600, deadline=None)
@given(conditions, MESSAGES)
def test_agrees_with_the_slow_one(term: Any, given: dict[str, Any]) -> None:
    text = text_of(term)
    assert matches(text, message(**given)) is (value_of(term, given) is True), text


TOKENS = ("a", "1", "2.5", "'x'", "=", "<>", "<", "(", ")", "AND", "OR", "NOT", "IN", "LIKE", "IS", "NULL", "BETWEEN")


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from([*TOKENS, ",", "-", "ESCAPE", "/"])).map(" ".join)))
def test_whatever_the_text_it_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        compiled = selector(text)
    except SelectorError as error:
        assert 0 <= error.position <= len(text)
    else:
        assert len(compiled.select([message(a=1), b"\x00", b""])) == 3
