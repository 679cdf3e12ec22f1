"""The metadata records of durables, written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from native_backend.dispatch.context import RealmContext, start_bounds
from native_backend.nodes.durable import QUEUE, Durable, channel_durable, durable_key, encode_durable, queue_durable
from native_backend.nodes.durable_terms import EXCLUSIVE, DurableTerms
from native_backend.nodes.metadata import realm_topic
from native_backend.nodes.node import Node
from native_backend.nodes.start_position import LATEST, StartPosition, start_of


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a durable begins that is not known."""

    terms: DurableTerms = EXCLUSIVE
    start: StartPosition = LATEST
    owner: str = ""


def begin_durable(context: RealmContext, node: Node, name: str, journal: int, begins: Beginning) -> Durable:
    """A new durable; a queue's (should its record be missing) begins with the queue. Blocks; raises LogError."""
    log, deadline_s = context.log, context.limits.control_deadline_s
    parts = node.parts
    bounds = [start_bounds(context, part, begins.start) for part in parts]
    if name == QUEUE:
        durable = queue_durable(context.prefix, node, [first for first, _ in bounds], journal)
    else:
        columns = zip(parts, bounds, strict=True)
        places = [start_of(begins.start, log, part, its, deadline_s) for part, its in columns]
        channel = channel_durable(context.prefix, node, name, places, journal)
        durable = replace(channel, terms=begins.terms, owner=begins.owner)
    write_durable(context, durable)
    return durable


def write_durable(context: RealmContext, durable: Durable) -> int:
    """Its record; returns the offset. Blocks; raises LogError."""
    value = encode_durable(durable, context.clock.epoch_us())
    key, topic = durable_key(durable.node, durable.name), realm_topic(context.prefix)
    return context.log.control.put(topic, key, value, context.limits.control_deadline_s)
