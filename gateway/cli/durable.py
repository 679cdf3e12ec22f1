"""`realmgate durable list | show | seek | delete`: named subscriptions and queues' own states, seen from outside and
changed through the realm's owner.

Text for people, `--json` for programs. Exit codes: 0 done, 1 it is not so (no such durable; refused; the answer was
no). Errors: `LogError`, `NodeError`, printed by `gateway.cli.main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import Any, TextIO

from gateway.cli.answering_log import open_answering
from gateway.cli.audit.behalf import refuse_what_may_not_be
from gateway.cli.message_numbers import numbers, shown
from gateway.cli.output import confirmed, print_error, printable, problem_of, warn_of_broken, write_json, write_table
from gateway.cli.owner_client import carry_out
from gateway.cli.typed_numbers import ANSWER_S
from gateway.config.settings import Settings
from gateway.serve.open_log import open_log
from native_backend.log.port import Log
from native_backend.log.time_search import first_at
from native_backend.nodes.commands import Reply, What
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.metadata_writer import realm_metadata
from native_backend.nodes.node import Node, NodeError
from native_backend.shard.counts_report import Counted
from native_backend.shard.state_reader import StoredState, observe

_PLACES = ("beginning", "end")
_COUNTS = ("STORED", "WAITING", "UNSETTLED", "DELAYED")  # messages


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """Carry out one parsed durable command."""
    if arguments.action == "list":
        return _list(settings, arguments, out)
    if arguments.action != "show":
        change = f"{arguments.action} {arguments.durable} of {arguments.node}"
        refuse_what_may_not_be(settings, arguments, [("manage", arguments.node)], change)
    stores = find(settings, arguments.node, arguments.durable, getattr(arguments, "partition", None), arguments.timeout)
    if not stores:
        return unknown(arguments.node, arguments.durable)
    warn_of_broken(stores[0].node, stores[0].broken)
    if arguments.action == "show":
        return _show(settings, stores, arguments.json, out)
    name = f"durable {printable(arguments.durable)} of {printable(arguments.node)}"
    if arguments.durable == QUEUE and stores[0].node.kind == "queue":
        raise NodeError(f"{printable(arguments.node)} is a queue: realmgate queue purge and node delete are for those")
    if arguments.action == "delete":
        held = held_of(stores)
        if not confirmed(f"Delete {name}, with at most {held} events that it has not settled?", arguments.yes, out):
            return 1
        reply = carry_out(settings, "delete", stores[0].durable, why=arguments.why, behalf=arguments.behalf)
        return report(reply, "delete", name, out)
    refuse_broken(stores)
    if arguments.to.isdigit():
        one_store(stores)
    with closing(open_log(settings)) as log:
        places = [_place(log, store, arguments.to) for store in stores]
    ways = ", ".join(f"from {part.state.low} to {eid}" for part, eid in zip(stores, places, strict=True))
    if not confirmed(f"Move {name} {ways}?", arguments.yes, out):
        return 1
    columns, how = zip(stores, places, strict=True), {"why": arguments.why, "behalf": arguments.behalf}
    replies = (carry_out(settings, "seek", part.durable, eid=eid, **how) for part, eid in columns)
    return report(in_turn(replies), "seek", name, out)


def find(
    settings: Settings, node_name: str, durable: str, partition: int | None = None, timeout_s: float = ANSWER_S
) -> list[StoredState]:
    """One durable as it is now, in every store of its node, or in the one that lies in that partition."""
    with closing(open_answering(settings, timeout_s)) as log:
        metadata = realm_metadata(log, settings.realm.prefix)
        node = metadata.nodes.get(node_name)
        observed = [] if node is None else observe(log, settings.realm.prefix, metadata, node)
    stores = [store for store in observed if store.durable.name == durable]
    if stores and partition is not None:
        if partition >= len(stores):
            raise NodeError(f"node {printable(node_name)} has the partitions 0 to {len(stores) - 1}")
        return [stores[partition]]
    return stores


def one_store(stores: Sequence[StoredState]) -> StoredState:
    """An EID is one of a store."""
    if len(stores) > 1:
        raise NodeError(f"an EID is one of a store, and the node has {len(stores)}: say which by --partition")
    return stores[0]


def refuse_broken(stores: Sequence[StoredState]) -> None:
    """Where a node's events are needed."""
    node, broken = stores[0].node, stores[0].broken
    if broken is not None:
        raise NodeError(f"node {printable(node.name)}: {broken.detail}: {broken.remedy}")


def held_of(stores: Sequence[StoredState]) -> int:
    return sum(store.events_max for store in stores)


def in_turn(replies: Iterable[Reply]) -> Reply:
    """Of one command a store, as far as each is done: one reply."""
    count, details = 0, []
    for reply in replies:
        count += reply.count
        details.append(reply.detail)
        if reply.answer != "done":
            break
    return replace(reply, count=count, detail="; ".join(detail for detail in details if detail))


def unknown(node: str, durable: str) -> int:
    name = f"durable {printable(durable)} of node {printable(node)}"
    return print_error(f"there is no {name}; realmgate durable list shows those there are")


def report(reply: Reply, what: What, name: str, out: TextIO) -> int:
    """What came of a command, for people; its exit code."""
    if reply.answer != "done":
        return print_error(f"{what} of {name}: {reply.answer}: {reply.detail}")
    counts = {"purge": f"{reply.count} EIDs are purged", "move": f"{reply.count} events are moved"}
    parts = [counts.get(what, ""), {"delete": "it is deleted"}.get(what, ""), reply.detail]
    out.write(f"{name}: {'; '.join(word for word in parts if word)}\n")
    return 0


def _list(settings: Settings, arguments: argparse.Namespace, out: TextIO) -> int:
    prefix = settings.realm.prefix
    with closing(open_answering(settings, arguments.timeout)) as log:
        metadata = realm_metadata(log, prefix)
        node = metadata.nodes.get(arguments.node) if arguments.node is not None else None
        if arguments.node is not None and node is None:
            return print_error(
                f"there is no node {printable(arguments.node)}; realmgate node list shows those there are"
            )
        observed = observe(log, prefix, metadata, node)
        counted = numbers(log, prefix, metadata, _nodes_of(observed))
    if arguments.json:
        write_json([_described(store, counted) for store in observed], out)
        return 0
    rows = [
        (
            printable(store.node.name),
            printable(store.durable.name),
            str(store.node.partition),
            _held_as(store),
            printable(store.durable.owner) or "-",
            str(store.state.low),
            *("-" if store.broken is not None else shown(number) for number in _counts(store, counted).values()),
            str(len(store.state.failed)),
            printable(store.durable.group),
        )
        for store in observed
    ]
    write_table(("NODE", "DURABLE", "PARTITION", "HELD", "OWNER", "LOW", *_COUNTS, "FAILED", "GROUP"), rows, out)
    for node, broken in {store.node.name: (store.node, store.broken) for store in observed}.values():
        warn_of_broken(node, broken)
    return 0


def _show(settings: Settings, stores: Sequence[StoredState], as_json: bool, out: TextIO) -> int:
    with closing(open_log(settings)) as log:
        prefix = settings.realm.prefix
        counted = numbers(log, prefix, realm_metadata(log, prefix), _nodes_of(stores))
    described = [_described(store, counted) for store in stores]
    if as_json:
        write_json(described if len(stores) > 1 else described[0], out)
        return 0
    first = stores[0]
    out.write(f"durable {printable(first.durable.name)} of {first.node.kind} {printable(first.node.name)}\n")
    for document in described:
        for key, value in document.items():
            if key not in ("node", "durable", "kind", "problem"):
                out.write(f"  {key} {'-' if key == 'owner' and value is None else printable(str(value))}\n")
    return 0


def _nodes_of(observed: Sequence[StoredState]) -> list[Node]:
    return [*{store.node.name: store.node.part(0) for store in observed}.values()]


def _counts(store: StoredState, counted: Counted) -> dict[str, int | None]:
    """Messages. None: they are being counted, or cannot be."""
    counts = counted.get((store.node.store, store.durable.name)) if store.broken is None else None
    if counts is None:
        return dict.fromkeys(("stored", "waiting", "unsettled", "delayed"))
    return {
        "stored": counts.stored,
        "waiting": counts.available,
        "unsettled": counts.unsettled,
        "delayed": counts.delayed,
    }


def _held_as(store: StoredState) -> str:
    """exclusive, shared, volatile; a queue's own state is all consumers'."""
    return "queue" if store.node.kind == "queue" else store.durable.terms.kind


def _described(store: StoredState, counted: Counted) -> dict[str, Any]:
    return {
        "node": store.node.name,
        "durable": store.durable.name,
        "kind": store.node.kind,
        "partition": store.node.partition,
        "held": _held_as(store),
        "owner": store.durable.owner or None,
        "expiry": store.durable.terms.expiry,
        "timeout_s": store.durable.terms.timeout_s,
        "group": store.durable.group,
        "start": store.durable.start,
        "low": store.state.low,
        "position": store.state.position,
        "end": store.end if store.broken is None else None,
        **_counts(store, counted),
        "failed": len(store.state.failed),
        **problem_of(store.broken),
    }


def _place(log: Log, stored: StoredState, to: str) -> int:
    """An EID, `beginning`, `end`, or a time."""
    if to in _PLACES:
        return stored.first if to == "beginning" else stored.end
    if to.isdigit():
        return int(to)
    try:
        when = datetime.fromisoformat(to)
    except ValueError:
        raise NodeError(f"--to {to}: write an EID, beginning, end, or a time like 2026-11-21T09:00:00Z") from None
    if when.tzinfo is None:
        raise NodeError(f"--to {to}: say which time zone, as in {to}Z")
    node, bounds = stored.node, (stored.first, stored.end)
    return first_at(log, node.topic, node.partition, bounds, int(when.timestamp() * 1000), 10.0)
