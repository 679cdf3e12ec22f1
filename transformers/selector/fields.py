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
from typing import Any, Final, TypeAlias

from transformers.codec import AmqpMap, DecodeError, Described, ULong, decode, skip
from transformers.codec.formats import WIDTHS
from transformers.message.header import Header, read_header
from transformers.message.sections import (
    APPLICATION_PROPERTIES,
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
_UNKNOWN: Final = ("JMSRedelivered", "JMSXDeliveryCount", "JMSDestination", "JMSReplyTo")


class Message:
    """One message after another, as a selector reads them: `load` takes the next one."""

    __slots__ = ("_annotations", "_application", "_header", "_offsets", "_properties", "value")

    def load(self, value: bytes) -> None:
        self.value = value
        self._offsets: Offsets | None = None
        self._header: Header | None = None
        self._properties: list[Any] | None = None
        self._application: AmqpMap | None = None
        self._annotations: AmqpMap | None = None

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
            section = self._section(MESSAGE_ANNOTATIONS)
            self._annotations = section if isinstance(section, AmqpMap) else AmqpMap([])
        return self._annotations.get(name)

    def application(self, name: str, key: bytes) -> Any:
        """`key`: the name as nearly every client encodes it; the map is walked up to there, and no further."""
        start = self.offset(APPLICATION_PROPERTIES)
        if start < 0:
            return None
        if self._application is None and (at := self.value.find(key, start)) >= 0:
            try:
                place = _walk(self.value, start, key, at)
                if place:
                    return decode(self.value, place)[0]
            except (DecodeError, IndexError):
                return None
        if self.value.find(key[2:], start) < 0:
            return None
        if self._application is None:
            section = self._section(APPLICATION_PROPERTIES)
            self._application = section if isinstance(section, AmqpMap) else AmqpMap([])
        return self._application.get(name)

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
    key = b"\xa1%c%b" % (len(octets), octets) if len(octets) < 256 else b"\xb1\0" + octets
    return lambda message: message.application(name, key)


def _walk(data: bytes, start: int, key: bytes, at: int) -> int:
    """Where the value of that key of an application-properties section begins; 0 where it is none of its keys, or the
    section is written in a way of its own. `found`: where the key's octets stand first."""
    if data[start : start + 3] != b"\x00\x53\x74":
        return 0
    code = data[start + 3]
    head, size = (6, data[start + 4]) if code == 0xC1 else (12, int.from_bytes(data[start + 4 : start + 8]))
    offset, end = start + head, start + head - (1 if code == 0xC1 else 4) + size
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
