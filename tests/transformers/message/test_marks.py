"""Marks: what a message asks of its delivery, in the key that every transformer makes."""

from __future__ import annotations

from zlib import crc32

import pytest

from gateway.links.message_to_event import conversion
from native_backend.events.delivery_marks import DeliveryMarks, are_marked, count_from_storage
from native_backend.log.octets import Octets
from transformers.codec import AmqpMap, Described, Symbol, Timestamp, UInt, ULong, encode
from transformers.message.marks import marks
from transformers.message.sections import section_offsets

BODY = encode(Described(ULong(0x75), b"x"))


def annotated(**values: object) -> bytes:
    pairs = [(Symbol(name.replace("_", "-")), value) for name, value in values.items()]
    return encode(Described(ULong(0x72), AmqpMap(pairs)))


def properties(*fields: object) -> bytes:
    return encode(Described(ULong(0x73), list(fields)))


GROUP = properties(*[None] * 10, "g", UInt(7))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (BODY, b""),
        (annotated(x_opt_delivery_time=Timestamp(1700000000000)), b";D1700000000000"),
        (annotated(x_opt_delivery_time=ULong(17)) + BODY, b";D17"),
        (annotated(x_opt_delivery_delay=ULong(250)) + BODY, b";D+250"),
        (annotated(x_opt_delivery_delay=250, x_opt_delivery_time=Timestamp(9)) + BODY, b";D9"),
        (annotated(x_opt_delivery_time="soon") + BODY, b""),
        (annotated(x_opt_delivery_time=True) + BODY, b""),
        (annotated(x_opt_delivery_time=Timestamp(-5)) + BODY, b""),
        (annotated(x_opt_delivery_time=2**60) + BODY, b""),
        (annotated(x_opt_other=5) + BODY, b""),
        (GROUP + BODY, b";GDIGEST"),
        (GROUP, b";GDIGEST"),
        (properties() + BODY, b""),
        (properties(*[None] * 9, Timestamp(1)) + BODY, b""),
        (properties(*[None] * 10, None, UInt(7)) + BODY, b""),
        (annotated(x_opt_delivery_delay=1) + GROUP + BODY, b";D+1;GDIGEST"),
    ],
)
def test_a_message_says_what_it_asks_for(message: bytes, expected: bytes) -> None:
    assert marks(message, section_offsets(message)) == expected.replace(b"DIGEST", _digest())


def _digest() -> bytes:
    return b"%x" % crc32(b"g")


@pytest.mark.parametrize("name", ["none", "basic", "complete"])
def test_every_transformer_marks_and_the_realm_reads_it(name: str) -> None:
    message = annotated(x_opt_delivery_delay=ULong(250)) + GROUP + BODY
    made = conversion(name, "19aa-9c2e", "orders")
    keys, _ = made.columns([BODY, message], 7)
    assert are_marked(keys) and count_from_storage(keys) and not are_marked(keys[:1])
    read = DeliveryMarks(keys, [1000, 2000])
    assert (read.due_ms, read.groups, read.origins) == ([0, 2250], [None, int(_digest(), 16)], None)
    keys, _ = made.marked(0xBEEF).columns([BODY, message], 7)
    assert DeliveryMarks(keys, [0, 0]).origins == [0xBEEF, 0xBEEF]
    assert DeliveryMarks(keys, [0, 0]).due_ms == [0, 250]
    if made.column is not None:
        column = made.column(Octets([message, message, BODY]), 7)
        assert column is not None and [b";D+250;G" in key for key in column] == [True, True, False]


def test_a_time_of_delivery_is_read_where_it_is_not_known_when_each_was_stored() -> None:
    read = DeliveryMarks([b"1;basic;r;1;1;4;;0;;0;D17;G1"], [])
    assert (read.due_ms, read.groups) == ([17], [1])


@pytest.mark.parametrize("key", [None, b"", b"DGO", b"1;basic;r;1;1;4;;0;;0;Dx;Gxyz", b"2;7;3;moved;1;none;r;1;D5;G1"])
def test_other_keys_have_none(key: bytes | None) -> None:
    read = DeliveryMarks([key], [5])
    assert (read.due_ms, read.origins) == (None, None)
    assert read.groups in (None, [None])
