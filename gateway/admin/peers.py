"""Connections and links as operators see them, read from what the gateway holds: `/api/connections`, `/api/links`.

Rows are made some at a time, between two turns, so a page is not of one instant. Seconds, microseconds since 1970.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from gateway.admin.answers import Answering, WrongParameter, limit_of, place_of
from gateway.admin.http import Request, Response
from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_ends import Link, Outgoing
from gateway.attach.admission import Admission
from gateway.attach.anonymous_relay import RelayLink
from gateway.links.consuming import ConsumingLink
from gateway.links.publishing import PublishingLink
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from gateway.transactions.coordinator import CoordinatorLink
from native_backend.subscriptions.partitioned import packed_eids

_TAG: Final = re.compile(r"[0-9]{1,12}:[0-9]{1,19}")
_STEP: Final = 10  # connections looked at without a pause; each row has one

Row = dict[str, Any]


async def connections(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?limit=&after=&user=&container=`. Raises WrongParameter."""
    above = place_of(request.query, answering.run)[0]
    rows = (connection_row(connection) for connection in _wanted(gateway, request) if connection.record.number > above)
    return await _page(answering, "connections", rows, limit_of(request.query))


async def links(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?limit=&after=&user=&container=&node=&tag=`; `tag`: only links that hold this event, its delivery is `held`.
    Raises WrongParameter."""
    above = (*place_of(request.query, answering.run), 0)[:2]
    rows = _link_rows(gateway, request, above, _tag(request))
    return await _page(answering, "links", rows, limit_of(request.query))


def _wanted(gateway: Gateway, request: Request) -> Iterator[Connection]:
    """In the order in which they came."""
    user, container = request.query.get("user"), request.query.get("container")
    for connection in [*gateway.connections]:
        if user in (None, connection.subject.user) and container in (None, connection.container):
            yield connection


def _tag(request: Request) -> tuple[int, int] | None:
    """Store and EID of a delivery tag. Raises WrongParameter."""
    written = request.query.get("tag", "")
    if written and _TAG.fullmatch(written) is None:
        raise WrongParameter(f"tag={written[:40]} is no delivery tag: write STORE:EID")
    store, _, eid = written.partition(":")
    return (int(store), int(eid)) if written else None


def _link_rows(
    gateway: Gateway, request: Request, above: tuple[int, ...], tag: tuple[int, int] | None
) -> Iterator[Row | None]:
    node = request.query.get("node")
    for connection in _wanted(gateway, request):
        number = connection.record.number
        if number < above[0]:
            continue
        yield None
        for link in connection.engine.links():
            if not link.alive or (number, link.ordinal) <= above or node not in (None, _node(link)):
                continue
            if tag is None:
                yield link_row(connection, link)
            elif (seq := _held(link, *tag)) is not None:
                age_s = gateway.outcomes.seq_times.age_s(seq, gateway.clock.monotonic_s())
                yield link_row(connection, link) | {"held": {"seq": seq, "age_s": round(age_s, 1)}}
            else:
                yield None


def _held(link: Link, store: int, eid: int) -> int | None:
    """The seq by which a consumer has that event, without an outcome that it has stated."""
    owner = link.owner
    if not isinstance(owner, ConsumingLink) or not isinstance(link, Outgoing):
        return None
    for part in owner.subscription.node.parts:
        if part.store == store:
            [packed] = packed_eids(part.partition, [eid])
            return next((seq for seq, packed_eid in link.unsettled.values() if packed_eid == packed), None)
    return None


async def _page(answering: Answering, what: str, rows: Iterator[Row | None], limit: int) -> Response:
    page: list[Row] = []
    more = False
    for at, row in enumerate(rows, 1):
        if row is not None and len(page) == limit:
            more = True
            break
        if row is not None:
            page.append({**row, "id": f"{answering.run}.{row['id']}"})
        if row is not None or at % _STEP == 0:  # a link may have 10,000 unsettled: some 0.7 ms
            await asyncio.sleep(0)
    columns: Row = {what: page, "next": page[-1]["id"] if more else None}
    return answering.answer(**columns)


def connection_row(connection: Connection) -> Row:
    """Of one connection; `id` without the run."""
    record, client = connection.record, connection.record.client
    alive = [link for link in connection.engine.links() if link.alive]
    outcomes: dict[str, dict[str, int]] = {"publish": {}, "subscribe": {}}
    for (direction, outcome), count in record.totals.items():
        outcomes[direction][outcome] = count
    return {
        "id": str(record.number),
        "state": "closing" if connection.closing else "open" if connection.opened else "opening",
        "user": connection.subject.user,
        "container": connection.container,
        "address": connection.address,
        "since_us": record.since_us,
        "client": {"product": client.product, "version": client.version, "platform": client.platform},
        "links": len(alive),
        "messages_received": connection.messages,
        "unsettled": sum(link.unsettled_count for link in alive),
        "outcomes": outcomes,
    }


def link_row(connection: Connection, link: Link) -> Row:
    """Of one link that is alive; `id` without the run."""
    gateway, owner = connection.gateway, link.owner
    seqs, credit = link.unsettled_seqs, link.credit if isinstance(link, Incoming | Outgoing) else 0
    is_numbered = seqs and not isinstance(owner, CoordinatorLink)  # a coordinator counts requests of its own
    age_s = gateway.outcomes.seq_times.age_s(min(seqs), gateway.clock.monotonic_s()) if is_numbered else 0.0
    row: Row = {
        "id": f"{connection.record.number}.{link.ordinal}",
        "user": connection.subject.user,
        "container": connection.container,
        "address": connection.address,
        "name": link.name,
        "direction": "subscribe" if isinstance(link, Outgoing) else "publish",
        "kind": _kind(link),
        "node": _node(link),
        "durable": owner.facts.durable if isinstance(owner, ConsumingLink) else None,
        "sender_settle_mode": link.sender_settle_mode,
        "receiver_settle_mode": link.receiver_settle_mode,
        "credit": credit,
        "unsettled": len(seqs),
        "oldest_unsettled_s": round(age_s, 1) if seqs else None,
        "waiting": len(link.waiting) if isinstance(link, Outgoing) else None,
    }
    if isinstance(owner, PublishingLink | RelayLink | ConsumingLink):
        without = owner.without_credit
        row["without_credit_s"] = round(without.now_s(), 3) if credit <= 0 else 0.0
        row["without_credit_total_s"] = round(without.total_s(), 3)
        row["outcomes"] = dict(_counts(owner))
        row["last_outcome_s"] = _since_outcome_s(owner, gateway.clock.epoch_us())
        row["not_given"] = owner.subscription.waiting() if isinstance(owner, ConsumingLink) else None
        row["number"] = None if isinstance(owner, RelayLink) else owner.facts.number
    return row


def _since_outcome_s(owner: PublishingLink | RelayLink | ConsumingLink, now_us: int) -> float | None:
    """None: no delivery of the link had an outcome yet, or it is a relay's."""
    at_us = 0 if isinstance(owner, RelayLink) else owner.facts.last.at_us
    return round(max(0, now_us - at_us) / 1e6, 1) if at_us else None


def _counts(owner: PublishingLink | RelayLink | ConsumingLink) -> Counter[str]:
    return owner.counts if isinstance(owner, RelayLink) else owner.facts.counts


def _node(link: Link) -> str | None:
    return link.owner.node_name or None


def _kind(link: Link) -> str:
    owner = link.owner
    if isinstance(owner, PublishingLink):
        return "publisher"
    if isinstance(owner, ConsumingLink):
        return "consumer"
    if isinstance(owner, RelayLink):
        return "relay"
    if isinstance(owner, CoordinatorLink):
        return "coordinator"
    return "attaching" if isinstance(owner, Admission) else "other"
