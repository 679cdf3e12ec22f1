"""Which events came natively: told by the keys of a chunk, at once; and only those are framed."""

from __future__ import annotations

import pytest

from native_backend.events.event_kind import are_ours, are_published, framed, is_message
from native_backend.log.record_headers import HeadedKey


def frame(_: bytes | None, value: bytes) -> bytes:
    return b"<" + value + b">"


@pytest.mark.parametrize("keys", [[], [b"1;basic;r;1"], [b"1;basic;r;1", b"1;none;r;2"]])
def test_events_that_gateways_wrote_are_recognized_at_once(keys: list[bytes | None]) -> None:
    assert are_published(keys)
    assert are_ours(keys)


@pytest.mark.parametrize(
    "copy", [b"2;7;3;expired;1;basic;r;1", b"2;7;3;rejected;a foreign key", b"2;7;4;moved;1;none;r;9"]
)
def test_copies_of_messages_are_given_as_stored(copy: bytes) -> None:
    assert framed([copy], [b"v"], frame) == [b"v"]
    assert are_ours([b"1;basic;r;1", copy])
    assert not are_published([b"1;basic;r;1", copy])


@pytest.mark.parametrize("copy", [b"2;7;3;moved;a foreign key", b"2;7;4;moved;"])
def test_what_was_moved_and_was_no_message_is_none_now(copy: bytes) -> None:
    assert framed([copy], [b"v"], frame) == [b"<v>"]


@pytest.mark.parametrize("identity", [b"", b"1;basic;r;1", b"2;7;3;rejected;3;complete;r;1", b"3;complete;r;1;0;4;"])
def test_what_has_headers_is_framed_whatever_names_it(identity: bytes) -> None:
    assert framed([HeadedKey(identity, None, (("a", b"b"),))], [b"v"], frame) == [b"<v>"]


@pytest.mark.parametrize("foreign", [None, b"", b"order-7", b"3;complete;r;1;0;4;", b"x\n1;", b"11;", b"x\0\n\0"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_came_natively_is_framed_and_nothing_else(foreign: bytes | None, at: int) -> None:
    keys: list[bytes | None] = [b"1;basic;r;1", b"2;7;3;expired;1;"]
    keys.insert(at, foreign)
    values = [b"a", b"b", b"c"]
    assert framed(keys, values, frame) == [
        frame(foreign, value) if index == at else value for index, value in enumerate(values)
    ]
    assert values == [b"a", b"b", b"c"], "the log's own column stays"
    assert not are_published(keys)
    assert not are_ours(keys)
    assert not is_message(foreign)
