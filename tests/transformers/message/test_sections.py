"""Section offsets agree with the slow reader, on whole, cut, altered and random messages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformers.messages import NAMES, Built, descriptors, messages, slow_offsets
from transformers.codec import DecodeError, Described, Symbol, UByte, UInt, encode
from transformers.message.sections import section_offsets, sole_body_content, without_delivery_annotations


def offsets_of(message: bytes) -> tuple[int, ...] | None:
    try:
        return section_offsets(message)
    except DecodeError:
        return None


HEADER = encode(Described(0x70, [True, UByte(7), UInt(1000)]))
DELIVERY = encode(Described(0x71, {Symbol("x-opt-a"): 1}))
ANNOTATIONS = encode(Described(0x72, {Symbol("x-opt-b"): 2}))
PROPERTIES = encode(Described(0x73, ["id", b"user", "to"]))
APPLICATION = encode(Described(0x74, {"k": "v"}))
DATA = encode(Described(0x75, b"x" * 20))
LARGE = encode(Described(0x75, b"x" * 300))
SEQUENCE = encode(Described(0x76, [1, 2]))
VALUE = encode(Described(0x77, {"a": [1]}))
FOOTER = encode(Described(0x78, {Symbol("x-opt-hash"): b"h"}))


@pytest.mark.parametrize(
    ("message", "offsets"),
    [
        (DATA, (-1, -1, -1, -1, -1, 0, -1)),
        (HEADER + DATA, (0, -1, -1, -1, -1, len(HEADER), -1)),
        (HEADER + PROPERTIES + LARGE, (0, -1, -1, len(HEADER), -1, len(HEADER + PROPERTIES), -1)),
        (ANNOTATIONS + VALUE, (-1, -1, 0, -1, -1, len(ANNOTATIONS), -1)),
        (SEQUENCE + SEQUENCE + FOOTER, (-1, -1, -1, -1, -1, 0, 2 * len(SEQUENCE))),
        (DATA + LARGE + DATA, (-1, -1, -1, -1, -1, 0, -1)),
        (HEADER, (0, -1, -1, -1, -1, len(HEADER), -1)),
        (HEADER + PROPERTIES, (0, -1, -1, len(HEADER), -1, len(HEADER + PROPERTIES), -1)),
        (FOOTER, (-1, -1, -1, -1, -1, 0, 0)),
    ],
)
def test_places(message: bytes, offsets: tuple[int, ...]) -> None:
    assert section_offsets(message) == offsets == slow_offsets(message)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "without a section"),
        (VALUE + VALUE, "after"),
        (DATA + SEQUENCE, "goes on"),
        (SEQUENCE + DATA, "after"),
        (DATA + VALUE, "goes on"),
        (PROPERTIES + HEADER + DATA, "after"),
        (HEADER + HEADER + DATA, "after"),
        (DATA + b"\x00", "truncated"),
        (DATA + b"garbage", "no section"),
        (DATA[:-1], "truncated"),
        (b"\x00\x53\x79\xc1\x01\x00" + DATA, "no message section"),
        (b"\x00\x53\x70\xc1\x01\x00" + DATA, "cannot hold"),
        (b"\x00\x53\x75\xa1\x01x", "cannot hold"),
        (b"\x00\xa1\x10amqp:header:list\x45" + DATA, "no message section"),  # a string is no symbol
        (b"\x00\x45\x45" + DATA, "descriptor"),
        (b"\x00" * 5000, "nested"),
    ],
)
def test_malformed_says_why(message: bytes, reason: str) -> None:
    assert slow_offsets(message) is None if len(message) < 5000 else True
    with pytest.raises(DecodeError, match=reason):
        section_offsets(message)


@settings(max_examples=300, deadline=None)
@given(messages())
def test_every_encoding_is_found(built: Built) -> None:
    offsets = section_offsets(built.octets)
    assert offsets == slow_offsets(built.octets)
    assert offsets[5] == built.offset(0x75, 0x76, 0x77)
    assert [offsets[i] for i in (0, 1, 2, 3, 4)] == [built.offset(code) for code in (0x70, 0x71, 0x72, 0x73, 0x74)]
    assert offsets[6] == built.offset(0x78)


@settings(max_examples=60, deadline=None)
@given(messages())
def test_every_truncation_agrees(built: Built) -> None:
    for size in range(len(built.octets)):
        cut = built.octets[:size]
        assert offsets_of(cut) == slow_offsets(cut), cut.hex()


@settings(max_examples=300, deadline=None)
@given(messages(), st.data())
def test_one_altered_octet_agrees(built: Built, data: st.DataObject) -> None:
    octets = bytearray(built.octets)
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    # The descriptor of an altered message may be an AMQP value that only a full decode refuses; both call it malformed.
    assert offsets_of(bytes(octets)) == slow_offsets(bytes(octets)), octets.hex()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(sorted(NAMES)).flatmap(descriptors) | st.binary(max_size=12), max_size=6))
def test_random_octets_never_raise_another_error(pieces: list[bytes]) -> None:
    octets = b"".join(pieces)
    assert offsets_of(octets) == slow_offsets(octets)


@settings(max_examples=200, deadline=None)
@given(messages())
def test_delivery_annotations_are_cut_and_nothing_else(built: Built) -> None:
    value, offsets = without_delivery_annotations(built.octets, section_offsets(built.octets))
    assert value == built.without(0x71)
    assert offsets == section_offsets(value)
    if built.offset(0x71) < 0:
        message = built.octets
        assert without_delivery_annotations(message, section_offsets(message))[0] is message


@settings(max_examples=200, deadline=None)
@given(messages(), st.data())
def test_messages_of_one_shape_have_the_same_sections(built: Built, data: st.DataObject) -> None:
    message, offsets = built.octets, section_offsets(built.octets)
    content = sole_body_content(message, offsets[5])
    bodies = sum(code in (0x75, 0x76, 0x77) for code, _ in built.sections)
    if offsets[6] >= 0 or bodies > 1:
        assert content == 0
    if content:
        rest = len(message) - content
        other = message[:content] + data.draw(st.binary(min_size=rest, max_size=rest))
        assert section_offsets(other) == offsets


def test_frequent_shapes_have_a_content_offset() -> None:
    for body, skip in ((DATA, 5), (LARGE, 8), (encode(Described(0x77, "text")), 5), (encode(Described(0x77, b"b")), 5)):
        message = HEADER + body
        assert sole_body_content(message, len(HEADER)) == len(HEADER) + skip
    assert sole_body_content(HEADER + DELIVERY + DATA, len(HEADER + DELIVERY)) == len(HEADER + DELIVERY) + 5
