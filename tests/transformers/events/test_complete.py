"""The transformer `complete`: what plain consumers read, and the message that comes back octet for octet."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformers.amqp_values import amqp_values
from tests.transformers.messages import Built, descriptors, messages, slow_offsets
from transformers import NativeEvent, event_transformer
from transformers.codec import AmqpMap, Described, Symbol, Timestamp, UByte, UInt, ULong, encode
from transformers.events.named_headers import PROPERTY_NAMES

COMPLETE = event_transformer("complete")
DATA = encode(Described(0x75, b"\xffbody"))


def event(message: bytes) -> NativeEvent:
    made = COMPLETE.event(message)
    assert made is not None
    return made


def named(made: NativeEvent) -> list[tuple[str, str, bytes | None]]:
    """(name, type, octets) of the headers that say what the message says."""
    names = [name for name, _ in made.headers]
    at = names.index("um-types") + 1
    types = (made.headers[at - 1][1] or b"").decode().split(",") if at < len(names) else []
    return [(name, form, octets) for form, (name, octets) in zip(types, made.headers[at:], strict=True)]


@settings(max_examples=300, deadline=None)
@given(messages() | st.binary(max_size=10).map(lambda noise: Built(((0, noise),))))
def test_a_message_comes_back_octet_for_octet(built: Built) -> None:
    made = COMPLETE.event(built.octets)
    if slow_offsets(built.octets) is None:
        assert made is None
    else:
        assert made is not None
        assert COMPLETE.message(made) == built.without(0x71)


_names = st.text(st.characters(max_codepoint=127), min_size=1, max_size=6).filter(lambda name: "\0" not in name)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(_names.map(Symbol), amqp_values), max_size=2),
    st.lists(amqp_values, max_size=13),
    st.lists(st.tuples(st.text(max_size=6), amqp_values), max_size=4),
    amqp_values,
)
def test_values_of_every_type_are_shown_and_come_back(
    annotations: list[tuple[object, object]],
    fields: list[object],
    pairs: list[tuple[str, object]],
    body: object,
) -> None:
    described = (0x72, AmqpMap(annotations)), (0x73, fields), (0x74, AmqpMap([*pairs])), (0x77, body)
    message = b"".join(encode(Described(*section)) for section in (*described, (0x78, AmqpMap(annotations))))
    made = event(message)
    assert COMPLETE.message(made) == message
    assert [name for name, _, _ in named(made)] == [
        *(f"JMS_AMQP_MA_{name}" for name, _ in annotations),
        *(name for name, field in zip(PROPERTY_NAMES, fields, strict=False) if field is not None),
        *(name for name, _ in pairs if name and "\0" not in name and not name.startswith("um-")),
        *(f"JMS_AMQP_FT_{name}" for name, _ in annotations),
    ]
    assert all(octets is None if form == "null" else isinstance(octets, bytes) for _, form, octets in named(made))


@given(descriptors(0x75), st.binary(max_size=300), st.booleans(), st.booleans())
def test_the_value_of_one_data_section_is_the_body_itself(code: bytes, body: bytes, wide: bool, footed: bool) -> None:
    size = b"\xb0" + len(body).to_bytes(4, "big") if wide or len(body) > 255 else b"\xa0" + bytes((len(body),))
    footer = encode(Described(0x78, AmqpMap([(Symbol("sum"), 5)]))) if footed else b""
    made = event(code + size + body + footer)
    assert made.value == body
    assert made.headers[0] == ("um-body", b"data")
    assert ("JMS_AMQP_FT_sum", "long", b"5") in named(made) or not footed


@pytest.mark.parametrize(
    ("body", "kind", "value"),
    [
        ("text \u00e4", b"string", "text \u00e4".encode()),
        ("x" * 300, b"string", b"x" * 300),
        (b"octets", b"binary", b"octets"),
        (b"", b"binary", b""),
        (Symbol("symbol"), b"sections", encode(Described(0x77, Symbol("symbol")))),
        (None, b"sections", b"\x00\x53\x77\x40"),
        ({"a": 1}, b"sections", encode(Described(0x77, {"a": 1}))),
    ],
)
def test_other_bodies(body: object, kind: bytes, value: bytes) -> None:
    made = event(encode(Described(0x77, body)))
    assert (made.headers[0], made.value) == (("um-body", kind), value)


@pytest.mark.parametrize("body", [DATA + DATA, encode(Described(0x76, [1])), encode(Described(0x76, [])) * 2])
def test_bodies_of_several_sections_stay_sections(body: bytes) -> None:
    made = event(body)
    assert (made.headers[0], made.value) == (("um-body", b"sections"), body)


def test_the_names_and_types_of_appendix_b() -> None:
    identity = uuid.UUID(int=5)
    message = b"".join(
        (
            encode(Described(0x70, [True, UByte(7), UInt(60000), False, UInt(2)])),
            encode(Described(0x71, {Symbol("da"): "seen here only"})),
            encode(Described(0x72, {Symbol("x-opt-jms-msg-type"): UByte(5), ULong(9): None})),
            encode(Described(0x73, ["id", b"user", "to", "subject", "reply", identity, Symbol("text/plain"),
                                    Symbol("gzip"), Timestamp(1), Timestamp(2), "group", UInt(3), "back"])),
            encode(Described(0x74, {"text": "\u00e4", "none": None, "real": 0.5, "list": [1], "um-event": "3;x"})),
            DATA,
        )
    )  # fmt: skip
    made = event(message)
    assert named(made) == [
        ("nPublished.isPersistent", "boolean", b"true"),
        ("nHeader.Priority", "ubyte", b"7"),
        ("nHeader.TTL", "uint", b"60000"),
        ("JMS_AMQP_FirstAcquirer", "boolean", b"false"),
        ("nHeader.RedeliveredCount", "uint", b"2"),
        ("JMS_AMQP_DA_da", "string", b"seen here only"),
        ("JMS_AMQP_MA_x-opt-jms-msg-type", "ubyte", b"5"),
        ("JMS_AMQP_MA_9", "null", None),
        ("nHeader.MessageId", "string", b"id"),
        ("nHeader.UserId", "binary", b"user"),
        ("nHeader.Destination", "string", b"to"),
        ("nHeader.Type", "string", b"subject"),
        ("nHeader.ReplyToName", "string", b"reply"),
        ("nHeader.CorrelationId", "uuid", str(identity).encode()),
        ("JMS_AMQP_ContentType", "symbol", b"text/plain"),
        ("JMS_AMQP_ContentEncoding", "symbol", b"gzip"),
        ("nHeader.Expiration", "timestamp", b"1"),
        ("nHeader.PublishTimestamp", "timestamp", b"2"),
        ("JMSXGroupID", "string", b"group"),
        ("JMSXGroupSeq", "uint", b"3"),
        ("JMS_AMQP_ReplyToGroupID", "string", b"back"),
        ("text", "string", "\u00e4".encode()),
        ("none", "null", None),
        ("real", "double", b"0.5"),
        ("list", "list", encode([1])),
    ]
    assert made.value == b"\xffbody"
    assert made.key == b"group"
    assert COMPLETE.message(made) == message.replace(encode(Described(0x71, {Symbol("da"): "seen here only"})), b"")


def test_the_key_is_the_annotation_before_the_group() -> None:
    grouped = encode(Described(0x73, [None] * 10 + ["group"]))
    for key, octets in (("text", b"text"), (b"\xff", b"\xff"), (Symbol("s"), b"s"), (5, b"group"), (None, b"group")):
        annotations = encode(Described(0x72, {Symbol("x-opt-kafka-key"): key}))
        assert event(annotations + grouped + DATA).key == octets
    assert event(DATA).key is None


@pytest.mark.parametrize(
    "section",
    [
        b"\x00\x53\x70\xc0\x02\x01\x51",  # announces less than it holds
        encode(Described(0x70, [True, "high"])),
        b"\x00\x53\x73\xc0\x04\x01\xa1\x01\xff",  # no UTF-8
        b"\x00\x53\x74\xc1\x03\x01\x40\x40",  # a map of an odd number
    ],
)
def test_a_section_that_cannot_be_decoded_is_a_null_event(section: bytes) -> None:
    assert COMPLETE.event(section + DATA) is None


def test_what_it_did_not_make_it_does_not_restore() -> None:
    with pytest.raises(ValueError, match="um-sections"):
        COMPLETE.message(NativeEvent(None, (("um-types", b""), ("um-sections", b"forged")), b"v"))
