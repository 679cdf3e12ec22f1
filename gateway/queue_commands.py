"""`realmgate queue peek | purge | move`: a queue's events, or with `--durable` those of a channel's durable.

`peek` shows without taking; `purge` and `move` go through the realm's owner and leave what consumers have just now.
Text for people, `--json` for programs. Exit codes: 0 done, 1 it is not so. Errors: `LogError`, told by `gateway.cli`.
May import: `gateway`, `native_backend`, `transformers`, the standard library.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, TextIO

from gateway.commanding import carry_out
from gateway.durable_commands import find, held_of, in_turn, one_store, told, unknown
from gateway.open_log import open_log
from gateway.printout import confirmed, printable, write_json, write_table
from gateway.settings import Settings
from native_backend.commands import Reply
from native_backend.observing import Event, Observed, unsettled_events
from transformers.amqp_types import DecodeError, Described, decode
from transformers.sections import BODY, section_offsets

_PREVIEW = 60


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """Carry out one parsed queue command."""
    stores = find(settings, arguments.node, arguments.durable, arguments.partition)
    if not stores:
        return unknown(arguments.node, arguments.durable)
    if arguments.action == "peek":
        return _peek(settings, stores, arguments, out)
    name = f"{stores[0].node.kind} {printable(stores[0].node.name)}"
    if arguments.action == "purge":
        if arguments.below:
            one_store(stores)
        below = f" below EID {arguments.below}" if arguments.below else ""
        held = held_of(stores)
        question = f"Purge {name}{below}: at most {held} events are gone for ever?"
        if not confirmed(question, arguments.yes, out):
            return 1
        replies = (carry_out(settings, "purge", one.durable, eid=arguments.below) for one in stores)
        return told(in_turn(replies), "purge", name, out)
    count = f"{arguments.count} events" if arguments.count else "all events"
    if not confirmed(f"Move {count} of {name} to {printable(arguments.to)}?", arguments.yes, out):
        return 1
    return told(in_turn(_moves(settings, stores, arguments.count, arguments.to)), "move", name, out)


def _moves(settings: Settings, stores: list[Observed], count: int, to: str) -> Iterator[Reply]:
    """One store after another, until so many were moved; 0: all."""
    left = count
    for one in stores:
        reply = carry_out(settings, "move", one.durable, count=left, to=to)
        yield reply
        left -= reply.count
        if count and left <= 0:
            return


def _peek(settings: Settings, stores: list[Observed], arguments: argparse.Namespace, out: TextIO) -> int:
    if arguments.start:
        one_store(stores)
    with closing(open_log(settings)) as log:
        found = chain.from_iterable(unsettled_events(log, one, arguments.start, arguments.count) for one in stores)
        events = [*islice(found, arguments.count)]
    if arguments.json:
        write_json([_described(event) for event in events], out)
        return 0
    rows = [
        (
            str(event.eid),
            _time(event),
            str(len(event.value)),
            str(event.attempts),
            "yes" if event.given else "no",
            _preview(event.value),
        )
        for event in events
    ]
    write_table(("EID", "STORED", "OCTETS", "FAILED", "GIVEN", "BODY"), rows, out)
    return 0


def _described(event: Event) -> dict[str, Any]:
    return {
        "eid": event.eid,
        "stored": _time(event),
        "failed": event.attempts,
        "given": event.given,
        "key": event.key.decode("utf-8", "backslashreplace"),
        "body": _preview(event.value),
        "value": base64.b64encode(event.value).decode(),
    }


def _time(event: Event) -> str:
    return datetime.fromtimestamp(event.at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _preview(value: bytes) -> str:
    """The beginning of an AMQP message's body; of other bytes, theirs."""
    content: Any = value
    with suppress(DecodeError):  # a native event is shown as it is
        content, _ = decode(value, section_offsets(value)[BODY])
    if isinstance(content, Described):
        content = content.value
    text = content.decode("utf-8", "backslashreplace") if isinstance(content, bytes | bytearray) else str(content)
    short = text if len(text) <= _PREVIEW else f"{text[:_PREVIEW]}..."
    return short if short.isprintable() else json.dumps(short)
