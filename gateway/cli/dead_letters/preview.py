"""A message in words, for `queue peek --sections`: its sections as JSON, each text cut, nothing that steers a terminal.

Binary is hexadecimal where it is no readable text. Errors: none; a section that cannot be read says so.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from gateway.evidence.kept_detail import plain
from gateway.verdict.answers import escaped
from transformers.codec import DecodeError, Described, decode
from transformers.message.sections import APPLICATION_PROPERTIES, BODY, HEADER, PROPERTIES, section_offsets

BODY_MAX: Final = 2_000
"""Characters of a body."""
TEXT_MAX: Final = 500
"""Characters of another text."""
ENTRIES_MAX: Final = 50
"""Of a map or a list."""
_NAMES: Final = {
    HEADER: ("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    PROPERTIES: (
        "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
        "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id",
    ),
}  # fmt: skip


def sections(message: bytes) -> dict[str, Any]:
    """Of a message as a consumer gets it; empty sections are left out."""
    try:
        offsets = section_offsets(message)
    except DecodeError as error:
        return {"problem": f"it is no AMQP message: {error}"}
    by_name = {
        "header": _section(message, offsets[HEADER], HEADER),
        "properties": _section(message, offsets[PROPERTIES], PROPERTIES),
        "application_properties": _section(message, offsets[APPLICATION_PROPERTIES], APPLICATION_PROPERTIES),
        "body": body(message, offsets[BODY]),
    }
    return {name: section for name, section in by_name.items() if section not in (None, {}, "")}


def body(message: bytes, at: int) -> str:
    """The beginning of it; of several data sections or sequences the first one's."""
    content: Any = ""
    with suppress(DecodeError):
        content = decode(message, at)[0] if at < len(message) else ""
    content = content.value if isinstance(content, Described) else content
    return readable(content if isinstance(content, bytes | str) else str(plain(content)), BODY_MAX)


def readable(value: bytes | str, most: int = TEXT_MAX) -> str:
    """Cut at so many characters; what cannot be shown is escaped."""
    text = value[: 4 * most].decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    short = text if len(text) <= most else f"{text[:most]}..."
    return escaped(short)


def _section(message: bytes, at: int, which: int) -> dict[str, Any] | None:
    if at < 0:
        return None
    try:
        value = decode(message, at)[0].value
    except DecodeError as error:
        return {"problem": f"it cannot be read: {error}"}
    if which in _NAMES:
        pairs = [*zip(_NAMES[which], value, strict=False)]
    else:
        pairs = [(str(key), entry) for key, entry in value.pairs]
    return {readable(name): _value(entry) for name, entry in pairs[:ENTRIES_MAX] if entry is not None}


def _value(value: Any) -> Any:
    if isinstance(value, bytes | str):
        return readable(value)
    shown = plain(value)
    return shown if isinstance(shown, bool | int | float) else readable(str(shown))
