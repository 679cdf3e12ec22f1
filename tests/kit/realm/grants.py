"""Grants that a realm under test knows of."""

from __future__ import annotations

from dataclasses import replace

from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Grant
from tests.kit.realm.realm_process import RealmProcess


def on_node(realm: RealmProcess, name: str, *grants: Grant) -> Node:
    """The node has these grants, and the gateway knows."""
    changed = set_properties(realm.log, realm.prefix, name, lambda p: replace(p, acl=grants), realm.clock)
    assert changed is not None
    realm.until(lambda: realm.realm.node(name) == changed, "the node's grants")
    return changed
