"""The transformer `complete`: a message as a native event that any consumer of the log can read.

The value is the content of the body where that is one data section, or one value that is binary or a string; else the
body's sections as they are. The named headers say what the other sections say (`named_headers.py`), `um-types` their
types; `um-sections` and `um-footer` keep the octets before and behind the value, so that the message can be given out
again as it came. Layout, version 1: docs/kafka-headers.md. Source: semantics 3.4 (2, complete).
Errors: none; a message of which anything but the body cannot be decoded is a null event.
"""

from __future__ import annotations

from transformers.codec import DecodeError, ULong, decode, skip
from transformers.events.named_headers import Sections
from transformers.events.native_event import NativeEvent
from transformers.message.sections import (
    BODY,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    section_offsets,
    without_delivery_annotations,
)

BODY_KIND, TYPES, SECTIONS, FOOTER_OCTETS = "um-body", "um-types", "um-sections", "um-footer"
_DATA, _VALUE = 0x75, 0x77
_BINARY, _STRING = (0xA0, 0xB0), (0xA1, 0xB1)
_BY_SYMBOL = {"amqp:data:binary": _DATA, "amqp:amqp-value:*": _VALUE}
_BRIEF = {b"\x00\x53\x75\xa0": b"data", b"\x00\x53\x77\xa0": b"binary", b"\x00\x53\x77\xa1": b"string"}


class Complete:
    """App. B, and the way back."""

    def event(self, message: bytes) -> NativeEvent | None:
        """See `EventTransformer`."""
        try:
            return _event(message)
        except DecodeError:
            return None

    def message(self, event: NativeEvent) -> bytes:
        """Raises ValueError for an event that this transformer did not make."""
        before: bytes | None = None
        behind = b""
        for name, value in event.headers:
            if name == SECTIONS:
                before = value or b""
            elif name == FOOTER_OCTETS:
                behind = value or b""
            elif name == TYPES:  # what follows is the publisher's
                break
        if before is None:
            raise ValueError(f"no header {SECTIONS}")
        return before + event.value + behind


def _event(message: bytes) -> NativeEvent:
    offsets = section_offsets(message)
    sections = Sections(message, offsets)
    if offsets[DELIVERY_ANNOTATIONS] >= 0:
        message, offsets = without_delivery_annotations(message, offsets)
    end = offsets[FOOTER] if offsets[FOOTER] >= 0 else len(message)
    kind, start = body_content(message, offsets[BODY], end)
    headers: list[tuple[str, bytes | None]] = [(BODY_KIND, kind), (SECTIONS, message[:start])]
    if end < len(message):
        headers.append((FOOTER_OCTETS, message[end:]))
    headers.append((TYPES, ",".join([form for _, form, _ in sections.headers]).encode()))
    headers += [(name, octets) for name, _, octets in sections.headers]
    return NativeEvent(sections.key, tuple(headers), message[start:end])


def body_content(message: bytes, body: int, end: int) -> tuple[bytes, int]:
    """What the body from `body` to `end` is, and where the content begins that says the same to others: `data`,
    `binary` and `string` are octets; `sections` is the body as it stands."""
    kind = _BRIEF.get(message[body : body + 4])
    if kind is not None and body + 5 + message[body + 4] == end:
        return kind, body + 5
    if body == end:
        return b"sections", body  # there is none
    descriptor, value = decode(message, body + 1)
    code = _BY_SYMBOL.get(descriptor) if not isinstance(descriptor, ULong) else int(descriptor)
    form = message[value]
    if code not in (_DATA, _VALUE) or form not in (*_BINARY, *_STRING) or skip(message, value) != end:
        return b"sections", body
    kind = b"data" if code == _DATA else b"binary" if form in _BINARY else b"string"
    return kind, value + (5 if form & 0x10 else 2)
