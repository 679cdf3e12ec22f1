"""Sections of a message as named headers, by UM's mapping (semantics 3.4, Appendix B).

| section | header |
|---|---|
| header, properties | HEADER_NAMES, PROPERTY_NAMES by field; what is null or absent has none |
| delivery-annotations, message-annotations, footer | `JMS_AMQP_DA_`, `JMS_AMQP_MA_`, `JMS_AMQP_FT_` and the key |
| application-properties | the key |

A key that no header can have (empty, with a NUL, beginning like our own) is not shown; the message keeps it.
Errors: `DecodeError` for a section that is not of its form.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from transformers.codec import AmqpMap, DecodeError, Described, decode
from transformers.message.header import read_header
from transformers.message.plain_text import shown
from transformers.message.sections import (
    APPLICATION_PROPERTIES,
    BODY,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    Offsets,
)

OURS = "um-"  # what our own headers begin with
HEADER_NAMES = (
    "nPublished.isPersistent",
    "nHeader.Priority",
    "nHeader.TTL",
    "JMS_AMQP_FirstAcquirer",
    "nHeader.RedeliveredCount",
)
PROPERTY_NAMES = (
    "nHeader.MessageId",
    "nHeader.UserId",
    "nHeader.Destination",
    "nHeader.Type",
    "nHeader.ReplyToName",
    "nHeader.CorrelationId",
    "JMS_AMQP_ContentType",
    "JMS_AMQP_ContentEncoding",
    "nHeader.Expiration",
    "nHeader.PublishTimestamp",
    "JMSXGroupID",
    "JMSXGroupSeq",
    "JMS_AMQP_ReplyToGroupID",
)
GROUP_ID = 10
PREFIXES = {DELIVERY_ANNOTATIONS: "JMS_AMQP_DA_", MESSAGE_ANNOTATIONS: "JMS_AMQP_MA_", APPLICATION_PROPERTIES: ""}
FOOTER_PREFIX = "JMS_AMQP_FT_"
KEY_HEADER, KEY_FORMS = "JMS_AMQP_MA_x-opt-kafka-key", ("string", "symbol", "binary")
REMEMBERED_BYTES = 512  # sections up to that size, 1,024 of them: half a megabyte of what messages of a link share

Shown = tuple[str, str, "bytes | None"]  # name, type, octets


class Sections:
    """What a message says, decoded: `headers` of it in the order of its sections, and the key for its record."""

    def __init__(self, message: bytes, offsets: Offsets) -> None:
        self.headers: list[Shown] = []
        self.key: bytes | None = None
        ends = _ends(offsets, len(message))
        if offsets[HEADER] == 0:
            self.headers += _header(message[: ends[HEADER]])
        for section in (DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS):
            if offsets[section] >= 0:
                self._add_map(message[offsets[section] : ends[section]], section)
        if offsets[PROPERTIES] >= 0:
            self._add_properties(_list(message[offsets[PROPERTIES] : ends[PROPERTIES]]))
        if offsets[APPLICATION_PROPERTIES] >= 0:
            at, end = offsets[APPLICATION_PROPERTIES], ends[APPLICATION_PROPERTIES]
            self._add_map(message[at:end], APPLICATION_PROPERTIES)
        if offsets[FOOTER] >= 0:
            self.headers += _map(message[offsets[FOOTER] :], FOOTER_PREFIX)

    def _add_map(self, section: bytes, which: int) -> None:
        shown_pairs = _map(section, PREFIXES[which])
        self.headers += shown_pairs
        if which == MESSAGE_ANNOTATIONS:
            for name, form, octets in shown_pairs:
                if name == KEY_HEADER and form in KEY_FORMS:
                    self.key = octets

    def _add_properties(self, fields: list[Any]) -> None:
        group = fields[GROUP_ID] if len(fields) > GROUP_ID else None
        if self.key is None and isinstance(group, str):
            self.key = group.encode()
        self.headers += [
            (name, *shown(field)) for name, field in zip(PROPERTY_NAMES, fields, strict=False) if field is not None
        ]


def _ends(offsets: Offsets, size: int) -> list[int]:
    """Where each section up to the body ends: where the next one that is there begins."""
    ends, end = [size] * (FOOTER + 1), size
    for section in range(BODY, -1, -1):
        ends[section] = end
        if offsets[section] >= 0:
            end = offsets[section]
    return ends


@functools.lru_cache(maxsize=1024)  # the messages of a link share few headers
def _header(section: bytes) -> tuple[Shown, ...]:
    read_header(section)  # of the right types
    fields = zip(HEADER_NAMES, _list(section), strict=False)
    return tuple((name, *shown(field)) for name, field in fields if field is not None)


def _list(section: bytes) -> list[Any]:
    value = _value(section)
    if not isinstance(value, list):
        raise DecodeError(0, "a section that is a list")
    return value


def _map(section: bytes, prefix: str) -> tuple[Shown, ...]:
    shown_before = _remembered if len(section) <= REMEMBERED_BYTES else _shown_map
    return shown_before(section, prefix)


def _shown_map(section: bytes, prefix: str) -> tuple[Shown, ...]:
    return tuple(_named(prefix, _pairs(section)))


_remembered = functools.lru_cache(maxsize=1024)(_shown_map)


def _pairs(section: bytes) -> list[tuple[Any, Any]]:
    value = _value(section)
    if not isinstance(value, AmqpMap):
        raise DecodeError(0, "a section that is a map")
    return value.pairs


def _value(section: bytes) -> Any:
    described, end = decode(section)
    if not isinstance(described, Described) or end != len(section):
        raise DecodeError(end, "a section is a described value")
    return described.value


def _named(prefix: str, pairs: Iterable[tuple[Any, Any]]) -> Iterator[Shown]:
    for key, value in pairs:
        name = prefix + (key if isinstance(key, str) else str(key) if isinstance(key, int) else "")
        if len(name) > len(prefix) and "\0" not in name and not name.startswith(OURS):
            yield (name, *shown(value))
