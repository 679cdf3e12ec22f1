"""`realmgate node apply FILE`: the nodes of a realm as a YAML list says, after the difference was shown in words.

    - name: orders
      kind: queue            # default
      ttl: 1h                # properties as `realmgate node set` takes them; what is not named has its default
      dead-letter: dead
      topic: shop.orders     # adopt this topic
      acl:
        - {who: "user:ann", allow: [publish]}

    - realm:                 # the realm's own grants, which hold for every node
        acl:
          - {who: "group:operators", allow: [full]}

Realm-wide grants stay as they are where the file has no `realm`. Nodes that the file does not name stay, unless
`--prune`. Errors: all problems at once, each FILE:LINE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, get_args

from gateway.cli.audit.noted import noted
from gateway.cli.node_properties import KEYS, departures, differences, read_word
from gateway.cli.output import confirmed, print_error, printable
from gateway.config.settings import Settings
from mappings.language.yaml_lines import Node as Value
from mappings.language.yaml_lines import Problem, load_document, refuse_unknown_keys
from native_backend.clock import SystemClock
from native_backend.log.port import Log
from native_backend.nodes import admin
from native_backend.nodes.commands import Reply
from native_backend.nodes.metadata_writer import realm_metadata, set_properties, set_realm_acl
from native_backend.nodes.node import Node
from native_backend.nodes.properties import (
    DEFAULT,
    OPERATIONS,
    PARTITIONING,
    Grant,
    Properties,
    PropertyError,
    check_acl,
    check_change,
    check_properties,
)
from native_backend.nodes.words import NodeKind

_KINDS: dict[str, NodeKind] = {kind: kind for kind in get_args(NodeKind)}
_SPREADING = ("partitions", "priority-levels")
Delete = Callable[..., Reply]
"""Delete a node, and True: also a topic that it had adopted."""
_OWN_KEYS = ("name", "kind", "topic", "acl")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One node of a file."""

    name: str
    kind: NodeKind
    topic: str | None
    properties: Properties
    value: Value
    changes: str = ""
    """In words, of a node that is there."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What makes the realm as the file says."""

    create: list[Wanted]
    change: list[Wanted]
    delete: list[Node]
    words: list[str]
    kept: list[str]
    """Nodes that the file does not name, and that stay."""


def apply_file(log: Log, settings: Settings, arguments: argparse.Namespace, delete: Delete, out: TextIO) -> int:
    prefix = settings.realm.prefix
    wanted, problems = read_file(arguments.file, settings.limits.node_name_bytes)
    grants, wrong = read_realm_grants(arguments.file)
    problems += wrong
    metadata = realm_metadata(log, prefix)
    nodes, grants = metadata.nodes, grants if grants != metadata.acl else None
    wanted = [_as_spread(spec, nodes.get(spec.name)) for spec in wanted]
    problems += _impossible(wanted, nodes) + _without_target(wanted, nodes)
    if problems:
        sys.stderr.write("".join(f"{problem}\n" for problem in sorted(problems, key=lambda mistake: mistake.line)))
        return 2
    plan = plan_of(wanted, nodes, arguments.prune)
    if grants is not None:
        plan.words.insert(0, _granting(grants))
    _tell(plan, len(wanted), out)
    if not plan.words or arguments.dry_run:
        return 0
    if not confirmed(f"Make {len(plan.words)} changes?", arguments.yes, out):
        return 1
    if grants is not None:
        with noted(log, prefix, "set", "", _granting(grants), arguments.why):
            set_realm_acl(log, prefix, grants)
    _carry_out(log, prefix, plan, arguments.why)
    for node in plan.delete:
        reply = delete(node)
        if reply.answer not in ("done", "not-found"):
            return print_error(f"{node.kind} {printable(node.name)} is not deleted: {reply.answer}: {reply.detail}")
    out.write(f"{_changes(len(plan.words))} made\n")
    return 0


def read_file(path: Path, size_max: int) -> tuple[list[Wanted], list[Problem]]:
    """The nodes that a file wants, and everything that is wrong with it."""
    document, problems = load_document(path)
    root = document.root
    if not root.is_sequence:
        if not problems:
            problems.append(root.problem(f"the file is a {root.kind}", "write a list: - name: orders"))
        return [], problems
    of_nodes = [value for value in root.sequence() if not _is_realm(value)]
    wanted = [spec for value in of_nodes if (spec := _wanted(value, size_max, problems)) is not None]
    seen: dict[str, int] = {}
    for spec in wanted:
        first = seen.setdefault(spec.name, spec.value.line)
        if first != spec.value.line:
            problems.append(spec.value.problem(f"{spec.name!r} is in line {first}, too", "name every node once"))
    return wanted, problems


def read_realm_grants(path: Path) -> tuple[tuple[Grant, ...] | None, list[Problem]]:
    """The realm's own grants that a file wants, None where it says nothing of them, and what is wrong with them. What
    is wrong with the rest of the file, `read_file` says."""
    problems: list[Problem] = []
    root = load_document(path)[0].root
    of_realm = [value for value in root.sequence() if _is_realm(value)] if root.is_sequence else []
    problems += [value.problem("the realm is in the file already", "write - realm: once") for value in of_realm[1:]]
    for value in of_realm[:1]:
        refuse_unknown_keys(value, ["realm"], problems)
        acl = value["realm"].get("acl") if value["realm"].is_mapping else None
        if acl is None or not acl.is_sequence:
            problems.append(value.problem("the realm has grants only", 'write acl: [{who: "user:ann", allow: [full]}]'))
            continue
        refuse_unknown_keys(value["realm"], ["acl"], problems)
        grants = _acl(acl, problems)
        problems.extend(acl.problem(text) for text in check_acl(grants))
        return grants, problems
    return None, problems


def _is_realm(value: Value) -> bool:
    return value.is_mapping and value.get("realm") is not None


def _granting(grants: tuple[Grant, ...]) -> str:
    words = [f"{grant.who}: {', '.join(sorted(grant.operations))}" for grant in grants]
    return f"grants of the realm: {'; '.join(words) or 'none, so nodes without grants are open to every user'}"


def _wanted(value: Value, size_max: int, problems: list[Problem]) -> Wanted | None:
    if not value.is_mapping:
        problems.append(value.problem(f"a node is a mapping, not {value.kind}", "write - name: orders"))
        return None
    before = len(problems)
    refuse_unknown_keys(value, [*_OWN_KEYS, *KEYS], problems)
    name, kind = _text(value, "name", None, problems), _text(value, "kind", "queue", problems)
    if name is not None and not 0 < len(name.encode()) <= size_max:
        problems.append(value["name"].problem(f"a name has 1 to {size_max} octets", "write another one"))
    if kind is not None and kind not in _KINDS:
        problems.append(value["kind"].problem(f"there is no kind {kind}", f"write {' or '.join(_KINDS)}"))
    topic = _text(value, "topic", "", problems)
    properties = _properties(value, name or "", problems)
    if len(problems) > before or name is None or kind is None:
        return None
    return Wanted(name, _KINDS[kind], topic or None, properties, value)


def _text(value: Value, key: str, default: str | None, problems: list[Problem]) -> str | None:
    given = value.get(key)
    if given is None:
        if default is None:
            problems.append(value.problem(f"{key} is missing", f"write {key}: orders"))
        return default
    if given.kind != "text":
        problems.append(given.problem(f"{key} is {given.kind}, not text", "write it in quotes"))
        return None
    return str(given.value)


def _properties(value: Value, name: str, problems: list[Problem]) -> Properties:
    fields: dict[str, Any] = {}
    wrong = len(problems)
    for key in KEYS:
        given = value.get(key)
        if given is None:
            continue
        if given.kind not in ("text", "integer", "boolean"):
            problems.append(given.problem(f"{key} is a {given.kind}", f"write {key}: {KEYS[key].example}"))
            continue
        text = str(given.value).lower() if given.kind == "boolean" else str(given.value)
        texts: list[str] = []
        read_word(key, text, fields, texts)
        problems.extend(given.problem(text) for text in texts)
    acl = value.get("acl")
    if acl is not None:
        fields["acl"] = _acl(acl, problems)
    properties = replace(DEFAULT, **fields)
    if len(problems) == wrong:
        try:
            check_properties(properties, name)
        except PropertyError as error:
            problems.extend(value.problem(text) for text in error.problems)
    return properties


def _acl(value: Value, problems: list[Problem]) -> tuple[Grant, ...]:
    grants = []
    for grant in value.sequence() if value.is_sequence else [value]:
        who, allow = grant.get("who"), grant.get("allow")
        allowed = allow.value if allow is not None and allow.is_sequence else None
        if who is None or who.kind != "text" or allowed is None or not all(isinstance(word, str) for word in allowed):
            problems.append(grant.problem("a grant names who and what", 'write {who: "user:ann", allow: [publish]}'))
        else:
            refuse_unknown_keys(grant, ["who", "allow"], problems)
            grants.append(Grant(str(who.value), frozenset(OPERATIONS if "full" in allowed else allowed)))
    return tuple(grants)


def _as_spread(wanted: Wanted, node: Node | None) -> Wanted:
    """A file that does not say how many partitions a node has leaves it those it has."""
    if node is None or any(wanted.value.get(key) for key in _SPREADING):
        return wanted
    now = {name: getattr(node.properties, name) for name in PARTITIONING}
    return replace(wanted, properties=replace(wanted.properties, **now))


def _impossible(wanted: list[Wanted], nodes: dict[str, Node]) -> list[Problem]:
    """What no change of a node can bring about."""
    problems = []
    for spec in wanted:
        node = nodes.get(spec.name)
        if node is not None and node.kind != spec.kind:
            message = f"node {spec.name!r} is a {node.kind}, and stays one"
            problems.append(spec.value.problem(message, "delete it first, or use another name"))
        if node is not None and spec.topic not in (None, node.topic):
            message = f"node {spec.name!r} is on topic {node.topic}, and stays there"
            problems.append(spec.value.problem(message, "delete it first, or use another name"))
        try:
            check_change(node.properties if node is not None else spec.properties, spec.properties)
        except PropertyError as error:
            problems.extend(spec.value.problem(text) for text in error.problems)
    return problems


def _without_target(wanted: list[Wanted], nodes: dict[str, Node]) -> list[Problem]:
    known = {spec.name for spec in wanted} | nodes.keys()
    return [
        spec.value.problem(f"there is no node {spec.properties.dead_letter!r} for dead letters", "name one that is")
        for spec in wanted
        if spec.properties.dead_letter and spec.properties.dead_letter not in known
    ]


def plan_of(wanted: list[Wanted], nodes: dict[str, Node], prune: bool) -> Plan:
    create = [spec for spec in wanted if spec.name not in nodes]
    words = [_creation(spec) for spec in create]
    change = []
    for spec in wanted:
        changes = differences(nodes[spec.name].properties, spec.properties) if spec.name in nodes else []
        if changes:
            change.append(replace(spec, changes="; ".join(changes)))
            words.append(f"change {spec.kind} {printable(spec.name)}: {'; '.join(changes)}")
    named = {spec.name for spec in wanted}
    others = [node for name, node in sorted(nodes.items()) if name not in named and not node.temporary]
    if not prune:
        return Plan(create, change, [], words, [node.name for node in others])
    for node in others:
        events = "its topic stays" if node.adopted else "with its events"
        words.append(f"delete {node.kind} {printable(node.name)}, {events}")
    return Plan(create, change, others, words, [])


def _creation(wanted: Wanted) -> str:
    words = departures(wanted.properties)
    words += [f"adopts topic {wanted.topic}"] if wanted.topic else []
    return f"create {wanted.kind} {printable(wanted.name)}{': ' if words else ''}{'; '.join(words)}"


def _tell(plan: Plan, count: int, out: TextIO) -> None:
    for line in plan.words:
        out.write(f"{line}\n")
    same = count - len(plan.create) - len(plan.change)
    if same:
        out.write(f"{same} {'node is' if same == 1 else 'nodes are'} as the file says\n")
    if plan.kept:
        out.write(f"not in the file, and left alone: {', '.join(map(printable, plan.kept))}\n")


def _changes(count: int) -> str:
    return "1 change is" if count == 1 else f"{count} changes are"


def _carry_out(log: Log, prefix: str, plan: Plan, why: str) -> None:
    """A node may name a dead-letter node that does not exist yet: an event needs it first."""
    clock = SystemClock()
    for spec in plan.create:
        with noted(log, prefix, "create", spec.name, _creation(spec), why):
            node = admin.create_node(log, prefix, spec.name, spec.kind, clock, spec.properties, spec.topic)
        warning = admin.durability_warning(log, node)
        if warning:
            print_error(f"warning: {warning}")
    for spec in plan.change:
        with noted(log, prefix, "set", spec.name, spec.changes, why):
            set_properties(log, prefix, spec.name, lambda _, properties=spec.properties: properties, clock)  # type: ignore[misc]
