"""`realmgate acl grant | revoke | list | check`: who may do what with a node (`--node NAME`) or the realm (`--realm`).

Beside a serving gateway or without one; a serving gateway sees a change within a second, closes links that may be no
more, and asks the grants anew at every attach. Exit codes: 0 done, 1 it is not so (no such node; `check`: not allowed).
Errors: `LogError`, `PropertyError`, printed by `gateway.cli.main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TextIO

from gateway.cli.answering_log import open_answering
from gateway.cli.audit.noted import noted
from gateway.cli.output import print_error, printable, write_json
from gateway.config.settings import Settings
from native_backend.access.durable_owner import ANY_DURABLE
from native_backend.clock import SystemClock
from native_backend.log.port import Log
from native_backend.nodes.grants import ANONYMOUS, Subject, deciding_grant
from native_backend.nodes.metadata_writer import realm_metadata, set_properties, set_realm_acl
from native_backend.nodes.node import NodeError
from native_backend.nodes.properties import OPERATIONS, Grant, encode_acl

SAID: dict[str, str] = {"push": "publish", "pop": "subscribe", "named": "durable"}
"""UM's other words for the operations."""
Acl = tuple[Grant, ...]


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """Carry out one parsed acl command."""
    prefix, name = settings.realm.prefix, None if arguments.realm else arguments.node
    with closing(open_answering(settings, arguments.timeout)) as log:
        if arguments.action in ("grant", "revoke"):
            operations = read_operations(arguments.operations or "full")
            if name is not None and name not in realm_metadata(log, prefix).nodes:
                return _unknown(name)
            change = f"{arguments.who} {','.join(sorted(operations))}"
            with noted(log, prefix, arguments.action, name or "", change, arguments.why):
                if arguments.action == "grant":
                    return _change(log, prefix, name, lambda acl: granted(acl, arguments.who, operations), out)
                return _change(log, prefix, name, lambda acl: _revoked(acl, arguments, operations), out)
        grants = _grants(log, prefix, name)
        if grants is None:
            return _unknown(name)
        if arguments.action == "list":
            return _list(grants, arguments.json, out)
        return _check(grants, name, _subject(settings, arguments.who), read_operations(arguments.operations), out)


def read_operations(text: str) -> frozenset[str]:
    """`publish,subscribe`; UM's words, and `full` for all. Raises `NodeError`."""
    words = [SAID.get(word, word) for word in text.split(",")]
    unknown = [word for word in words if word not in (*OPERATIONS, "full")]
    if unknown:
        raise NodeError(f"there is no operation {unknown[0]!r}: write {', '.join(OPERATIONS)} or full")
    return frozenset(OPERATIONS) if "full" in words else frozenset(words)


def granted(acl: Acl, who: str, operations: frozenset[str]) -> Acl:
    """The list with these operations, too."""
    if not any(grant.who == who for grant in acl):
        return (*acl, Grant(who, operations))
    return tuple(Grant(g.who, g.operations | operations) if g.who == who else g for g in acl)


def revoked(acl: Acl, who: str, operations: frozenset[str]) -> Acl:
    """The list without them; who is left with none is not on it."""
    left = (Grant(g.who, g.operations - operations) if g.who == who else g for g in acl)
    return tuple(grant for grant in left if grant.operations)


def _revoked(acl: Acl, arguments: argparse.Namespace, operations: frozenset[str]) -> Acl:
    left = revoked(acl, arguments.who, operations)
    if acl and not left and not arguments.open:
        what = "the realm" if arguments.realm else f"node {arguments.node!r}"
        raise NodeError(f"the last grant: {what} without grants is open to all users: grant first, or use --open")
    return left


def _change(log: Log, prefix: str, name: str | None, change: Callable[[Acl], Acl], out: TextIO) -> int:
    if name is None:
        acl = change(realm_metadata(log, prefix).acl)
        set_realm_acl(log, prefix, acl)
    else:
        node = set_properties(log, prefix, name, lambda p: replace(p, acl=change(p.acl)), SystemClock())
        if node is None:
            return _unknown(name)
        acl = node.properties.acl
    _write(acl, out)
    return 0


def _grants(log: Log, prefix: str, name: str | None) -> tuple[Acl, Acl] | None:
    """The node's and the realm's; None when there is no such node."""
    metadata = realm_metadata(log, prefix)
    if name is None:
        return (), metadata.acl
    node = metadata.nodes.get(name)
    return (node.properties.acl, metadata.acl) if node is not None else None


def _list(grants: tuple[Acl, Acl], as_json: bool, out: TextIO) -> int:
    node, realm = grants
    if as_json:
        write_json({"node": encode_acl(node), "realm": encode_acl(realm)}, out)
        return 0
    _write(node, out)
    if realm:
        out.write("from the realm:\n")
        _write(realm, out)
    elif not node:
        out.write("no grants: every user may do everything\n")
    return 0


def _check(grants: tuple[Acl, Acl], name: str | None, subject: Subject, operations: frozenset[str], out: TextIO) -> int:
    node, realm = grants
    allowed = True
    for operation in sorted(operations):
        grant = deciding_grant(node, subject, operation) or deciding_grant(realm, subject, operation)
        is_open = not node + realm and operation != ANY_DURABLE
        allowed = allowed and (grant is not None or is_open)
        if is_open:
            reply = "yes, there are no grants"
        elif grant is None:
            reply = "no"
        else:
            reply = f"yes, by {grant.who} on {'the realm' if grant not in node else f'node {name!a}'}"
        out.write(f"{operation}: {reply}\n")
    return 0 if allowed else 1


def _subject(settings: Settings, name: str) -> Subject:
    users = settings.security.users
    if name == ANONYMOUS.user:
        return ANONYMOUS
    if name not in users:
        raise NodeError(f"there is no user {name!a} in the users file")
    return users.subject(name)


def _write(acl: Acl, out: TextIO) -> None:
    for grant in acl:
        out.write(f"{printable(grant.who)}  {','.join(sorted(grant.operations))}\n")


def _unknown(name: str | None) -> int:
    return print_error(f"there is no node {printable(name or '')}; realmgate node list shows those there are")
