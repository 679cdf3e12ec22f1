"""A message without its time to live: nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from transformers import without_expiry
from transformers.codec import Described, Symbol, Timestamp, UInt, decode, encode
from transformers.message.sections import section_offsets

DATA = encode(Described(0x75, b"body"))
EXPIRY = Timestamp(1_900_000_000_000)


def header(*fields: Any) -> bytes:
    return encode(Described(0x70, list(fields)))


def properties(*fields: Any, descriptor: Any = 0x73) -> bytes:
    return encode(Described(descriptor, list(fields)))


def timed(expiry: Any, size: int = 1, descriptor: Any = 0x73) -> bytes:
    """Properties of at least `size` octets."""
    return properties("x" * size, *[None] * 7, expiry, Timestamp(5), "group", descriptor=descriptor)


@pytest.mark.parametrize("size", [1, 200, 233, 234, 240, 300])
@pytest.mark.parametrize("descriptor", [0x73, Symbol("amqp:properties:list")])
def test_both_times_are_cut(size: int, descriptor: Any) -> None:
    cut, expiry = without_expiry(header(True, None, UInt(5), True, UInt(2)) + timed(EXPIRY, size, descriptor) + DATA)
    assert cut == header(True, None, None, True, UInt(2)) + timed(None, size, descriptor) + DATA
    assert (expiry, type(expiry)) == (EXPIRY, Timestamp)
    section_offsets(cut)


def test_a_wide_list_stays_a_list() -> None:
    items = [encode(None)] * 8 + [encode(EXPIRY)]
    octets = b"".join(items)
    wide = b"\x00\x53\x73\xd0" + (len(octets) + 4).to_bytes(4, "big") + (9).to_bytes(4, "big") + octets
    cut, expiry = without_expiry(wide + DATA)
    assert (decode(cut)[0].value, cut.endswith(DATA), expiry) == ([None] * 9, True, EXPIRY)


@pytest.mark.parametrize(
    "message",
    [
        DATA,
        header(True) + DATA,
        header(True, None, None, True) + properties("id") + DATA,
        timed(None) + DATA,
        header(),
        b"no message",
        b"",
        b"\x00\x53\x70\xc0\x03\x03\x43\xff\xff" + DATA,
    ],
)
def test_what_has_no_time_stays_as_it_is(message: bytes) -> None:
    assert without_expiry(message) == (message, None)


def test_what_is_no_time_is_cut_without_a_word() -> None:
    assert without_expiry(timed(7) + DATA) == (timed(None) + DATA, None)
