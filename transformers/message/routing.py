"""What a message says about where it belongs: to which node, and to which store of it by its priority, its group.

Only asked on anonymous links, and for nodes that have several stores. What is no message belongs where a message
without a word does: never raises. Source: seed 001 sections 3.2.1, 3.2.4; semantics.md 3.7 (x-opt-jms-dest).
"""

from __future__ import annotations

import functools

from transformers.codec import AmqpMap, DecodeError, Described, decode
from transformers.message.header import PRIORITY_DEFAULT, read_header
from transformers.message.properties import place_of_property
from transformers.message.sections import MESSAGE_ANNOTATIONS, PROPERTIES, section_offsets

_TO, _GROUP_ID = 2, 10  # their places in the properties
_JMS_DESTINATION = "x-opt-jms-dest"


def priority_of(message: bytes) -> int:
    """0 to 255."""
    if message[:4] == b"\x00\x53\x70\xc0":
        return _priority(message[: 5 + message[4]]) if len(message) > 4 else PRIORITY_DEFAULT
    if message[:3] == b"\x00\x53\x75" or message[:3] == b"\x00\x53\x73":
        return PRIORITY_DEFAULT  # most messages without a header
    try:
        offsets = section_offsets(message)
    except DecodeError:
        return PRIORITY_DEFAULT
    end = min(offset for offset in offsets[1:] if offset >= 0) if offsets[0] == 0 else 0
    return _priority(message[:end]) if end else PRIORITY_DEFAULT


@functools.lru_cache(maxsize=1024)  # the messages of a link share few headers
def _priority(section: bytes) -> int:
    try:
        return read_header(section).priority
    except DecodeError:
        return PRIORITY_DEFAULT


def group_of(message: bytes) -> str | None:
    """The group-id."""
    return _property(message, _GROUP_ID)


def address_of(message: bytes) -> str | None:
    """The property `to`."""
    return _property(message, _TO)


def jms_destination_of(message: bytes) -> int | None:
    """The annotation `x-opt-jms-dest`: 0 a queue, 1 a topic, 2 a temporary queue, 3 a temporary topic."""
    try:
        at = section_offsets(message)[MESSAGE_ANNOTATIONS]
        section = decode(message, at)[0] if at >= 0 else None
    except DecodeError:
        return None
    pairs = section.value.pairs if isinstance(section, Described) and isinstance(section.value, AmqpMap) else []
    return next((value for key, value in pairs if key == _JMS_DESTINATION and isinstance(value, int)), None)


def _property(message: bytes, place: int) -> str | None:
    """A property that is a string."""
    try:
        at = section_offsets(message)[PROPERTIES]
    except DecodeError:
        return None
    return None if at < 0 else _within(message, at, place)


def group_within(message: bytes, at: int) -> str | None:
    """The group-id in the properties that begin there."""
    return _within(message, at, _GROUP_ID)


def _within(message: bytes, at: int, place: int) -> str | None:
    try:
        offset = place_of_property(message, at, place)
        text = decode(message, offset)[0] if offset >= 0 else None
    except DecodeError:
        return None
    return text if type(text) is str else None
