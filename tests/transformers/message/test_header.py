"""The header as it is read, and as it is written for another delivery."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformers.messages import Built, headers, messages, slow_offsets
from transformers import redelivered_header
from transformers.codec import DecodeError, Described, Symbol, UByte, UInt, decode, encode
from transformers.message.header import Header, read_header

DATA = encode(Described(0x75, b"body"))


def header(*fields: Any) -> bytes:
    return encode(Described(0x70, list(fields)))


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (header(), Header(False, 4, None, False, 0)),
        (header(True), Header(True, 4, None, False, 0)),
        (header(None, UByte(9), UInt(5)), Header(False, 9, 5, False, 0)),
        (header(True, UByte(0), UInt(2**32 - 1), True, UInt(7)), Header(True, 0, 2**32 - 1, True, 7)),
        (encode(Described(Symbol("amqp:header:list"), [True])), Header(True)),
    ],
)
def test_reading(section: bytes, expected: Header) -> None:
    assert read_header(section) == expected


@pytest.mark.parametrize(
    "section",
    [
        header(1),
        header(True, 4),
        header(True, UInt(4)),
        header(True, UByte(4), 1000),
        header(None, None, None, UByte(1)),
        header(None, None, None, None, 1),
        header(None, None, None, None, None, None),
        header(True) + b"\x40",
        encode(Described(0x70, {"durable": True})),
        b"\x00\x53\x70\xc0\x02\x01\x56",
        header(True, Symbol("x" * 80)),
    ],
)
def test_a_header_of_wrong_types_is_none(section: bytes) -> None:
    with pytest.raises(DecodeError):
        read_header(section)


@settings(max_examples=200, deadline=None)
@given(headers())
def test_reading_every_encoding(built: tuple[tuple[object, ...], bytes]) -> None:
    expected, octets = built
    assert tuple(read_header(b"\x00\x53\x70" + octets)) == expected


def fields_of(message: bytes) -> list[Any]:
    return list(decode(message)[0].value)


def test_a_first_delivery_is_the_same_object() -> None:
    for message in (DATA, header(True) + DATA):
        assert redelivered_header(message, 0, False) is message


def test_no_header_is_inserted_that_would_say_nothing() -> None:
    assert redelivered_header(DATA, 0, True) == DATA


def test_a_count_is_inserted_before_everything() -> None:
    again = redelivered_header(DATA, 2, True)
    assert again.endswith(DATA)
    assert fields_of(again) == [None, None, None, None, 2]


def test_a_count_adds_to_the_publishers() -> None:
    again = redelivered_header(header(True, UByte(9), UInt(60000), True, UInt(3)) + DATA, 2, True)
    assert fields_of(again) == [True, 9, 60000, False, 5]
    assert again.endswith(DATA)


def test_first_acquirer_alone() -> None:
    assert fields_of(redelivered_header(header(True, None, None, True) + DATA, 0, True)) == [
        True,
        None,
        None,
        False,
        None,
    ]
    assert fields_of(redelivered_header(header(None, None, None, True) + DATA, 1, False))[3] is True


def test_what_is_false_anyhow_is_not_written() -> None:
    assert fields_of(redelivered_header(header(True) + DATA, 1, True))[3] is None
    for section in (header(True), header(True, None, None, False), header()):
        assert redelivered_header(section + DATA, 0, True) == section + DATA


def test_kept_fields_keep_their_octets() -> None:
    odd = b"\x00\x80\0\0\0\0\0\0\0\x70" + b"\xd0\0\0\0\x0d\0\0\0\x03" + b"\x56\x01" + b"\x50\x04" + b"\x70\0\0\0\x05"
    again = redelivered_header(odd + DATA, 1, False)
    assert (
        again
        == odd[:10] + b"\xc0\x0d\x05" + b"\x56\x01" + b"\x50\x04" + b"\x70\0\0\0\x05" + b"\x40" + b"\x52\x01" + DATA
    )


def test_the_count_stays_in_its_type() -> None:
    full = header(None, None, None, None, UInt(2**32 - 1))
    assert fields_of(redelivered_header(full + DATA, 5, True))[4] == 2**32 - 1
    assert fields_of(redelivered_header(DATA, 2**40, True))[4] == 2**32 - 1


@pytest.mark.parametrize(
    "noise", [b"", b"garbage", b"\x00\x53\x70\xc0", b"\x00\x53\x70\xc0\xff" + b"x" * 300, header(7) + DATA]
)
def test_what_is_no_message_comes_back(noise: bytes) -> None:
    assert redelivered_header(noise, 1, True) == noise


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80) | messages().map(lambda built: built.octets), st.integers(0, 3), st.booleans(), st.data())
def test_noise_never_raises(octets: bytes, failed: int, again: bool, data: st.DataObject) -> None:
    noise = bytearray(octets)
    if noise:
        noise[data.draw(st.integers(0, min(20, len(noise) - 1)))] = data.draw(st.integers(0, 255))
    redelivered_header(bytes(noise), failed, again)


@settings(max_examples=300, deadline=None)
@given(messages(), st.integers(0, 300), st.booleans())
def test_only_the_header_changes(built: Built, failed: int, again: bool) -> None:
    value = built.without(0x71)
    delivered = redelivered_header(value, failed, again)
    offsets = slow_offsets(delivered)
    assert offsets is not None
    end = min(offset for offset in offsets[1:] if offset >= 0) if offsets[0] == 0 else 0
    assert delivered[end:] == built.without(0x70, 0x71), "the bare message and its annotations are bit-identical"
    durable, priority, ttl, first, count = built.header
    new_header = read_header(delivered[:end]) if end else Header()
    assert new_header[:3] == (durable, priority, ttl)
    assert new_header.delivery_count == min(int(str(count)) + failed, 2**32 - 1)
    assert new_header.first_acquirer == (first and not again)
