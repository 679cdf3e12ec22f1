"""The transformers `none` and `basic`: keys and values of whole columns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformers.messages import Built, messages, slow_offsets
from transformers import TRANSFORMERS, transformer
from transformers.codec import Described, Symbol, UByte, UInt, decode, encode
from transformers.message.header import read_header

RUN = b"19aa5b3c1f0-9c2e"
BASIC, NONE = b"1;basic;" + RUN + b";", b"1;none;" + RUN + b";"
HEADER = encode(Described(0x70, [True, UByte(7), UInt(60000)]))
DELIVERY = encode(Described(0x71, {Symbol("x-opt-a"): 1}))
DATA = encode(Described(0x75, b"x" * 100))


def properties(number: int) -> bytes:
    return encode(Described(0x73, [f"id-{number:06}"]))


def test_the_names() -> None:
    assert {name: transformer(name).name for name in TRANSFORMERS} == {"none": "none", "basic": "basic"}
    with pytest.raises(KeyError):
        transformer("complete")  # makes events with headers: `event_transformer`


def test_basic_key() -> None:
    message = HEADER + properties(1) + encode(Described(0x74, {"a": 1})) + DATA
    keys, values = transformer("basic").transform_columns([message], BASIC, 42)
    body = message.index(b"\x00\x53\x75")
    application = message.index(b"\x00\x53\x74")
    assert keys == [BASIC + b"42;1;7;T60000;%d;%d;%d" % (len(HEADER), application, body)]
    assert values[0] is message


def test_defaults_of_an_absent_header() -> None:
    assert transformer("basic").transform_columns([DATA], BASIC, 1)[0] == [BASIC + b"1;0;4;;;;0"]


def test_none_key() -> None:
    keys, values = transformer("none").transform_columns([DATA, HEADER + DATA], NONE, 9)
    assert keys == [NONE + b"9", NONE + b"10"]
    assert values[0] is DATA


@pytest.mark.parametrize("name", sorted(TRANSFORMERS))
@pytest.mark.parametrize("message", [b"", HEADER[:-1], b"garbage", DATA[:-1], HEADER + HEADER + DATA, DATA + b"\0"])
def test_null_events_keep_their_place(name: str, message: bytes) -> None:
    keys, values = transformer(name).transform_columns([DATA, message, DATA], b"p;", 1)
    assert (keys[1], values[1]) == (None, None)
    assert [key is not None for key in keys] == [True, False, True]
    assert str(keys[2]).split(";")[1].startswith("3")


def test_a_header_of_wrong_types_is_a_null_event_for_basic_only() -> None:
    message = encode(Described(0x70, [True, "high"])) + DATA
    assert transformer("basic").transform_columns([message], BASIC, 1) == ([None], [None])
    assert transformer("none").transform_columns([message], NONE, 1) == ([NONE + b"1"], [message])


@pytest.mark.parametrize("name", sorted(TRANSFORMERS))
def test_delivery_annotations_are_cut(name: str) -> None:
    _, values = transformer(name).transform_columns(
        [HEADER + DELIVERY + properties(1) + DATA, DELIVERY + DATA], b"p;", 1
    )
    assert values == [HEADER + properties(1) + DATA, DATA]


def test_a_percent_in_the_prefix_stays() -> None:
    for name in TRANSFORMERS:
        for key in transformer(name).transform_columns([DATA, DATA, HEADER + DATA], b"1;%d%s;", 5)[0]:
            assert key is not None
            assert key.startswith(b"1;%d%s;")


def test_equal_length_and_head_but_another_layout() -> None:
    """What was learned from one message is not believed of one that only begins alike."""
    first = HEADER + encode(Described(0x75, b"x" * 20))
    footed = HEADER + encode(Described(0x75, b"x" * 14))
    footed += encode(Described(0x78, []))[:3] + b"\xc1\x01\x00"
    assert len(footed) == len(first)
    cut = first[:-1]
    keys, _ = transformer("basic").transform_columns([first, footed, cut, cut + b"\0", first], BASIC, 1)
    assert [key is not None for key in keys] == [True, True, False, True, True]


@settings(max_examples=200, deadline=None)
@given(st.lists(messages() | st.binary(max_size=10).map(lambda noise: Built(((0, noise),))), max_size=6))
def test_columns_agree_with_the_slow_reader(column: list[Built]) -> None:
    column = [built for built in column for _ in range(2)]  # twice: the second one goes by the shape of the first
    octets = [built.octets for built in column]
    keys, values = transformer("basic").transform_columns(octets, BASIC, 1)
    opaque_keys, opaque_values = transformer("none").transform_columns(octets, NONE, 1)
    assert opaque_values == values
    for i, built in enumerate(column):
        if slow_offsets(built.octets) is None:
            assert (keys[i], values[i], opaque_keys[i]) == (None, None, None)
            continue
        assert opaque_keys[i] == NONE + b"%d" % (i + 1)
        assert values[i] == built.without(0x71)
        assert keys[i] == BASIC + expected_fields(built, i + 1)


def expected_fields(built: Built, seq: int) -> bytes:
    bare = Built(tuple(section for section in built.sections if section[0] != 0x71))
    durable, priority, ttl, _, _ = built.header
    places = [bare.offset(0x73), bare.offset(0x74), bare.offset(0x75, 0x76, 0x77)]
    fields = [seq, int(bool(durable)), priority, f"T{ttl}" if ttl else "", *("" if p < 0 else p for p in places)]
    return ";".join(map(str, fields)).encode()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=4))
def test_random_octets_are_null_events(column: list[bytes]) -> None:
    keys, values = transformer("basic").transform_columns(column, BASIC, 1)
    for message, key, value in zip(column, keys, values, strict=True):
        if slow_offsets(message) is None:
            assert (key, value) == (None, None)
        else:
            assert key is not None
            assert value is not None


def test_what_is_natively_readable_is_what_the_header_says() -> None:
    fields = transformer("basic").transform_columns([HEADER + DATA], BASIC, 1)[0][0]
    assert fields is not None
    header = read_header(HEADER)
    assert fields.split(b";")[4:7] == [b"%d" % header.durable, b"%d" % header.priority, b"T%d" % (header.ttl_ms or 0)]
    assert decode(HEADER)[0].value[2] == 60000
