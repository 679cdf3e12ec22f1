"""`realmgate node export`: the nodes of a realm as the YAML that `node apply` takes.

The same nodes give the same text: sorted by name, properties in the order of `node set`, without those that have their
default. Temporary nodes are left out: they end with their peer. How far a node has grown (`group_partitions`) is a fact
of its events, and not in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import yaml

from gateway.cli.node_properties import shown
from mappings.language.yaml_lines import parse_document
from native_backend.nodes.node import Node
from native_backend.nodes.properties import DEFAULT, Grant

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")


def exported(nodes: Iterable[Node], realm: Sequence[Grant] = ()) -> str:
    """A YAML list; `[]` without nodes and grants of the `realm`."""
    kept = sorted((node for node in nodes if not node.temporary), key=lambda node: node.name)
    grants = ["- realm:", "    acl:", *(f"      - {_grant(grant)}" for grant in realm)] if realm else []
    return "".join(f"{line}\n" for line in (*grants, *(line for node in kept for line in _node(node)))) or "[]\n"


def _grant(grant: Grant) -> str:
    return f"{{who: {yaml_text(grant.who)}, allow: [{', '.join(sorted(grant.operations))}]}}"


def _node(node: Node) -> Iterator[str]:
    yield f"- name: {yaml_text(node.name)}"
    yield f"  kind: {node.kind}"
    if node.adopted:
        yield f"  topic: {yaml_text(node.topic)}"
    default = shown(DEFAULT)
    for key, value in shown(node.properties).items():
        if value != default[key]:
            yield f"  {key}: {yaml_text(node.properties.dead_letter) if key == 'dead-letter' else value}"
    if node.properties.acl:
        yield "  acl:"
    for grant in node.properties.acl:
        yield f"    - {_grant(grant)}"


def yaml_text(value: str) -> str:
    """In quotes, unless it reads as the same text without."""
    if _PLAIN.fullmatch(value):
        document, problems = parse_document(f"[{value}]", "")
        if not problems and document.root.value == [value]:
            return value
    written: str = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf"))
    return written.removesuffix("\n")
