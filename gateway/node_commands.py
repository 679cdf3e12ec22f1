"""`realmgate node create | list | show | delete`: a realm's nodes, beside a gateway that serves it or without one.

What a command did is in force when it returns. Text for people, `--json` for programs. Exit codes: 0 done, 1 there is
no such node (or the answer was no). Errors: `LogError`, `NodeError`, told by `gateway.cli`.
May import: `gateway.settings`, `gateway.open_log`, `native_backend`, the standard library.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Any, TextIO

from gateway.open_log import open_log
from gateway.settings import Settings
from native_backend import admin
from native_backend.clock import SystemClock
from native_backend.log import Log
from native_backend.nodes import Node, NodeError


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """Carry out one parsed node command."""
    name = _checked(arguments.name, settings.limits.node_name_bytes)
    prefix = settings.realm.prefix
    with closing(open_log(settings)) as log:
        if arguments.action == "create":
            return _create(log, prefix, name, arguments, out)
        if arguments.action == "list":
            return _list(log, prefix, name, arguments.json, out)
        if arguments.action == "show":
            return _show(log, prefix, name, arguments.json, out)
        return _delete(log, prefix, name, arguments.yes, out)


def _checked(name: str | None, size_max: int) -> str:
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
    node = admin.create_node(log, prefix, name, arguments.kind, SystemClock())
    if arguments.json:
        _write_json(_node(node), out)
    else:
        out.write(f"{node.kind} {_printable(node.name)} is there: store {node.store}, topic {node.topic}\n")
    return 0


def _list(log: Log, prefix: str, pattern: str, as_json: bool, out: TextIO) -> int:
    nodes = [node for node in admin.list_nodes(log, prefix) if not pattern or fnmatch.fnmatchcase(node.name, pattern)]
    if as_json:
        _write_json([_node(node) for node in nodes], out)
    else:
        rows = [(_printable(node.name), node.kind, str(node.store), node.topic) for node in nodes]
        _write_table(("NAME", "KIND", "STORE", "TOPIC"), rows, out)
    return 0


def _show(log: Log, prefix: str, name: str, as_json: bool, out: TextIO) -> int:
    shown = admin.show_node(log, prefix, name)
    if shown is None:
        return _unknown(name)
    durables = [{"name": d.name, "group": d.group, "start": d.start, "low": d.low} for d in shown.durables]
    if as_json:
        _write_json({**_node(shown.node), "first": shown.first, "end": shown.end, "durables": durables}, out)
        return 0
    node = shown.node
    out.write(f"{node.kind} {_printable(node.name)}\n  store {node.store}\n  topic {node.topic}\n")
    out.write(f"  events {shown.first} to {shown.end} (EIDs; at most {shown.events} events)\n")
    rows = [
        (_printable(d.name), str(d.start), "-" if d.low is None else str(d.low), _printable(d.group))
        for d in shown.durables
    ]
    if rows:
        out.write("\n")
        _write_table(("DURABLE", "START", "LOW", "GROUP"), rows, out)
    return 0


def _delete(log: Log, prefix: str, name: str, yes: bool, out: TextIO) -> int:
    shown = admin.show_node(log, prefix, name)
    if shown is None:
        return _unknown(name)
    if sys.stdin.isatty() and not yes:  # a script has decided already
        out.write(f"Delete {shown.node.kind} {_printable(name)} and its events (at most {shown.events})? [y/N] ")
        out.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return 1
    if not admin.delete_node(log, prefix, name):
        return _unknown(name)  # somebody else was faster
    out.write(f"{shown.node.kind} {_printable(name)} is deleted\n")
    return 0


def _unknown(name: str) -> int:
    sys.stderr.write(f"realmgate: there is no node {_printable(name)}; realmgate node list shows those there are\n")
    return 1


def _node(node: Node) -> dict[str, Any]:
    fields = {"name": node.name, "kind": node.kind, "store": node.store, "topic": node.topic}
    return fields | {"topic_id": node.topic_id.hex()}


def _printable(name: str) -> str:
    """A name may hold anything: what would break a line or a terminal is escaped."""
    return name if name.isprintable() else json.dumps(name)


def _write_json(document: Any, out: TextIO) -> None:
    json.dump(document, out, indent=2)
    out.write("\n")


def _write_table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]], out: TextIO) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        out.write("  ".join(cells).rstrip() + "\n")
