"""`realmgate queue peek | purge | move | resend`: a queue's events, or with `--durable` those of a channel's durable.

`peek` shows without taking; the others go through the realm's owner and leave what consumers have just now.
Text for people, `--json` for programs. Exit codes: 0 done, 1 it is not so. Errors: `LogError`, printed by
`gateway.cli.main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any, TextIO

from gateway.cli.audit.behalf import Need, refuse_what_may_not_be
from gateway.cli.dead_letters.peeked import described, table
from gateway.cli.dead_letters.resend import resend
from gateway.cli.dead_letters.wanted import refuse_no_selector, wanted
from gateway.cli.durable import find, held_of, in_turn, one_store, refuse_broken, report, unknown
from gateway.cli.output import confirmed, printable, write_json, write_table
from gateway.cli.owner_client import carry_out
from gateway.config.settings import Settings
from gateway.serve.open_log import open_log
from native_backend.clock import SystemClock
from native_backend.nodes.commands import Reply
from native_backend.shard.state_reader import StoredState


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """Carry out one parsed queue command."""
    refuse_no_selector(arguments.where)
    refuse_what_may_not_be(settings, arguments, _needs(arguments), _change(arguments))
    stores = find(settings, arguments.node, arguments.durable, arguments.partition, arguments.timeout)
    if not stores:
        return unknown(arguments.node, arguments.durable)
    refuse_broken(stores)
    if arguments.action == "peek":
        return _peek(settings, stores, arguments, out)
    if arguments.action == "resend":
        return resend(settings, stores, arguments, out)
    name = f"{stores[0].node.kind} {printable(stores[0].node.name)}"
    if arguments.dry_run:
        return _would(settings, stores, arguments, name, out)
    if arguments.action == "purge":
        return _purge(settings, stores, arguments, name, out)
    count = f"{arguments.count} events" if arguments.count else "all events"
    if not confirmed(f"Move {count} of {name}{_meant(arguments)} to {printable(arguments.to)}?", arguments.yes, out):
        return 1
    return report(in_turn(_moves(settings, stores, arguments)), "move", name, out)


def _purge(settings: Settings, stores: list[StoredState], arguments: argparse.Namespace, name: str, out: TextIO) -> int:
    if arguments.below:
        one_store(stores)
    below = f" below EID {arguments.below}" if arguments.below else ""
    held = held_of(stores)
    question = f"Purge {name}{below}{_meant(arguments)}: delete at most {held} events for ever?"
    if not confirmed(question, arguments.yes, out):
        return 1
    how = {"eid": arguments.below, **_how(arguments)}
    return report(in_turn(carry_out(settings, "purge", store.durable, **how) for store in stores), "purge", name, out)


def _moves(settings: Settings, stores: list[StoredState], arguments: argparse.Namespace) -> Iterator[Reply]:
    """One store after another, until so many were moved; 0: all."""
    left = arguments.count
    for store in stores:
        reply = carry_out(settings, "move", store.durable, count=left, to=arguments.to, **_how(arguments))
        yield reply
        left -= reply.count
        if arguments.count and left <= 0:
            return


def _how(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"where": arguments.where, "why": arguments.why, "behalf": arguments.behalf}


def _needs(arguments: argparse.Namespace) -> list[Need]:
    """What `--as USER` must be allowed to do."""
    if arguments.action == "peek":
        return [("peek", arguments.node)]
    return [("purge", arguments.node), *([("publish", arguments.to)] if arguments.action == "move" else [])]


def _change(arguments: argparse.Namespace) -> str:
    """In words, where something would be changed."""
    if arguments.action == "peek" or arguments.dry_run:
        return ""
    to = f" to {arguments.to}" if arguments.action == "move" else ""
    return f"{arguments.action} {arguments.node}{to}{_meant(arguments)}"


def _would(settings: Settings, stores: list[StoredState], arguments: argparse.Namespace, name: str, out: TextIO) -> int:
    """How many messages a purge or a move means; what consumers have just now is counted, and would stay."""
    below, most = getattr(arguments, "below", 0), getattr(arguments, "count", 0)
    if below:
        one_store(stores)
    with closing(open_log(settings)) as log:
        events = (entry for entry in wanted(log, stores, 0, arguments.where) if not below or entry.event.eid < below)
        count = sum(1 for _ in islice(events, most or None))
    out.write(f"{name}: {arguments.action} means {count} messages\n")
    return 0


def _meant(arguments: argparse.Namespace) -> str:
    return f" where {printable(arguments.where)}" if arguments.where else ""


def _peek(settings: Settings, stores: list[StoredState], arguments: argparse.Namespace, out: TextIO) -> int:
    if arguments.start:
        one_store(stores)
    with closing(open_log(settings)) as log:
        events = [*islice(wanted(log, stores, arguments.start, arguments.where), arguments.count)]
    now_ms = SystemClock().epoch_us() // 1000
    if arguments.json:
        write_json([described(event, now_ms, arguments.sections) for event in events], out)
        return 0
    write_table(*table(events, now_ms), out)
    return 0
