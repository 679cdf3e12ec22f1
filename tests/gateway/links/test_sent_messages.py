"""Message-ids of what was not stored: of every type, of events, and never a long one or one that is none."""

from __future__ import annotations

import sys
import uuid
from typing import Any

import pytest

from gateway.links.event_to_message import EventToMessage
from gateway.links.sent_messages import CHARACTERS_MAX, SentEvents, SentMessages, SentParts
from native_backend.log.octets import Octets
from tests.kit.wire import frames
from transformers.codec import Described, ULong, encode

BACK, KEY = EventToMessage(), b"1;native;run;3"


def with_id(message_id: Any) -> bytes:
    return encode(Described(0x73, [message_id])) + frames.message()


@pytest.mark.parametrize(
    ("message_id", "name"),
    [
        ("order-1", "order-1"),
        (ULong(7), "7"),
        (uuid.UUID(int=9), str(uuid.UUID(int=9))),
        (b"\x01\xff", "01ff"),
        (None, ""),
        ([ULong(7)], ""),
        ("x" * CHARACTERS_MAX, "x" * CHARACTERS_MAX),
        ("x" * (CHARACTERS_MAX + 1), None),
    ],
)
def test_the_id_of_a_message_as_text(message_id: Any, name: str | None) -> None:
    assert SentMessages(Octets([with_id(message_id)]), 40, True, True).message_ids([40], 1) == [(40, name)]


def test_so_many_are_looked_at_whatever_they_are() -> None:
    sent = SentMessages(
        Octets([with_id("x" * 300), with_id("b"), b"\xff", frames.message(), with_id("e")]), 10, True, True
    )
    assert sent.message_ids(range(10, 15), 4) == [(10, None), (11, "b"), (12, None), (13, "")]
    assert sent.message_ids([14], 5) == [(14, "e")]


def test_a_part_of_a_run_is_kept_without_what_is_beside_it() -> None:
    run = Octets([with_id("a"), bytes(100_000)])
    assert SentMessages(run, 3, True, True).kept([3, 4], run).message_ids([3], 1) == [(3, "a")]
    before = sys.getrefcount(run)
    of_a_part = SentMessages(run, 3, True, True).kept([3], [run[0]])
    in_another_form = SentMessages(run, 3, True, False).kept([3], [b"another form"])
    slice_ = run[:1]
    of_a_relay = SentMessages(slice_, 3, False, True).kept([3], slice_)
    del slice_
    for kept in (of_a_part, in_another_form, of_a_relay):
        assert isinstance(kept, SentParts) and kept.message_ids([3], 1) == [(3, "a")]
    assert sys.getrefcount(run) == before


def test_what_a_transaction_let_go_cannot_be_named() -> None:
    keys, values = [KEY, KEY], [with_id("a"), with_id("b")]
    events = SentEvents([3, 5], keys, values, BACK)
    assert events.message_ids([3, 5], 9) == [(3, "a"), (5, "b")] and events.message_ids([5], 9) == [(5, "b")]
    assert SentEvents([3, 5], [], [], BACK).message_ids([3, 5], 9) == []


def test_the_message_of_an_event_that_is_none_is_read() -> None:
    assert SentEvents([3], [b"foreign"], [b"no message"], BACK).message_ids([3], 1) == [(3, "")]
