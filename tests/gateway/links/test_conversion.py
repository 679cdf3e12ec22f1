"""What a link's messages become, and how they come back: identities in headers, and classes of users that fail."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.links.event_to_message import EventToMessage
from gateway.links.message_to_event import conversion
from native_backend.events.copy_key import CopyOrigin, copy_key
from native_backend.log.event_key import ttl_ms
from native_backend.log.octets import Octets
from native_backend.log.record_headers import IDENTITY, HeadedKey
from tests.kit.messages.plugins import install
from transformers.codec import AmqpMap, Described, Symbol, UByte, UInt, decode, encode
from transformers.message.sections import PROPERTIES, section_offsets

RUN = "19aa5b3c1f0-9c2e"
DATA = encode(Described(0x75, b"body"))
KEYED = encode(Described(0x72, {Symbol("x-opt-kafka-key"): "3;forged"})) + DATA
TIMED = encode(Described(0x70, [True, UByte(7), UInt(60000)])) + DATA
LETTER = CopyOrigin("rejected", "orders", "queue", 5, 1, 9)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, shout="acme_code:Shout")
    monkeypatch.syspath_prepend(tmp_path)


def headed(name: str, message: bytes, seq: int = 7) -> tuple[HeadedKey, bytes]:
    ((key,), (value,)) = conversion(name, RUN, "orders").columns([message], seq)
    assert type(key) is HeadedKey and value is not None
    return key, value


def whole(payload: bytes) -> bytes:
    offsets = section_offsets(payload)
    return payload[min(offset for offset in offsets[PROPERTIES:] if offset >= 0) :]


def test_basic_and_none_have_their_identity_in_the_key() -> None:
    keys, values = conversion("none", RUN, "orders").columns([DATA, b""], 7)
    assert (keys, values) == ([b"1;none;%s;7" % RUN.encode(), None], [DATA, None])
    basic = conversion("basic", RUN, "orders")
    assert basic.columns([DATA], 7)[0] == [b"1;basic;%s;7;0;4;;;;0" % RUN.encode()]
    assert basic.column is not None
    assert [*(basic.column(Octets([DATA]), 7) or ())] == basic.columns([DATA], 7)[0]


def test_complete_has_it_in_the_first_header() -> None:
    key, value = headed("complete", TIMED)
    assert key == b"3;complete;%s;7;1;7;T60000" % RUN.encode()
    assert key.headers[0] == (IDENTITY, bytes(key))
    assert (key.record_key, value, ttl_ms(key)) == (None, b"body", 60000)
    assert EventToMessage().message(key, value) == TIMED


def test_no_record_has_a_key_that_could_be_an_identity(installed: None) -> None:
    assert headed("complete", KEYED)[0].record_key is None
    assert headed("shout", DATA)[0].record_key is None


def test_a_users_class_that_fails_makes_null_events_and_is_logged_at_tenfold_counts(
    installed: None, caplog: pytest.LogCaptureFixture
) -> None:
    convert = conversion("shout", RUN, "orders").columns
    bad = [encode(Described(0x75, word)) for word in (b"raise", b"nothing", b"wrong")]
    with caplog.at_level(logging.ERROR):
        keys, values = convert([DATA, *bad, b"no message", DATA], 1)
        assert [key is None for key in keys] == [value is None for value in values]
        assert [key is None for key in keys] == [False, True, True, True, True, False]
        convert([bad[0]] * 200, 10)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(": ", 2)[1] for line in lines] == ["failure 1", "failure 10", "failure 100"]
    assert lines[0] == "transformer 'shout', node 'orders': failure 1: RuntimeError: asked to"


def test_a_users_events_come_back_by_its_own_way(installed: None) -> None:
    key, value = headed("shout", TIMED)
    assert value == b"LENGTH %d" % len(TIMED)
    assert EventToMessage().message(key, value) == TIMED


@pytest.mark.parametrize("name", ["complete", "shout"])
def test_a_letter_keeps_the_form_of_the_event(installed: None, name: str) -> None:
    key, value = headed(name, TIMED)
    restoring = EventToMessage()
    kept, enclosed = restoring.annotate(key, value, LETTER)
    assert type(kept) is HeadedKey
    assert kept == key
    copy = copy_key(3, 5, "rejected", kept)
    message = restoring.message(copy, enclosed)
    assert whole(message) == DATA
    assert b"x-opt-dead-letter-cause" in message
    assert restoring.message(copy_key(3, 5, "moved", key), value) == TIMED


def test_an_event_that_no_transformer_restores_is_delivered_as_a_native_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    restoring = EventToMessage()
    headers = ((IDENTITY, b"3;gone;r;1;0;4;"), ("name", b"said"), ("octets", b"\xff"))
    key = HeadedKey(b"3;gone;r;1;0;4;", None, headers)
    with caplog.at_level(logging.ERROR):
        first, second = (restoring.message(key, b"value") for _ in range(2))
    assert first == second
    section, at = decode(first)
    assert section.value == AmqpMap([(IDENTITY, "3;gone;r;1;0;4;"), ("name", "said"), ("octets", b"\xff")])
    assert decode(first, at)[0].value == "value"
    assert len(caplog.records) == 1
    forged = HeadedKey(b"3;complete;r;1;0;4;", None, ((IDENTITY, b"3;complete;r;1;0;4;"),))
    assert decode(restoring.message(forged, b"value"), 0)[0].descriptor == 0x74


def test_a_letter_of_a_native_record_is_a_message_with_its_headers() -> None:
    restoring = EventToMessage()
    for key in (HeadedKey(b"k", b"k", (("name", b"said"),)), b"k"):
        kept, enclosed = restoring.annotate(key, b"text", LETTER)
        assert type(kept) is bytes
        assert (kept, b"x-opt-dead-letter-cause" in enclosed) == (b"k", True)
        assert (b"said" in enclosed) is (type(key) is HeadedKey)
