"""Realm metadata: the compacted topic `<prefix>.realm`, folded into nodes, durables and the realm's own grants.

Of two creators of one node the first record wins, until a tombstone; a later record of the same store changes the
node's properties. Compaction may have taken the tombstone of a node that was made anew: then the new one says that its
writer looked further than where the old one stands. A durable's record counts while its store is the node's. The fold
belongs to one thread; `read_tail` may run on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from native_backend.log.port import FORMAT, Failure, Log, LogError, Records
from native_backend.nodes.durable import Durable, decode_durable
from native_backend.nodes.node import Node, decode_node
from native_backend.nodes.properties import Grant, decode_acl, encode_acl
from native_backend.nodes.words import HISTORY

_BATCH = 1000
VERSIONS = (1, 2, 3)
REALM_KEY = orjson.dumps(["realm"])
OWN_TOPICS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("realm", "state", "tables"), True),
    **dict.fromkeys(("journal", "outcomes", "commands", "answers", "lease", HISTORY), False),
}
"""Of every realm, each without its prefix; True: compacted. A start makes those that are not there."""


def realm_topic(prefix: str) -> str:
    return f"{prefix}.realm"


def realm_topics(prefix: str) -> dict[str, bool]:
    """The realm's own topics; True: compacted."""
    return {f"{prefix}.{name}": is_compacted for name, is_compacted in OWN_TOPICS.items()}


def read_tail(log: Log, topic: str, start: int) -> list[Records]:
    """Everything from `start` to the end as known when this is called. Blocks; raises LogError."""
    parts = []
    first, end = log.control.bounds(topic, 0)
    start = max(start, first)  # below it compaction or a trim has been: the newest of every key lies above
    while start < end:
        records = log.control.read_range(topic, 0, start, _BATCH)
        parts.append(records)
        if records.next <= start:
            break
        start = records.next
    return parts


@dataclass(slots=True)
class Metadata:
    """What the records up to `position` say."""

    position: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    durables: dict[tuple[str, str], Durable] = field(default_factory=dict)
    stores: dict[int, Node] = field(default_factory=dict)
    """By store, the part of a node that it is."""
    acl: tuple[Grant, ...] = ()
    """The realm's own grants."""
    _seen: dict[str, int] = field(default_factory=dict)
    """Where a living node was first read."""
    on_changed: list[Callable[[Node | None], None]] = field(default_factory=list)
    """Told, by the thread that folds, of a node whose properties changed; None: the realm's grants did."""
    on_made: list[Callable[[], None]] = field(default_factory=list)
    """Called, by the thread that folds, when there are new stores."""

    def fold(self, parts: list[Records]) -> list[Node]:
        """Take records in; those below `position` are known already. Returns the nodes that were deleted."""
        gone: list[Node] = []
        for records in parts:
            for offset, key, value in zip(records.offsets, records.keys, records.values, strict=True):
                if offset >= self.position and key is not None:
                    gone += self._record(offset, key, value)
            self.position = max(self.position, records.next)
        return gone

    def durable(self, node: Node, name: str) -> Durable | None:
        """The durable of that name, unless it belonged to an earlier node of the same name."""
        durable = self.durables.get((node.name, name))
        return durable.of(node) if durable is not None and durable.store == node.part(0).store else None

    def each_durable(self) -> Iterator[tuple[Node, Durable]]:
        """Every durable of every store whose node lives, and the part of the node that the store is."""
        for durable in self.durables.values():
            node = self.stores.get(durable.store)
            for part in node.parts if node is not None else ():
                yield part, durable.of(part)

    def remember(self, durable: Durable) -> None:
        """A durable's record. Of what an earlier one of the same store has said only the terms and the owner change;
        and where the journal lost its end, where that begins to speak of it."""
        known = self.durables.get((durable.node, durable.name))
        if known is not None and known.store == durable.store:
            journal = min(known.journal, durable.journal)
            durable = replace(known, terms=durable.terms, owner=durable.owner, journal=journal)
        self.durables[durable.node, durable.name] = durable

    def forget(self, node: Node) -> None:
        """Its topic is another's: no use is made of it until it is deleted."""
        for part in node.parts:
            self.stores.pop(part.store, None)

    def alive(self, node: Node) -> bool:
        return node.store in self.stores

    def _record(self, offset: int, key: bytes, value: bytes | None) -> list[Node]:
        what, *names = orjson.loads(key)
        if value is None:
            return self._tombstone(what, names)
        record = orjson.loads(value)
        if record["v"] not in VERSIONS:
            known_ones = ", ".join(map(str, VERSIONS))
            detail = f"realm metadata {names} has version {record['v']}; this release knows {known_ones}"
            raise LogError(Failure("unexpected", detail, FORMAT))
        if what == "node":
            return self._node(decode_node(record), offset, record.get("after", 0))
        elif what == "realm":
            self._realm(record)
        elif what == "durable":
            self.remember(decode_durable(record))
        return []

    def _node(self, node: Node, offset: int, after: int) -> list[Node]:
        """A node begins, or has other properties. Another store of a name that is taken: the first creator has won,
        unless the second one could see that there was no such node any more."""
        known = self.nodes.get(node.name)
        gone = []
        if known is not None and known.store != node.store and after > self._seen[node.name]:
            gone = self._tombstone("node", [node.name])
            known = None
        if known is None:
            self._seen[node.name] = offset
            self._keep(node)
        elif known.store == node.store and self.alive(node) and known.properties != node.properties:
            changed = replace(known, properties=node.properties)
            self._keep(changed)
            for part in changed.parts:
                self._tell(part)
        return gone

    def _keep(self, node: Node) -> None:
        self.nodes[node.name] = node
        count = len(self.stores)
        self.stores.update((part.store, part) for part in node.parts)
        if len(self.stores) > count:
            for listener in self.on_made:
                listener()

    def _realm(self, record: dict[str, Any]) -> None:
        acl = decode_acl(record["acl"])
        if acl != self.acl:
            self.acl = acl
            self._tell(None)

    def _tell(self, changed: Node | None) -> None:
        for listener in self.on_changed:
            listener(changed)

    def _tombstone(self, what: str, names: list[str]) -> list[Node]:
        if what == "durable":
            self.durables.pop((names[0], names[1]), None)
            return []
        if what == "realm":
            self._realm({"acl": []})
            return []
        node = self.nodes.pop(names[0], None) if what == "node" else None
        if node is None:
            return []
        del self._seen[node.name]
        self.forget(node)
        return [node]


def encode_realm(acl: tuple[Grant, ...]) -> bytes:
    """The realm's own record, under `REALM_KEY`."""
    return orjson.dumps({"v": 2, "acl": encode_acl(acl)})
