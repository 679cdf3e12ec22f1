"""What `realmgate queue peek` shows: events as they are, dead letters with who gave them up, where and why.

Times are in UTC; an age is counted from when the letter was given up. A table is at most WIDTH characters wide: texts
that peers wrote are cut. Errors: none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gateway.cli.dead_letters.preview import sections
from gateway.cli.output import printable
from gateway.links.dead_letter_message import dead_letter_fields
from gateway.links.event_to_message import EventToMessage
from native_backend.events.event_kind import is_message
from native_backend.log.event_key import copied_from
from native_backend.shard.state_reader import Event
from transformers.codec import DecodeError, Described, decode
from transformers.message.sections import BODY, section_offsets

WIDTH: Final = 120
_BODY: Final = 60
_TEXT: Final = 12  # characters of a column, at least
_GAP: Final = 2
_PLAIN: Final = ("EID", "STORED", "OCTETS", "FAILED", "GIVEN", "BODY")
_LETTERS: Final = ("EID", "AGE", "CAUSE", "ORIGIN", "ATTEMPTS", "CONDITION", "REASON", "BODY")
_SHOWN: Final = ("cause", "node", "attempts", "condition", "description")
_CUT: Final = ("CAUSE", "ORIGIN", "CONDITION", "REASON", "BODY")
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


@dataclass(frozen=True, slots=True)
class Peeked:
    """One event. `message`: what a consumer gets; `letter`: what the annotations of a dead letter say, empty: it is
    none."""

    event: Event
    message: bytes
    letter: dict[str, Any]
    partition: int = 0


def peeked(event: Event, restoring: EventToMessage, partition: int = 0) -> Peeked:
    message = event.value if is_message(event.key) else restoring.message(event.key, event.value)
    is_a_copy = copied_from(event.key) is not None  # a peer may write such annotations, too
    return Peeked(event, message, dead_letter_fields(message) if is_a_copy else {}, partition)


def table(events: Sequence[Peeked], now_ms: int) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Titles and rows. Where no event is a dead letter, they are those of plain events."""
    if not any(event.letter for event in events):
        return _PLAIN, [_plain(event) for event in events]
    return _LETTERS, fitted(_LETTERS, [_letter(event, now_ms) for event in events])


def described(entry: Peeked, now_ms: int, in_words: bool = False) -> dict[str, Any]:
    """All of it, as JSON. `dead_letter` is null of what is none. `in_words`: the sections of the message, and not its
    octets."""
    event, letter = entry.event, entry.letter
    octets = {"value": base64.b64encode(event.value).decode()}
    return {
        "eid": event.eid,
        "partition": entry.partition,
        "stored": iso(event.at_ms),
        "failed": event.attempts,
        "given": event.given,
        "key": event.key.decode("utf-8", "backslashreplace"),
        "body": _preview(entry),
        **({"octets": len(event.value), "sections": sections(entry.message)} if in_words else octets),
        "dead_letter": {
            "cause": letter["cause"],
            "condition": letter.get("condition"),
            "reason": letter.get("description"),
            "info": letter.get("info"),
            "node": letter.get("node"),
            "durable": letter.get("durable"),
            "eid": letter.get("eid"),
            "attempts": letter.get("attempts"),
            "time": iso(_given_up_ms(entry)),
            "age_s": max(0, now_ms - _given_up_ms(entry)) / 1000,
        }
        if letter
        else None,
    }


def fitted(titles: Sequence[str], rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows whose table is at most WIDTH wide: the widest texts are cut first, none below _TEXT characters."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    cut = [at for at, title in enumerate(titles) if title in _CUT]
    while sum(widths) + _GAP * (len(widths) - 1) > WIDTH:
        widest = max(cut, key=lambda at: widths[at])
        if widths[widest] <= _TEXT:
            break
        widths[widest] -= 1
    return [tuple(_shortened(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(entry: Peeked) -> tuple[str, ...]:
    event = entry.event
    given = "yes" if event.given else "no"
    return str(event.eid), iso(event.at_ms), str(len(event.value)), str(event.attempts), given, _preview(entry)


def _letter(entry: Peeked, now_ms: int) -> tuple[str, ...]:
    letter, eid, body = entry.letter, str(entry.event.eid), _preview(entry)
    if not letter:
        return eid, _age(now_ms - entry.event.at_ms), "-", "-", "-", "-", "-", body
    texts = [printable(str(letter.get(name, "-"))) for name in _SHOWN]
    return eid, _age(now_ms - _given_up_ms(entry)), *texts, body


def _given_up_ms(entry: Peeked) -> int:
    time_ms = entry.letter.get("time")
    return time_ms if isinstance(time_ms, int) else entry.event.at_ms


def _age(milliseconds: int) -> str:
    seconds = max(0, milliseconds) // 1000
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _preview(entry: Peeked) -> str:
    """The beginning of an AMQP message's body; of other bytes, theirs."""
    value = entry.event.value
    content: Any = value
    with suppress(DecodeError):  # a native event is shown as it is
        content, _ = decode(value, section_offsets(value)[BODY])
    if isinstance(content, Described):
        content = content.value
    text = content.decode("utf-8", "backslashreplace") if isinstance(content, bytes | bytearray) else str(content)
    short = text if len(text) <= _BODY else f"{text[:_BODY]}..."
    return short if short.isprintable() else json.dumps(short)
