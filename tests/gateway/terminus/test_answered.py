"""What is kept of an ATTACH that was answered: what the link goes by, and none of what is large."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.frames.frames import ATTACH, Frame
from gateway.terminus.attach import receiver_settle_mode, sender_settle_mode
from gateway.terminus.termini import agreed_outcomes, answered, read_expiry
from transformers.codec import AmqpMap, Array, Described, Symbol, UByte, UInt, ULong

LARGE = AmqpMap([(Symbol("x"), [None] * 60_000)])
MANY = Array(0xA3, [Symbol(f"c{at}") for at in range(5_000)])


def attach(consumes: bool, outcomes: Any) -> Frame:
    source = Described(ULong(0x28), ["q", UInt(2), Symbol("never"), UInt(9), False, LARGE, Symbol("move"), LARGE,
                                     Described(ULong(0x27), [True, False, LARGE]), outcomes, MANY])  # fmt: skip
    target = Described(ULong(0x29), ["q", UInt(0), Symbol("link-detach"), UInt(0), False, LARGE, MANY])
    fields = ("name", UInt(3), consumes, UByte(1), UByte(1), source, target, LARGE, False, UInt(0), ULong(7), MANY,
              MANY, LARGE)  # fmt: skip
    return Frame(5, ATTACH, fields)


def size(value: Any) -> int:
    """Values within it."""
    if isinstance(value, Described):
        return 1 + size(value.value)
    if isinstance(value, AmqpMap):
        return 1 + sum(size(key) + size(inner) for key, inner in value.pairs)
    if isinstance(value, Array):
        return 1 + sum(map(size, value.items))
    return 1 + sum(map(size, value)) if isinstance(value, list | tuple) else 1


@pytest.mark.parametrize("consumes", [False, True])
@pytest.mark.parametrize(
    ("outcomes", "agreed"),
    [
        (None, None),
        (Symbol("amqp:rejected:list"), {"rejected"}),
        (Array(0xA3, [Symbol("amqp:accepted:list"), *MANY.items]), {"accepted"}),
        (Array(0xA3, [Symbol("amqp:odd:list")]), {"odd"}),
    ],
)
def test_it_says_the_same_of_the_link(consumes: bool, outcomes: Any, agreed: set[str] | None) -> None:
    before = attach(consumes, outcomes)
    after = answered(before)
    assert size(after.fields) < 50 < 60_000 < size(before.fields)
    assert agreed_outcomes(after) == agreed
    assert (after.channel, after.code, after.invalid) == (before.channel, before.code, before.invalid)
    for read in (read_expiry, sender_settle_mode, receiver_settle_mode):
        assert read(after) == read(before)
    assert [after.field(at) for at in (0, 1, 2, 9, 10)] == [before.field(at) for at in (0, 1, 2, 9, 10)]
    assert answered(after).fields == after.fields


def test_a_link_without_termini_is_left_as_it_is() -> None:
    bare = Frame(0, ATTACH, ("name", UInt(3), False, None, None, None, "no terminus"))
    assert answered(bare).fields == bare.fields
