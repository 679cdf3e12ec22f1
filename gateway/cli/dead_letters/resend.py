"""`realmgate queue resend NODE --to-origin`: each dead letter goes back to the store that gave it up.

The realm's owner does it, each message in the journal's transaction that ends it here, so it is in exactly one place
whatever is killed. What has no origin to go back to stays, and is counted by where it was and why it stays. `--dry-run`
reads what is stored and changes nothing. Blocks; raises LogError.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TextIO

from gateway.cli.dead_letters.wanted import wanted
from gateway.cli.output import confirmed, print_error, printable, write_json, write_table
from gateway.cli.owner_client import carry_out
from gateway.config.settings import Settings
from gateway.serve.open_log import open_log
from native_backend.log.event_key import copied_from
from native_backend.nodes.commands import Reply
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.metadata_writer import realm_metadata
from native_backend.nodes.node import Node
from native_backend.operations.route import origin_of
from native_backend.shard.state_reader import StoredState

_SENT: Final = "sent"
_WORDS: Final = {
    _SENT: "sent back",
    "full": "stay: the node is full",
    "gone": "stay: the node was deleted, or created anew",
    "channel": "stay: it is a channel, where every durable would get them again",
    "moved": "stay: a command moved them here",
    "unknown": "stay: they are no dead letters",
}
_UNKNOWN: Final = "-"  # where a message was that nothing copied
Rows = Counter[tuple[int, str]]
"""Messages by store and by what becomes of them."""


@dataclass(slots=True)
class _Counted:
    """`names` are those that the messages say, of nodes that are no more."""

    rows: Rows
    names: dict[int, str]


def resend(settings: Settings, stores: Sequence[StoredState], arguments: argparse.Namespace, out: TextIO) -> int:
    """Its exit code: 0 also where messages stay."""
    with closing(open_log(settings)) as log:
        metadata = realm_metadata(log, settings.realm.prefix)
    if arguments.dry_run:
        counted = _count(settings, metadata, stores, arguments.where)
        return _tell(arguments, _origins(metadata, counted), out, done=True)
    which = (
        f"the messages of {printable(arguments.node)} that the selector means" if arguments.where else "all messages"
    )
    if not confirmed(f"Send {which} of {printable(arguments.node)} back to where they were?", arguments.yes, out):
        return 1
    rows: Rows = Counter()
    reply = Reply("", "done", 0, "")
    for state in stores:
        reply = carry_out(
            settings, "resend", state.durable, where=arguments.where, why=arguments.why, behalf=arguments.behalf
        )
        if reply.answer != "done":
            break
        rows.update({(store, why): count for store, why, count in json.loads(reply.detail)})
    names: dict[int, str] = {}
    if any(why == "gone" for _, why in rows):
        names = _count(settings, metadata, stores, arguments.where).names
    _tell(arguments, _origins(metadata, _Counted(rows, names)), out, done=reply.answer == "done")
    if reply.answer != "done":
        return print_error(f"resend of {printable(arguments.node)}: {reply.answer}: {reply.detail}")
    return 0


def _count(settings: Settings, metadata: Metadata, stores: Iterable[StoredState], where: str) -> _Counted:
    """What would become of each message, as far as that can be known before: whether a node is full is not asked."""
    counted = _Counted(Counter(), {})
    with closing(open_log(settings)) as log:
        for entry in wanted(log, [*stores], 0, where):
            origin = origin_of(metadata.stores, entry.event.key)
            store, _ = copied_from(entry.event.key) or (0, 0)
            counted.rows[store, _SENT if isinstance(origin, Node) else origin] += 1
            if origin == "gone":
                counted.names[store] = str(entry.letter.get("node", ""))
    return counted


def _origins(metadata: Metadata, counted: _Counted) -> list[dict[str, Any]]:
    """By node: several stores are one origin."""
    counts: Counter[tuple[str, str]] = Counter()
    for (store, why), count in counted.rows.items():
        node = metadata.stores.get(store)
        name = node.name if node is not None else counted.names.get(store) or (f"store {store}" if store else "")
        counts[name, why] += count
    return [{"origin": name or None, "what": why, "count": count} for (name, why), count in sorted(counts.items())]


def _tell(arguments: argparse.Namespace, origins: list[dict[str, Any]], out: TextIO, *, done: bool) -> int:
    sent = sum(row["count"] for row in origins if row["what"] == _SENT)
    stay = sum(row["count"] for row in origins) - sent
    if arguments.json:
        document = {"node": arguments.node, "done": done, "dry_run": arguments.dry_run, "sent": sent, "stay": stay}
        write_json({**document, "origins": origins}, out)
        return 0
    if origins:
        rows = [(printable(row["origin"] or _UNKNOWN), str(row["count"]), _words(arguments, row)) for row in origins]
        write_table(("ORIGIN", "MESSAGES", "WHAT"), rows, out)
    would = "would be sent back" if arguments.dry_run else "are sent back"
    out.write(f"queue {printable(arguments.node)}: {sent} messages {would}, {stay} stay\n")
    return 0


def _words(arguments: argparse.Namespace, row: dict[str, Any]) -> str:
    return "to send back" if arguments.dry_run and row["what"] == _SENT else _WORDS[row["what"]]
