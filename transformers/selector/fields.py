"""What a selector's names stand for in a message, decoded no further than they ask.

| name | stands for |
|---|---|
| JMSDeliveryMode | `PERSISTENT` or `NON_PERSISTENT`, from header durable |
| JMSPriority | header priority, 4 where there is none |
| JMSMessageID, JMSCorrelationID | message-id, correlation-id, as Qpid JMS shows them to an application |
| JMSTimestamp, JMSExpiration | creation-time, absolute-expiry-time, milliseconds since 1970 |
| JMSType, JMSXGroupID, JMSXGroupSeq, JMSXUserID | subject, group-id, group-sequence, user-id |
| `amqp.FIELD` | a field of the properties or the header, `_` for `-`, as it is |
| `amqp.dead_letter_FIELD` | the annotation `x-opt-dead-letter-FIELD`, `_` for `-`, as it is |
| any other | the application property of that name |

A name without a value is unknown (None). What was given before changes nothing: a verdict about a message never changes
(semantics J-3), so neither JMSRedelivered nor JMSXDeliveryCount has a value.

Errors: `DecodeError` out of `Message` where the sections cannot be told apart; what is malformed inside a section is
unknown. Source: JMS 2.0 section 3.8.1.1; semantics 3.7.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from transformers.codec import AmqpMap, DecodeError, Described, ULong, decode, skip
from transformers.codec.formats import WIDTHS
from transformers.message.header import Header, read_header
from transformers.message.sections import (
    APPLICATION_PROPERTIES,
    BODY,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    Offsets,
    section_offsets,
)

_PROPERTIES: Final = (
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)
_MESSAGE_ID, _CORRELATION_ID = _PROPERTIES.index("message_id"), _PROPERTIES.index("correlation_id")
_JMS: Final = {
    "JMSTimestamp": "creation_time",
    "JMSExpiration": "absolute_expiry_time",
    "JMSType": "subject",
    "JMSXGroupID": "group_id",
    "JMSXGroupSeq": "group_sequence",
    "JMSXUserID": "user_id",
}
_DEAD_LETTER: Final = "amqp.dead_letter_"
_PLAIN: Final = b"\x00\x53\x74"
_NEAR: Final = 1_024  # octets of a map that are walked for each name
_PAIRS_MAX: Final = 100_000  # 0.1 s; one message may have more, and that longer than the lease
_HEADS: Final = {0xC1: 2, 0xD1: 5}  # octets of a map's code and size
_NAMES: Final = {0xA1: 2, 0xA3: 2, 0xB1: 5, 0xB3: 5}  # octets of a string's code and size
_UNKNOWN: Final = ("JMSRedelivered", "JMSXDeliveryCount", "JMSDestination", "JMSReplyTo")


class Message:
    """One message after another, as a selector reads them: `load` takes the next one."""

    __slots__ = ("_annotations", "_header", "_offsets", "_places", "_properties", "value")

    def load(self, value: bytes) -> None:
        self.value = value
        self._offsets: Offsets | None = None
        self._header: Header | None = None
        self._properties: list[Any] | None = None
        self._places: dict[bytes, int] | None = None
        self._annotations: dict[str, Any] | None = None

    def offset(self, section: int) -> int:
        if self._offsets is None:
            self._offsets = section_offsets(self.value)
        return self._offsets[section]

    def header(self) -> Header:
        if self._header is None:
            end = 0
            if self.offset(HEADER) == 0:
                assert self._offsets is not None
                end = min(offset for offset in self._offsets[1:] if offset >= 0)
            self._header = _header(self.value[:end])
        return self._header

    def property(self, index: int) -> Any:
        fields = self._properties
        if fields is None:
            section = self._section(PROPERTIES)
            fields = self._properties = section if isinstance(section, list) else []
        return fields[index] if index < len(fields) else None

    def annotation(self, name: str) -> Any:
        if self._annotations is None:
            self._annotations = _first_of_each(self._section(MESSAGE_ANNOTATIONS))
        return self._annotations.get(name)

    def application(self, name: bytes, key: bytes) -> Any:
        """`key`: the name as nearly every client encodes it. The map is walked up to there, and no further, where that
        is near its beginning; else once to its end, for all names."""
        start = self.offset(APPLICATION_PROPERTIES)
        if start < 0:
            return None
        value, place = self.value, 0
        try:
            if self._places is None:
                at = value.find(key, start, start + _NEAR)
                place = _walk(value, start, key, at) if at >= 0 else 0
                if not place and _may_have(value, start, name):
                    self._places = places_of(value, start)
            if self._places is not None:
                place = self._places.get(name, 0)
            return decode(value, place)[0] if place else None
        except (DecodeError, IndexError):
            return None

    def _section(self, section: int) -> Any:
        start = self.offset(section)
        if start < 0:
            return None
        try:
            described, _ = decode(self.value, start)
        except DecodeError:
            return None
        return described.value if isinstance(described, Described) else None


Reader: TypeAlias = Callable[[Message], Any]


def reader(name: str) -> Reader:
    """What reads the value of that name from a message."""
    if name in _UNKNOWN:
        return lambda message: None
    if name == "JMSDeliveryMode":
        return lambda message: "PERSISTENT" if message.header().durable else "NON_PERSISTENT"
    if name in ("JMSPriority", "amqp.priority"):
        return lambda message: message.header().priority
    if name == "amqp.durable":
        return lambda message: message.header().durable
    if name == "JMSMessageID":
        return lambda message: _shown(message.property(_MESSAGE_ID), "ID:AMQP_NO_PREFIX:")
    if name == "JMSCorrelationID":
        return lambda message: _shown(message.property(_CORRELATION_ID), "")
    if name.startswith(_DEAD_LETTER):
        annotation = f"x-opt-dead-letter-{name.removeprefix(_DEAD_LETTER).replace('_', '-')}"
        return lambda message: message.annotation(annotation)
    field = _JMS.get(name, name.removeprefix("amqp.") if name.startswith("amqp.") else "")
    if field in _PROPERTIES:
        index = _PROPERTIES.index(field)
        return lambda message: message.property(index)
    octets = name.encode()
    key = b"\xa1%c%b" % (len(octets), octets) if len(octets) < 256 else b"\xb1%b%b" % (len(octets).to_bytes(4), octets)
    return lambda message: message.application(octets, key)


def _first_of_each(section: Any) -> dict[str, Any]:
    """Of a map: the value of the first pair of each key."""
    pairs = section.pairs if isinstance(section, AmqpMap) else []
    return {key: value for key, value in reversed(pairs) if isinstance(key, str)}


def octets_read(value: bytes) -> int:
    """So many octets of a message a selector may read: all before its body."""
    if len(value) <= _NEAR:
        return len(value)
    try:
        return section_offsets(value)[BODY]
    except DecodeError:
        return len(value)


def places_of(data: bytes, start: int) -> dict[bytes, int]:
    """Where the values of an application-properties section begin, by their names: of the first `_PAIRS_MAX`, as far as
    it can be read. Of a name that is there twice: the first."""
    places = dict[bytes, int]()
    with suppress(DecodeError, IndexError):
        offset = skip(data, start + 1)  # behind the descriptor
        head = _HEADS.get(data[offset], 0)
        if not head:
            return places
        end = offset + head + int.from_bytes(data[offset + 1 : offset + head])
        offset += 2 * head - 1  # behind the size comes the count, of the same width
        for _ in range(_PAIRS_MAX):
            if offset >= end:
                break
            value, width = skip(data, offset), _NAMES.get(data[offset])
            if width is not None:
                places.setdefault(data[offset + width : value], value)
            offset = skip(data, value)
    return places


def _pairs(data: bytes, start: int) -> tuple[int, int]:
    """Where the pairs of an application-properties section begin and end; 0 and the end of the message, where it is
    written in a way of its own."""
    if data[start : start + 3] != _PLAIN:
        return 0, len(data)
    if data[start + 3] == 0xC1:
        return start + 6, start + 5 + data[start + 4]
    return start + 12, start + 8 + int.from_bytes(data[start + 4 : start + 8])


def _may_have(data: bytes, start: int, name: bytes) -> bool:
    """A long section is not searched for each name."""
    end = _pairs(data, start)[1]
    return end > start + _NEAR or data.find(name, start, end) >= 0


def _walk(data: bytes, start: int, key: bytes, at: int) -> int:
    """Where the value of that key of an application-properties section begins; 0 where it is none of its first keys, or
    the section is written in a way of its own. `at`: where the key's octets stand first."""
    offset, end = _pairs(data, start)
    if not offset:
        return 0
    end = min(end, start + _NEAR)
    while offset < end:
        if offset == at:
            return offset + len(key)
        for _ in (0, 1):  # a key, a value
            width = WIDTHS[data[offset]]
            offset = offset + width if width > 0 else skip(data, offset)
        if offset > at:
            at = data.find(key, offset, end)
            if at < 0:
                return 0
    return 0


def _shown(identity: Any, prefix: str) -> Any:
    """A message-id or correlation-id as Qpid JMS gives it to an application."""
    if isinstance(identity, str):
        return identity if identity.startswith("ID:") else prefix + identity
    if isinstance(identity, uuid.UUID):
        return f"ID:AMQP_UUID:{identity}"
    if isinstance(identity, ULong):
        return f"ID:AMQP_ULONG:{int(identity)}"
    if isinstance(identity, bytes):
        return f"ID:AMQP_BINARY:{identity.hex().upper()}"
    return None


@functools.lru_cache(maxsize=1024)  # the messages of a node share few headers
def _header(section: bytes) -> Header:
    try:
        return read_header(section) if section else Header()
    except DecodeError:
        return Header()
