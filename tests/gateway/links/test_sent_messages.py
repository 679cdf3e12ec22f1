"""Message-ids of what was not stored: of every type, of events, and never a long one or one that is none."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from gateway.links.partitioner import Part
from gateway.links.sent_messages import CHARACTERS_MAX, PostedMessages, SentMessages
from native_backend.log.octets import Octets
from native_backend.nodes.node import Node
from tests.kit.wire import frames
from transformers.codec import Described, ULong, encode

NODE = Node("q", "queue", "topic", b"", 1)


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
        ("x" * CHARACTERS_MAX, "x" * CHARACTERS_MAX),
    ],
)
def test_the_id_of_a_message_as_text(message_id: Any, name: str) -> None:
    assert SentMessages(Octets([with_id(message_id)]), 40).message_ids([40], 1) == [(40, name)]


def test_a_long_id_and_what_is_beyond_the_most_are_not_known() -> None:
    sent = SentMessages(Octets([with_id("x" * (CHARACTERS_MAX + 1)), with_id("b"), b"\xff", with_id("d")]), 10)
    assert sent.message_ids(range(10, 14), 3) == [(11, "b"), (12, "")]
    assert sent.message_ids([13], 5) == [(13, "d")]


def test_what_a_transaction_let_go_is_not_known() -> None:
    part = Part(NODE, [3, 5], [b"1;native;run;3", b"1;native;run;5"], [with_id("a"), with_id("b")])
    assert PostedMessages(part).message_ids([3, 5], 9) == [(3, "a"), (5, "b")]
    part.keys, part.values = [], []
    assert PostedMessages(part).message_ids([3, 5], 9) == []
