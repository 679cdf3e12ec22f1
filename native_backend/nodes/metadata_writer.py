"""Reading realm metadata to its end, and writing it beside others who write it, too.

Everything blocks and raises `LogError`, or `PropertyError` where no node can have the new properties.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from native_backend.clock import Clock
from native_backend.log.port import Failure, Log, LogError, TopicSpec, if_there
from native_backend.nodes.metadata import REALM_KEY, Metadata, encode_realm, read_tail, realm_topic
from native_backend.nodes.node import Node, encode_node, node_key
from native_backend.nodes.properties import (
    Grant,
    Properties,
    PropertyError,
    check_acl,
    check_change,
    check_properties,
    grown,
)

_ATTEMPTS = 1000  # to see what was just written
_PAUSE_S = 0.005
Change = Callable[[Properties], Properties]


def realm_metadata(log: Log, prefix: str) -> Metadata:
    """Read to its end; empty for a realm that was never opened."""
    metadata = Metadata()
    with if_there():
        metadata.fold(read_tail(log, realm_topic(prefix), 0))
    return metadata


def read_through(log: Log, prefix: str, metadata: Metadata, offset: int) -> None:
    """Read on until the record at `offset` has been seen."""
    for _ in range(_ATTEMPTS):
        metadata.fold(read_tail(log, realm_topic(prefix), metadata.position))
        if metadata.position > offset:
            return
        time.sleep(_PAUSE_S)
    raise LogError(Failure("unavailable", f"{realm_topic(prefix)} cannot be read up to {offset}"))


def set_properties(log: Log, prefix: str, name: str, change: Change, clock: Clock) -> Node | None:
    """Give a node what `change` makes of its properties; None when there is no such node, or no longer. Of two changes
    of one node at the same moment the later record wins."""
    metadata = realm_metadata(log, prefix)
    node = metadata.nodes.get(name)
    if node is None:
        return None
    properties = change(node.properties)
    check_properties(properties, name)
    check_change(node.properties, properties)
    properties = grown(node.properties, properties)
    if properties == node.properties:
        return node
    if properties.stores > node.partitions:
        log.control.grow_topic(node.topic, properties.stores)
    gone = _is_gone(log, node)
    metadata.fold(read_tail(log, realm_topic(prefix), metadata.position))  # as late as can be: a log knows no condition
    now = metadata.nodes.get(name)
    if gone or now is None or now.store != node.store:
        return None
    changed = encode_node(replace(node, properties=properties), clock.epoch_us(), metadata.position)
    read_through(log, prefix, metadata, log.control.put(realm_topic(prefix), node_key(name), changed))
    if _is_gone(log, node):
        _withdraw(log, prefix, node, metadata, clock)
        return None
    return metadata.nodes.get(name)


def _is_gone(log: Log, node: Node) -> bool:
    """Whether it was deleted with its topic. Metadata may omit a topic without a leader, but it is there."""
    topic = log.control.find_topics([node.topic]).get(node.topic)
    if topic is not None:
        return topic.id != node.topic_id
    try:
        log.control.bounds(node.topic, 0)
    except LogError as error:
        return error.failure.cause == "not-found"
    return False


def _withdraw(log: Log, prefix: str, node: Node, metadata: Metadata, clock: Clock) -> None:
    """It was deleted while its change was written: it stays so (`delete_node` looks, too). A node that was made anew
    under that name meanwhile lives: compaction keeps the last record of a key, so that is made its own."""
    metadata.fold(read_tail(log, realm_topic(prefix), metadata.position))
    now = metadata.nodes.get(node.name)
    if now is not None:
        value = encode_node(now, clock.epoch_us(), metadata.position) if now.store != node.store else None
        log.control.put(realm_topic(prefix), node_key(node.name), value)


def set_realm_acl(log: Log, prefix: str, acl: tuple[Grant, ...]) -> None:
    """The realm's own grants; of two writers the last one wins."""
    problems = check_acl(acl)
    if problems:
        raise PropertyError(problems)
    log.control.create_topics([TopicSpec(realm_topic(prefix), compacted=True)])
    log.control.put(realm_topic(prefix), REALM_KEY, encode_realm(acl))
