"""Nodes and durables of the realm, with their numbers: `/api/nodes`, `/api/durables`.

A row costs a look at each of its stores, in steps between two turns. Seconds, octets, microseconds since 1970.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import orjson

from gateway.admin.answers import Answering, WrongParameter, following, last_of, limit_of
from gateway.admin.http import Request, Response
from gateway.session.gateway import Gateway
from native_backend.events.message_counts import MessageCounts
from native_backend.metrics import DurableMetrics, RealmMetrics, known_sum, oldest
from native_backend.nodes.durable import QUEUE, Durable
from native_backend.nodes.node import Node

_STEP: Final = 500  # durables looked at without a pause
Row = dict[str, Any]
Place = tuple[str, str, int]  # node, durable, partition


async def nodes(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?limit=&after=&node=`, by name. Raises WrongParameter."""
    figures, limit = gateway.realm.metrics, limit_of(request.query)
    wanted, after = request.query.get("node"), request.query.get("after")
    known = ((node.name, node) for node in figures.known_nodes() if wanted in (None, node.name))
    page = await following(known, after, limit + 1)
    durables = await _durables_of(figures, {name for name, _ in page[:limit]})
    problems = {trouble.about: trouble.kind for trouble in figures.troubles if trouble.kind.startswith("topic-")}
    rows: list[Row] = []
    for name, node in page[:limit]:
        rows.append(await _node_row(gateway, node, durables.get(name, []), problems.get(name)))
        await asyncio.sleep(0)
    return answering.answer(nodes=rows, next=rows[-1]["id"] if len(page) > limit else None)


async def _durables_of(figures: RealmMetrics, names: set[str]) -> dict[str, list[tuple[Node, Durable]]]:
    by_node: dict[str, list[tuple[Node, Durable]]] = {}
    for at, (node, durable) in enumerate(figures.depths.durables(), 1):
        if node.name in names:
            by_node.setdefault(node.name, []).append((node, durable))
        if at % _STEP == 0:
            await asyncio.sleep(0)
    return by_node


async def _node_row(gateway: Gateway, node: Node, durables: list[tuple[Node, Durable]], problem: str | None) -> Row:
    figures, properties = gateway.realm.metrics, node.properties
    stores = [await last_of(figures.store(part)) for part in node.parts]
    counts = [await _counts(figures, part) for part in node.parts] if node.kind == "queue" else []
    has_capacity = bool(properties.capacity_events or properties.capacity_bytes)
    letters = figures.dead_letters
    return {
        "id": node.name,
        "node": node.name,
        "kind": node.kind,
        "type": properties.type,
        "temporary": node.temporary,
        "adopted": node.adopted,
        "topic": node.topic,
        "partitions": node.partitions,
        "created_us": node.created_us,
        "messages": known_sum(store.stored for store in stores),
        "messages_max": properties.capacity_events or None,
        "size_bytes": known_sum(store.size_bytes for store in stores),
        "size_bytes_max": properties.capacity_bytes or None,
        "full": ("evicts", "refuses")[properties.honour_capacity] if has_capacity else None,
        "oldest_s": _age(oldest(store.oldest_s for store in stores)),
        "available": known_sum(tally.available if tally else None for tally in counts) if counts else None,
        "unsettled": known_sum(tally.unsettled if tally else None for tally in counts) if counts else None,
        "delayed": known_sum(tally.delayed if tally else None for tally in counts) if counts else None,
        "durables": len({durable.name for _, durable in durables} - ({QUEUE} if node.kind == "queue" else set())),
        "consumers": sum(figures.links(part, durable) for part, durable in durables),
        "ttl_ms": properties.ttl_ms or None,
        "attempts": properties.attempts or None,
        "dead_letter": properties.dead_letter or None,
        "dead_letters": {cause: count for (name, cause), count in letters.items() if name == node.name},
        "deliveries": gateway.outcomes.counters.of_node(node.name),
        "problem": problem,
    }


async def _counts(figures: RealmMetrics, part: Node) -> MessageCounts | None:
    queue = figures.depths.queue(part)
    return (await last_of(figures.durable(part, queue))).counts if queue is not None else None


def _age(seconds: float | None) -> float | None:
    """None: there is no message, or that is not known."""
    return round(seconds, 1) if seconds else None


async def durables(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?limit=&after=&node=&durable=`, by node, name and partition. Raises WrongParameter."""
    figures, limit = gateway.realm.metrics, limit_of(request.query)
    page = await following(_wanted(figures, request), _place(request), limit + 1)
    rows: list[Row] = []
    for place, (node, durable) in page[:limit]:
        rows.append(_durable_row(place, durable, await last_of(figures.durable(node, durable))))
        await asyncio.sleep(0)
    return answering.answer(durables=rows, next=rows[-1]["id"] if len(page) > limit else None)


def _wanted(figures: RealmMetrics, request: Request) -> Iterator[tuple[Place, tuple[Node, Durable]]]:
    node_name, name = request.query.get("node"), request.query.get("durable")
    for node, durable in figures.depths.durables():
        if node_name in (None, node.name) and name in (None, durable.name):
            yield (node.name, durable.name, node.partition), (node, durable)


def _place(request: Request) -> Place | None:
    """Of the row `after`. Raises WrongParameter."""
    written = request.query.get("after")
    if not written:
        return None
    try:
        node, durable, partition = orjson.loads(written)
    except (ValueError, TypeError):
        node = durable = partition = None
    if not (isinstance(node, str) and isinstance(durable, str) and type(partition) is int):
        raise WrongParameter(f'after={written[:60]} is no ID of a durable: ["NODE","DURABLE",PARTITION]')
    return node, durable, partition


def _durable_row(place: Place, durable: Durable, metrics: DurableMetrics) -> Row:
    counts, terms, is_queue = metrics.counts, durable.terms, durable.name == QUEUE
    container, subscription = terms.subscriber or (None, None)
    return {
        "id": orjson.dumps(place).decode(),
        "node": metrics.node,
        "durable": metrics.durable,
        "partition": metrics.partition,
        "store": durable.store,
        "stored": counts.stored if counts else None,
        "available": counts.available if counts else None,
        "unsettled": counts.unsettled if counts else None,
        "delayed": counts.delayed if counts else None,
        "oldest_s": _age(metrics.oldest_s),
        "low_eid": metrics.low,
        "position_eid": metrics.position,
        "hole_events": metrics.hole,
        "settled_ranges": metrics.ranges,
        "consumers": metrics.links,
        "opened": metrics.opened,
        "owner": durable.owner or None,
        "shared": None if is_queue else terms.shared,
        "durability": None if is_queue else terms.durability,
        "expiry": None if is_queue else terms.expiry,
        "timeout_s": None if is_queue else terms.timeout_s,
        "selector": terms.selector or None,
        "container": container,
        "subscription": subscription,
    }
