"""Creating, listing, showing and deleting nodes: by the command line beside a serving gateway, and by the realm itself.

Everything blocks and raises `LogError`, or `NodeError` where what is asked contradicts what exists. Idempotent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from native_backend.clock import Clock
from native_backend.log.port import Log, LogError, TopicSpec, if_there
from native_backend.nodes import broken_nodes
from native_backend.nodes.broken_nodes import Broken
from native_backend.nodes.durable import Durable, durable_key, encode_durable, queue_durable
from native_backend.nodes.group_offset import low_of
from native_backend.nodes.metadata import Metadata, read_tail, realm_topic, realm_topics
from native_backend.nodes.metadata_writer import read_through, realm_metadata
from native_backend.nodes.node import (
    KINDS,
    Node,
    NodeError,
    encode_node,
    named_topic,
    node_key,
    plain_topic,
    store_id,
)
from native_backend.nodes.properties import DEFAULT, Properties, check_properties
from native_backend.nodes.words import NodeKind

_LOG = logging.getLogger(__name__)
CONTROL_S = 10.0  # for one question to the log
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class ShownDurable:
    """`low` as last projected (up to a second old); None before the first projection."""

    name: str
    group: str
    start: int
    low: int | None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class ShownNode:
    """`events` is an upper bound: EIDs are not dense. `parts`: where each of its stores begins and ends; of a node that
    is `broken`, nothing."""

    node: Node
    parts: tuple[tuple[int, int], ...]
    durables: tuple[ShownDurable, ...]
    broken: Broken | None = None

    @property
    def first(self) -> int:
        return self.parts[0][0] if self.parts else 0

    @property
    def end(self) -> int:
        return self.parts[0][1] if self.parts else 0

    @property
    def events(self) -> int:
        return sum(end - first for first, end in self.parts)


def create_node(
    log: Log,
    prefix: str,
    name: str,
    kind: NodeKind,
    clock: Clock,
    properties: Properties = DEFAULT,
    topic: str | None = None,
    known: Metadata | None = None,
) -> Node:
    """The node of that name; created if there is none, with these properties, on a topic of its own or on `topic`,
    which it adopts. Of two creators the first record wins for both. A node that exists keeps its properties:
    `set_properties` changes them. `known`: what the caller has read of the realm's metadata, for itself alone; it is
    read on."""
    if not name or kind not in KINDS:
        raise NodeError(f"a node needs a name and a kind ({' or '.join(KINDS)}): {name!r}, {kind!r}")
    check_properties(properties, name)
    log.control.create_topics([TopicSpec(realm_topic(prefix), compacted=True)])
    metadata = Metadata() if known is None else known
    metadata.fold(read_tail(log, realm_topic(prefix), metadata.position))
    existing = metadata.nodes.get(name)
    if existing is not None:
        return _of_kind(existing, kind)
    now_us = clock.epoch_us()
    bare = Node(name, kind, "", b"", 0, properties, created_us=now_us)
    node = _new_node(log, prefix, bare, metadata) if topic is None else _adopt(log, prefix, bare, topic)
    metadata.fold(read_tail(log, realm_topic(prefix), metadata.position))
    if name in metadata.nodes:  # while the topic was made
        return _of_kind(metadata.nodes[name], kind)
    _refuse_clash(log, node, metadata)
    if kind == "queue":  # before the node's own record: who sees the node sees its durable
        earlier = _journal_end(log, prefix) if node.adopted else 0  # the topic may have been adopted before
        starts = _first_eids(log, node, clock)
        durable = queue_durable(prefix, node, starts, earlier)
        log.control.put(realm_topic(prefix), durable_key(name, durable.name), encode_durable(durable, now_us))
    written = log.control.put(realm_topic(prefix), node_key(name), encode_node(node, now_us, metadata.position))
    read_through(log, prefix, metadata, written)
    winner = metadata.nodes.get(name)
    if winner is None:
        raise NodeError(f"node {name!r} was deleted by another process while it was created")
    if winner.store != node.store:  # compaction keeps the last record of a key: make that the winner's, too
        log.control.put(realm_topic(prefix), node_key(name), encode_node(winner, now_us, metadata.position))
    return _of_kind(winner, kind)


def durability_warning(log: Log, node: Node) -> str | None:
    """Why what a node keeps may be lost with one broker; None when it may not, or keeps nothing for long."""
    if node.properties.type == "reliable":
        return None
    try:
        copies = log.control.certain_copies(node.topic)
    except LogError as error:
        if error.failure.cause != "refused":  # the right to read a topic's settings is not needed otherwise
            raise
        return None
    if copies is None or copies >= 2:
        return None
    return (
        f"an event of node {node.name!r} is certain to be on {copies} broker only when it is answered as stored: "
        f"raise min.insync.replicas (and the replicas) of topic {node.topic} to 2 or more"
    )


def warned(log: Log, node: Node) -> Node:
    """The node, after a warning in the operator's log if it is fragile."""
    warning = durability_warning(log, node)
    if warning:
        _LOG.warning("%s", warning)
    return node


def list_nodes(log: Log, prefix: str) -> list[Node]:
    return sorted(realm_metadata(log, prefix).nodes.values(), key=lambda node: node.name)


def look_at_nodes(log: Log, nodes: Sequence[Node]) -> list[tuple[Node, Broken | None]]:
    """Each, and what is wrong with it."""
    broken = broken_nodes.find(log, nodes, CONTROL_S)[1]
    return [(node, broken.get(node.name)) for node in nodes]


def show_node(log: Log, prefix: str, name: str) -> ShownNode | None:
    metadata = realm_metadata(log, prefix)
    node = metadata.nodes.get(name)
    if node is None:
        return None
    broken = broken_nodes.find(log, [node], CONTROL_S)[1].get(name)
    parts = () if broken is not None else tuple(log.control.bounds(node.topic, part.partition) for part in node.parts)
    durables = [(part, durable) for part, durable in metadata.each_durable() if part.name == name]
    durables.sort(key=lambda pair: (pair[1].name, pair[0].partition))
    return ShownNode(node, parts, tuple(_show_durable(log, part, durable) for part, durable in durables), broken)


def delete_node(log: Log, prefix: str, name: str, with_topic: bool = False) -> bool:
    """False when there was none. The node disappears first, so that no process uses a topic that is about to go. A
    topic that was adopted stays, unless `with_topic`."""
    metadata = realm_metadata(log, prefix)
    node = metadata.nodes.get(name)
    if node is None:
        return False
    log.control.put(realm_topic(prefix), node_key(name), None)
    for durable in [durable for durable in metadata.durables.values() if durable.node == name]:
        log.control.put(realm_topic(prefix), durable_key(name, durable.name), None)
        log.control.forget(durable.group)
    if with_topic or not node.adopted:
        log.control.delete_topics([node.topic])
    left = realm_metadata(log, prefix).nodes.get(name)
    if left is not None and left.store == node.store:  # its properties were changed meanwhile: `set_properties`
        log.control.put(realm_topic(prefix), node_key(name), None)
    return True


def _of_kind(node: Node, kind: NodeKind) -> Node:
    if node.kind != kind:
        raise NodeError(
            f"node {node.name!r} exists as a {node.kind}, not a {kind}: delete it first, or use another name"
        )
    return node


def _new_node(log: Log, prefix: str, bare: Node, metadata: Metadata) -> Node:
    [topic] = log.control.create_topics([TopicSpec(_free_topic(prefix, bare.name, metadata), bare.partitions)])
    if topic.partitions < bare.partitions:  # left behind by a process that wanted fewer
        log.control.grow_topic(topic.name, bare.partitions)
    return replace(bare, topic=topic.name, topic_id=topic.id, store=store_id(topic.id))


def _adopt(log: Log, prefix: str, bare: Node, topic: str) -> Node:
    """A node on a topic that is there already, with all of its partitions."""
    if topic in realm_topics(prefix):
        raise NodeError(f"topic {topic} is the realm's own: name another one")
    known = log.control.topics(topic).get(topic)
    if known is None:
        raise NodeError(f"there is no topic {topic} to adopt: create it first, or leave --topic out")
    properties = bare.properties
    if properties.stores == 1:
        properties = replace(properties, partitions=known.partitions)
        check_properties(properties, bare.name)
    if properties.stores != known.partitions:
        raise NodeError(
            f"topic {topic} has {known.partitions} partitions, not {properties.stores}: a node has them all"
        )
    return replace(bare, topic=topic, topic_id=known.id, store=store_id(known.id), properties=properties, adopted=True)


def _first_eids(log: Log, node: Node, clock: Clock) -> list[int]:
    """Of its stores. The topic may be new, and one broker of several may not know it yet."""
    deadline_s = clock.monotonic_s() + CONTROL_S
    while True:
        try:
            return [log.control.bounds(node.topic, part.partition)[0] for part in node.parts]
        except LogError as error:
            if error.failure.cause != "not-found" or clock.monotonic_s() >= deadline_s:
                raise
        time.sleep(_LOOK_S)


def _journal_end(log: Log, prefix: str) -> int:
    """0 for a realm that was never opened."""
    with if_there():
        return log.control.bounds(f"{prefix}.journal", 0)[1]
    return 0


def _refuse_clash(log: Log, node: Node, metadata: Metadata) -> None:
    taken = [part.store for part in node.parts if part.store in metadata.stores]
    if not taken:
        return
    clash = metadata.stores[taken[0]]
    if clash.topic == node.topic:
        raise NodeError(f"topic {node.topic} is that of node {clash.name!r}: name another one")
    if not node.adopted:
        log.control.delete_topics([node.topic])
    raise NodeError(f"node {node.name!r} would have the store id of {clash.name!r} ({clash.store}): try again")


def _free_topic(prefix: str, name: str, metadata: Metadata) -> str:
    """Kafka takes `.` and `_` in topic names as equal and refuses the second one."""
    plain = plain_topic(prefix, name)
    taken = {node.topic.replace("_", ".") for node in metadata.nodes.values()}
    return plain if plain and plain.replace("_", ".") not in taken else named_topic(prefix, name)


def _show_durable(log: Log, node: Node, durable: Durable) -> ShownDurable:
    position = log.control.projected(durable.group).get((node.topic, node.partition))
    low = low_of(position) if position else None
    return ShownDurable(durable.name, durable.group, durable.start, low, node.partition)
