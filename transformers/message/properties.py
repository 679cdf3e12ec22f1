"""Where one of a message's properties stands, found without decoding those before it. Source: AMQP 1.0 3.2.4."""

from __future__ import annotations

from transformers.codec import DecodeError, skip


def place_of_property(message: bytes, properties: int, number: int) -> int:
    """`properties`: where the section begins; `number`: which of its fields, from 0 on. -1: it has not so many. Raises
    DecodeError: it is no such section."""
    start = skip(message, properties + 1)
    try:
        count, place = _elements(message, start)
    except IndexError as error:
        raise DecodeError(start, "the properties are cut") from error
    if count <= number:
        return -1
    for _ in range(number):
        place = skip(message, place)
    return place


def _elements(message: bytes, start: int) -> tuple[int, int]:
    """How many a list has, and where the first one begins."""
    kind = message[start]
    if kind == 0x45:
        return 0, start + 1
    if kind == 0xC0:
        return message[start + 2], start + 3
    if kind == 0xD0:
        return int.from_bytes(message[start + 5 : start + 9], "big"), start + 9
    raise DecodeError(start, "the properties are no list")
