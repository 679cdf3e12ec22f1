"""Selectors: what is one, what each part means, and where an error is."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.transformers.selector.selected import DATA, matches, message
from transformers import annotated
from transformers.codec import AmqpMap, Described, Int, Symbol, Timestamp, UByte, UInt, ULong, encode
from transformers.selector import fields
from transformers.selector.grammar import SelectorError
from transformers.selector.selector import selector

ORDER: dict[str, Any] = {
    "number": Int(42),
    "price": 9.5,
    "colour": "red",
    "paid": True,
    "tag": Symbol("a_b"),
    "id": uuid.UUID(int=1),
    "many": "1\n2",
    "nothing": None,
}
TRUE = (
    "number = 42",
    "number = 42.0",
    "number <> 41",
    "number > 41.5 AND number <= 42",
    "number BETWEEN 40 AND 42 AND TRUE",
    "number NOT BETWEEN 43 AND 50",
    "number + 1 * 2 = 44",
    "(number + 1) * 2 = 86",
    "number / 5 = 8",
    "-number / 5 = -8",
    "number / 5.0 = 8.4",
    "- -number = +42",
    "number = 0x2A AND number = 052 AND number = 42L",
    "price = 9.5 AND price = 95E-1 AND price = 9.5f AND price > 9.",
    "9223372036854775807 + 1 = -9223372036854775808",
    "1.0 / 0 > 1e300",
    "number / 0 = 1 OR TRUE",
    "colour = 'red'",
    "colour <> 'blue'",
    "colour LIKE 'r%'",
    "colour LIKE '_e_'",
    "colour LIKE '%e%' AND colour LIKE '%red%' AND colour NOT LIKE 'red_%'",
    "many LIKE '1%2' AND many LIKE '1_2'",
    "tag LIKE 'a!_b' ESCAPE '!'",
    "colour LIKE '!r!e%' ESCAPE '!'",
    "colour NOT LIKE 'r!%' ESCAPE '!'",
    "colour IN ('blue', 'red')",
    "colour NOT IN ('blue', 'it''s')",
    "paid",
    "paid = TRUE and not paid = false",
    "(number = 42) = TRUE",
    "missing IS NULL AND nothing IS NULL AND colour IS NOT NULL AND id IS NOT NULL",
    "NOT (colour = 42)",
    "missing = 1 OR number = 42",
    "NOT (missing = 1 AND number = 0)",
    '"number" = 42 AND NUMBER IS NULL',
    "TRUE",
    "\tnumber\n=\r42\f",
    "JMSPriority = 4 AND JMSDeliveryMode = 'NON_PERSISTENT'",
)
NOT_TRUE = (
    "number = 41",
    "number = '42'",
    "number <> '42'",
    "colour > 1",
    "missing = 1",
    "missing <> 1",
    "NOT (missing = 1)",
    "missing = 1 AND number = 42",
    "missing LIKE '%'",
    "missing NOT LIKE 'x'",
    "missing IN ('a')",
    "missing NOT IN ('a')",
    "missing BETWEEN 1 AND 2",
    "missing NOT BETWEEN 1 AND 2",
    "missing + 1 > 0",
    "colour + 1 > 0",
    "number / 0 = 1",
    "NOT number / 0 = 1",
    "0.0 / 0 = 0.0 / 0",
    "number",
    "NOT number",
    "colour",
    "FALSE",
    "paid > 0",
    "paid = 1",
    "colour LIKE 're'",
    "colour LIKE 'red_%'",
    "number LIKE '42'",
    "id = 1",
    "id = '00000000-0000-0000-0000-000000000001'",
)


@pytest.mark.parametrize("text", TRUE)
def test_is_true(text: str) -> None:
    assert matches(text, message(**ORDER))


@pytest.mark.parametrize("text", NOT_TRUE)
def test_is_false_or_unknown(text: str) -> None:
    assert not matches(text, message(**ORDER))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a = = 1", 4),
        ("", 0),
        ("   ", 3),
        ("a =", 3),
        ("(a = 1", 6),
        ("a = 1)", 5),
        ("a = 'x", 4),
        ("a @ 1", 2),
        ("a = 1 b = 2", 6),
        ("a = 1 = 2", 6),
        ("1", 0),
        ("a = 1 AND 'x'", 10),
        ("NOT 5", 4),
        ("a < 'x'", 4),
        ("TRUE > a", 0),
        ("1 = 'x'", 2),
        ("a + 'x' = 1", 4),
        ("1 LIKE 'x'", 0),
        ("a LIKE b", 7),
        ("a LIKE 'x' ESCAPE 'xy'", 18),
        ("a LIKE 'x!' ESCAPE '!'", 7),
        ("a IN ()", 6),
        ("a IN (1)", 6),
        ("a IN ('x',)", 10),
        ("a BETWEEN 1", 11),
        ("a BETWEEN 1 OR 2", 12),
        ("a IS 1", 5),
        ("a = 09", 4),
        ("a = 9223372036854775809", 4),
        ("a = 1e999", 4),
        ("a = 5x", 5),
        ("AND = 1", 0),
        ("a = 1+" + "1+" * 70 + "1", 4),
        ("NOT " * 100 + "a", 144),
    ],
)
def test_is_no_selector(text: str, position: int) -> None:
    with pytest.raises(SelectorError) as raised:
        selector(text)
    assert raised.value.position == position, raised.value
    assert f"at character {position + 1}:" in str(raised.value)


def test_what_is_long_is_bounded_and_what_is_flat_may_be_long() -> None:
    assert matches(" OR ".join(["number = 1"] * 500 + ["number = 42"]), message(**ORDER))
    assert matches("(" * 1000 + "paid" + ")" * 1000, message(**ORDER))


PROPERTIES = [
    "ID:abc-1",
    b"me",
    "to.here",
    "invoice",
    "back",
    UUID := uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    Symbol("text/plain"),
    None,
    Timestamp(2000),
    Timestamp(1000),
    "group",
    UInt(7),
]
HEADER = [True, UByte(9)]


@pytest.mark.parametrize(
    "text",
    [
        "JMSMessageID = 'ID:abc-1' AND amqp.message_id = 'ID:abc-1'",
        f"JMSCorrelationID = 'ID:AMQP_UUID:{UUID}'",
        "JMSType = 'invoice' AND amqp.subject = JMSType",
        "JMSTimestamp = 1000 AND amqp.creation_time < amqp.absolute_expiry_time AND JMSExpiration = 2000",
        "JMSPriority = 9 AND amqp.priority > 8",
        "JMSDeliveryMode = 'PERSISTENT' AND amqp.durable",
        "JMSXGroupID = 'group' AND JMSXGroupSeq = 7",
        "amqp.to = 'to.here' AND amqp.reply_to = 'back' AND amqp.content_type = 'text/plain'",
        "amqp.content_encoding IS NULL AND amqp.reply_to_group_id IS NULL",
        "JMSRedelivered IS NULL AND JMSXDeliveryCount IS NULL AND subject IS NULL",
    ],
)
def test_headers_and_properties(text: str) -> None:
    assert matches(text, message(PROPERTIES, HEADER))
    assert not matches(text, message(["other"] * 12, [False, UByte(1)], JMSXDeliveryCount=1, subject="x"))


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ("amqp.dead_letter_cause = 'rejected' AND amqp.dead_letter_attempts >= 2", True),
        ("amqp.dead_letter_condition LIKE 'app:%' AND a = 1", True),
        ("amqp.dead_letter_time > 1000", False),
        ("amqp.dead_letter_info IS NULL AND amqp.dead_letter_info = 'x'", False),
        ("amqp.dead_letter_node IS NULL", True),
    ],
)
def test_what_the_annotations_of_a_dead_letter_say(text: str, is_true: bool) -> None:
    plain = message(a=1)
    fields = {"cause": "rejected", "attempts": UInt(2), "condition": Symbol("app:bad"), "time": Timestamp(1000)}
    letter = annotated(plain, {f"x-opt-dead-letter-{name}": value for name, value in fields.items()})
    assert matches(text, letter) is is_true
    assert matches(text, plain) is ("node" in text), "a message without annotations"


@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        ("plain", "ID:AMQP_NO_PREFIX:plain"),
        (ULong(7), "ID:AMQP_ULONG:7"),
        (b"\x01\xab", "ID:AMQP_BINARY:01AB"),
    ],
)
def test_message_ids_are_as_qpid_jms_shows_them(identity: Any, shown: str) -> None:
    assert matches(f"JMSMessageID = '{shown}'", message([identity]))


def test_application_properties_in_every_encoding() -> None:
    name = b"\xa1\x01k"
    long_name = b"\xb1\x00\x00\x00\x01k"
    for key in (name, long_name):
        body = b"\xa1\x01k" + b"\xa1\x01k" + key + b"\xa1\x01v"  # a value that looks like the key comes first
        body = b"\xa1\x01j" + body[3:]
        small = b"\x00\x53\x74\xc1" + bytes((len(body) + 1, 4)) + body
        large = b"\x00\x53\x74\xd1" + (len(body) + 4).to_bytes(4) + (4).to_bytes(4) + body
        symbolic = b"\x00\xa3\x1famqp:application-properties:map" + small[3:]
        for section in (small, large, symbolic):
            assert matches("k = 'v' AND j = 'k' AND l IS NULL", section + DATA), section
    long = "n" * 300
    assert matches(f"{long} = 1", message(**dict[str, Any]({long: 1})))
    assert matches("größe = 1 AND $a_1 = 2", message(**dict[str, Any]({"größe": 1, "$a_1": 2})))


def test_very_many_properties_are_read_once_for_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selector of 400 names, a message of 60,000: walking up to each would take seconds."""
    walks, places = 0, fields.places_of

    def counted(data: bytes, start: int) -> dict[bytes, int]:
        nonlocal walks
        walks += 1
        return places(data, start)

    monkeypatch.setattr(fields, "places_of", counted)
    value = message(**dict[str, Any]({f"n{at}": Int(at) for at in range(60_000)}))
    names = [f"n{at} = {at}" for at in (*range(5), *range(59_600, 60_000))]
    assert matches(" AND ".join(names), value)
    assert walks == 1
    walks = 0
    assert matches(" AND ".join(f"missing{at} IS NULL" for at in range(400)), value)
    assert walks == 1, "of names that are not there, too"


@pytest.mark.parametrize("text", ["near = 1 OR far = 1", "far = 1 OR near = 1", "far = 1", "near = 1"])
@pytest.mark.parametrize("place", ["before", "behind"])
def test_a_property_that_cannot_be_decoded_hides_no_other_one(text: str, place: str) -> None:
    """In a message that was stored before anyone looked into its properties."""
    padding = [(f"n{at}", "x" * 20) for at in range(100)]
    broken = [("broken", "??")]
    pairs = [("near", Int(1)), *broken, *padding, ("far", Int(1))]
    pairs = pairs if place == "before" else [*pairs[:1], *padding, ("far", Int(1)), *broken]
    value = encode(Described(0x74, AmqpMap(pairs))).replace(b"??", b"\xff\xff") + DATA
    assert matches(text, value)
    assert matches("broken IS NULL", value)


def test_of_a_name_that_is_there_twice_the_first_counts() -> None:
    padding = {f"n{at}": "x" * 20 for at in range(100)}
    pairs = [("near", Int(1)), *padding.items(), ("far", Int(1)), ("near", Int(2)), ("far", Int(2))]
    value = encode(Described(0x74, AmqpMap(pairs))) + DATA
    assert matches("near = 1 AND far = 1 AND near = 1", value)


def test_what_stands_in_the_body_is_no_property() -> None:
    body = b"\x00\x53\x75\xa0\x08" + b"\xa1\x03far\xa1\x01v"
    assert matches("far IS NULL AND a = 1", message(a=Int(1)).removesuffix(DATA) + body)


def test_so_many_octets_of_a_message_are_read() -> None:
    small = message(a=Int(1))
    properties = message(**dict[str, Any]({f"n{at}": "x" * 20 for at in range(100)}))
    assert fields.octets_read(small) == len(small)
    body = b"\x00\x53\x75\xb0" + (100_000).to_bytes(4) + bytes(100_000)
    assert fields.octets_read(properties[: -len(DATA)] + body) == len(properties) - len(DATA)
    assert fields.octets_read(bytes(5_000)) == 5_000, "it is no message"


def test_what_is_no_message_matches_nothing() -> None:
    broken = message(**ORDER)[:-30]
    half = b"\x00\x53\x74\xc1\x05\x02\xa1\x01k\xa1" + DATA  # the map ends within a value
    assert selector("number = 42 OR k IS NULL").select([b"", b"\xff", broken, message(**ORDER)])[:3] == [False] * 3
    assert not matches("k = 'v'", half)


def test_like_takes_time_in_proportion() -> None:
    text = "a LIKE '" + "%a" * 200 + "%b'"
    assert not matches(text, message(a="a" * 20_000))


def test_one_compilation_serves_all_who_ask_the_same() -> None:
    assert selector("a = 1") is selector("a = 1")
