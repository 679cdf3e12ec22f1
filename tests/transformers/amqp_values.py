"""AMQP values of every type, for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from transformers.codec import (
    AmqpMap,
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)


def between(kind: type, low: int, high: int) -> st.SearchStrategy[Any]:
    return st.integers(low, high).map(kind)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    between(UByte, 0, 255),
    between(UShort, 0, 2**16 - 1),
    between(UInt, 0, 2**32 - 1),
    between(ULong, 0, 2**64 - 1),
    between(Byte, -128, 127),
    between(Short, -(2**15), 2**15 - 1),
    between(Int, -(2**31), 2**31 - 1),
    between(Timestamp, -(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(Float),
    st.characters(exclude_categories=["Cs"]).map(Char),
    st.uuids(),
    st.binary(max_size=20),
    st.text(max_size=20),
    st.text(st.characters(max_codepoint=127), max_size=20).map(Symbol),
)


decimals = st.sampled_from((4, 8, 16)).flatmap(lambda size: st.binary(min_size=size, max_size=size)).map(Decimal)


amqp_values = st.recursive(
    scalars | decimals,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(st.tuples(inner, inner), max_size=3).map(AmqpMap),
        st.builds(Described, between(ULong, 0, 2**64 - 1) | st.just(Symbol("amqp:accepted:list")), inner),
        st.lists(st.lists(inner, max_size=2), max_size=3).map(lambda items: Array(0xD0, items)),
        st.lists(st.text(max_size=5), max_size=3).map(lambda items: Array(0xA1, items, [ULong(7)])),
    ),
    max_leaves=8,
)
