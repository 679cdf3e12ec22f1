"""Annotations that are found right in C are right by the general way: never is one taken that this refuses."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.wire import frames
from transformers.codec import AmqpMap, DecodeError, Described, Symbol, Timestamp, UByte, UInt, ULong, decode, encode
from transformers.message.annotation_keys import are_free, check_annotations
from transformers.message.sections import section_offsets

SIMPLE: list[Any] = [
    None, True, False, 7, -1, 1 << 40, ULong(0), ULong(9), UInt(0), UInt(3), UByte(4), 0.5, "plain", b"\xff\x00",
    Symbol("word"), Timestamp(9),
]  # fmt: skip


def section(pairs: list[tuple[Any, Any]], code: int = 0x72) -> bytes:
    return encode(Described(ULong(code), AmqpMap(pairs)))


def is_right(octets: bytes) -> bool:
    try:
        check_annotations(octets + frames.message(), section_offsets(octets + frames.message()))
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize("count", [0, 1, 16, 300])
def test_free_keys_and_simple_values_are_found_right(count: int) -> None:
    octets = section([(Symbol(f"x-opt-{at}"), SIMPLE[at % len(SIMPLE)]) for at in range(count)])
    assert are_free(octets) is True and is_right(octets)


@pytest.mark.parametrize(
    "pair",
    [
        (Symbol("rejected"), "x"), ("x-opt-text", "x"), (ULong(5), "x"), (Symbol("x-op"), "x"),
        (Symbol("x-opt-a"), "\u00fc"), (Symbol("x-opt-a"), ["a", "list"]),
        (Symbol("x-opt-a"), AmqpMap([])), (Symbol("x-opt-a"), "x" * 300),
    ],
)  # fmt: skip
def test_others_are_left_to_the_general_way(pair: tuple[Any, Any]) -> None:
    for pairs in ([pair], [(Symbol("x-opt-b"), 1), pair], [pair, (Symbol("x-opt-b"), 1)]):
        assert are_free(section(pairs)) is False


@given(st.binary(max_size=60), st.integers(0, 2**32 - 1))
def test_what_is_found_right_is_right(octets: bytes, seed: int) -> None:
    """Right ones with octets that were changed, cut off, or put behind."""
    choose = random.Random(seed)
    pairs = [(Symbol(f"x-opt-{at}"), choose.choice(SIMPLE)) for at in range(choose.randrange(6))]
    made = bytearray(section(pairs))
    for octet in octets[:3]:
        made[choose.randrange(len(made))] = octet
    for changed in (bytes(made), bytes(made) + octets[3:4], bytes(made)[: -1 - len(octets) % 3], octets):
        if are_free(changed):
            whole, end = decode(changed)
            assert isinstance(whole, Described) and isinstance(whole.value, AmqpMap) and end == len(changed)
            assert all(isinstance(key, Symbol) and key.startswith("x-opt") for key, _ in whole.value.pairs)


def test_a_cut_section_is_not_read_behind_its_end() -> None:
    octets = section([(Symbol(f"x-opt-{at}"), SIMPLE[at % len(SIMPLE)]) for at in range(40)])
    assert not any(are_free(octets[:end]) for end in range(len(octets)))
