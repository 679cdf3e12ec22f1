"""`realmgate node create | set | list | show | delete | apply | export`: a realm's nodes, beside a gateway that serves
it or without one.

What a command did is active when it returns; a serving gateway follows changed properties within a second. Text for
people, `--json` for programs. Exit codes: 0 done, 1 there is no such node (or the answer was no). Errors: `LogError`,
`NodeError`, `PropertyError`, printed by `gateway.cli.main`.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, TextIO

from gateway.cli.answering_log import open_answering
from gateway.cli.audit.noted import noted
from gateway.cli.message_numbers import numbers, stored_in
from gateway.cli.message_numbers import shown as shown_number
from gateway.cli.node_apply import Delete, apply_file
from gateway.cli.node_export import exported
from gateway.cli.node_properties import KEYS, differences, read_assignments, shown, shown_acl
from gateway.cli.output import confirmed, print_error, printable, problem_of, warn_of_broken, write_json, write_table
from gateway.config.settings import Settings
from native_backend.clock import SystemClock
from native_backend.log.port import Log
from native_backend.nodes import admin
from native_backend.nodes.commands import Reply
from native_backend.nodes.metadata_writer import realm_metadata, set_properties
from native_backend.nodes.node import Node, NodeError
from native_backend.nodes.properties import DEFAULT, encode_properties
from native_backend.shard.counts_report import Counted


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """Carry out one parsed node command."""
    prefix = settings.realm.prefix
    with closing(open_answering(settings, arguments.timeout)) as log:
        if arguments.action == "apply":
            return apply_file(log, settings, arguments, _deletion(settings, arguments.why), out)
        name = checked_name(arguments.name, settings.limits.node_name_bytes)
        if arguments.action == "create":
            return _create(log, prefix, name, arguments, out)
        if arguments.action == "set":
            return _set(log, prefix, name, arguments, out)
        if arguments.action == "export":
            return _export(log, prefix, name, out)
        if arguments.action == "list":
            return _list(log, prefix, name, arguments.json, out)
        if arguments.action == "show":
            return _show(log, prefix, name, arguments.json, out)
        return _delete(log, settings, name, arguments, out)


def checked_name(name: str | None, size_max: int) -> str:
    """The name as the realm can keep it; empty where a command needs none."""
    if name is None:
        return ""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise NodeError(f"{name!a} is not UTF-8: a node's name is") from None
    if not name:
        raise NodeError("a node's name is not empty")
    if size > size_max:
        raise NodeError(f"a name of {size} octets, limits.node_name_bytes allows {size_max}")
    return name


def _create(log: Log, prefix: str, name: str, arguments: argparse.Namespace, out: TextIO) -> int:
    given = {key: getattr(arguments, f"property {key}") for key in KEYS}
    fields = read_assignments([f"{key}={text}" for key, text in given.items() if text is not None])
    properties = replace(DEFAULT, **fields)
    words = [arguments.kind, *(f"{key}={text}" for key, text in given.items() if text is not None)]
    words += [f"on topic {arguments.topic}"] if arguments.topic is not None else []
    with noted(log, prefix, "create", name, " ".join(words), arguments.why):
        node = admin.create_node(log, prefix, name, arguments.kind, SystemClock(), properties, arguments.topic)
    others = differences(node.properties, replace(node.properties, **fields))
    if others:
        raise NodeError(f"node {printable(name)} exists ({'; '.join(others)}): change it by realmgate node set")
    if arguments.topic not in (None, node.topic):
        raise NodeError(f"node {printable(name)} exists on topic {node.topic}: delete it first, or use another name")
    _warn_of_target(log, prefix, node)
    warning = admin.durability_warning(log, node)
    if warning:
        print_error(f"warning: {warning}")
    if arguments.json:
        write_json(_node(node), out)
    else:
        out.write(f"{node.kind} {printable(node.name)} is there: store {node.store}, topic {node.topic}\n")
    return 0


def _set(log: Log, prefix: str, name: str, arguments: argparse.Namespace, out: TextIO) -> int:
    fields = read_assignments(arguments.pairs)
    before = admin.show_node(log, prefix, name)
    if before is None:
        return _unknown(name)
    with noted(log, prefix, "set", name, " ".join(arguments.pairs), arguments.why):
        node = set_properties(log, prefix, name, lambda properties: replace(properties, **fields), SystemClock())
    if node is None:
        return _unknown(name)
    _warn_of_target(log, prefix, node)
    if arguments.json:
        write_json(_node(node), out)
        return 0
    changes = differences(before.node.properties, node.properties)
    out.write(f"{node.kind} {printable(name)}: {'; '.join(changes) or 'nothing changes'}\n")
    return 0


def _named(log: Log, prefix: str, pattern: str) -> list[Node]:
    return [node for node in admin.list_nodes(log, prefix) if not pattern or fnmatch.fnmatchcase(node.name, pattern)]


def _export(log: Log, prefix: str, pattern: str, out: TextIO) -> int:
    realm = () if pattern else realm_metadata(log, prefix).acl
    out.write(exported(_named(log, prefix, pattern), realm))
    return 0


def _list(log: Log, prefix: str, pattern: str, as_json: bool, out: TextIO) -> int:
    nodes = admin.look_at_nodes(log, _named(log, prefix, pattern))
    counted = _numbers(log, prefix, [node for node, broken in nodes if broken is None])
    if as_json:
        write_json(
            [_node(node) | {"messages": stored_in(counted, node)} | problem_of(broken) for node, broken in nodes], out
        )
    else:
        rows = [
            (
                printable(node.name),
                node.kind,
                "-" if broken else shown_number(stored_in(counted, node)),
                str(node.store),
                node.topic,
                f"topic {broken.how}" if broken else "ok",
            )
            for node, broken in nodes
        ]
        write_table(("NAME", "KIND", "MESSAGES", "STORE", "TOPIC", "STATE"), rows, out)
    for node, broken in nodes:
        warn_of_broken(node, broken)
    return 0


def _show(log: Log, prefix: str, name: str, as_json: bool, out: TextIO) -> int:
    stored = admin.show_node(log, prefix, name)
    if stored is None:
        return _unknown(name)
    node = stored.node
    counted = _numbers(log, prefix, [node]) if stored.broken is None else {}
    if as_json:
        whole = {"messages": stored_in(counted, node)}
        write_json({**_node(node), **whole, **_ends(stored, counted), **problem_of(stored.broken)}, out)
        return 0
    warn_of_broken(node, stored.broken)
    adopted = " (adopted)" if node.adopted else ""
    out.write(f"{node.kind} {printable(node.name)}\n  store {node.store}\n  topic {node.topic}{adopted}\n")
    if stored.broken is not None:
        out.write(f"  state {stored.broken.detail}\n")
    else:
        out.write(f"  messages {shown_number(stored_in(counted, node))}\n")
    for part, (first, end) in zip(node.parts, stored.parts, strict=not stored.broken):
        which = f"partition {part.partition} (store {part.store}): " if node.partitions > 1 else ""
        out.write(f"  {which}EIDs {first} to {end}\n")
    for key, value in shown(node.properties).items():
        out.write(f"  {key} {value}\n")
    if node.properties.group_partitions:
        out.write(f"  message groups in partitions 0 to {node.properties.group_partitions - 1}: it has grown\n")
    for line in shown_acl(node.properties):
        out.write(f"  acl {line}\n")
    rows = [
        (
            printable(d.name),
            str(d.partition),
            str(d.start),
            "-" if d.low is None else str(d.low),
            "-" if stored.broken is not None else shown_number(_stored(stored, counted, d)),
            printable(d.group),
        )
        for d in stored.durables
    ]
    if rows:
        out.write("\n")
        write_table(("DURABLE", "PARTITION", "START", "LOW", "MESSAGES", "GROUP"), rows, out)
    return 0


def _numbers(log: Log, prefix: str, nodes: Sequence[Node]) -> Counted:
    return numbers(log, prefix, realm_metadata(log, prefix), nodes) if nodes else {}


def _stored(shown: admin.ShownNode, counted: Counted, durable: admin.ShownDurable) -> int | None:
    counts = counted.get((shown.node.part(durable.partition).store, durable.name))
    return counts.stored if counts is not None else None


def _ends(shown: admin.ShownNode, counted: Counted) -> dict[str, Any]:
    durables = [
        {
            "name": d.name,
            "group": d.group,
            "partition": d.partition,
            "start": d.start,
            "low": d.low,
            "messages": _stored(shown, counted, d),
        }
        for d in shown.durables
    ]
    columns = zip(shown.node.parts, shown.parts, strict=not shown.broken)
    stores = [{"store": part.store, "first": first, "end": end} for part, (first, end) in columns]
    return {"first": shown.first, "end": shown.end, "stores": stores, "durables": durables}


def _delete(log: Log, settings: Settings, name: str, arguments: argparse.Namespace, out: TextIO) -> int:
    shown = admin.show_node(log, settings.realm.prefix, name)
    if shown is None:
        return _unknown(name)
    node = shown.node
    keeps = node.adopted and not arguments.with_topic
    what = f"topic {node.topic} stays" if keeps else f"its events (at most {shown.events})"
    if shown.broken is not None and not keeps:
        what = f"what is left of it ({shown.broken.detail})"
    question = f"Delete {node.kind} {printable(name)}{'; ' if keeps else ' and '}{what}?"
    if not confirmed(question, arguments.yes, out):
        return 1
    reply = _deletion(settings, arguments.why)(node, arguments.with_topic)
    if reply.answer == "not-found":
        return _unknown(name)  # another command was faster
    if reply.answer != "done":
        return print_error(f"{node.kind} {printable(name)}: {reply.answer}: {reply.detail}")
    out.write(f"{node.kind} {printable(name)} is deleted\n")
    return 0


def _deletion(settings: Settings, why: str) -> Delete:
    """By the realm's owner; no other node command needs a realm, which takes its time to load."""

    def delete(node: Node, with_topic: bool = False) -> Reply:
        from gateway.cli.owner_client import delete_node

        return delete_node(settings, node, with_topic, why)

    return delete


def _warn_of_target(log: Log, prefix: str, node: Node) -> None:
    target = node.properties.dead_letter
    if target and admin.show_node(log, prefix, target) is None:
        print_error(f"warning: there is no node {printable(target)} for dead letters yet: create it")


def _unknown(name: str) -> int:
    return print_error(f"there is no node {printable(name)}; realmgate node list shows those there are")


def _node(node: Node) -> dict[str, Any]:
    fields = {"name": node.name, "kind": node.kind, "store": node.store, "topic": node.topic}
    own = {"topic_id": node.topic_id.hex(), "adopted": node.adopted, "partitions": node.partitions}
    return fields | own | {"properties": encode_properties(node.properties)}
