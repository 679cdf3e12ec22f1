"""Transactions that are open, and those that wait for the realm's answer to their commit: `/api/transactions`.

Octets, seconds, microseconds since 1970.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from gateway.admin.answers import Answering, limit_of, place_of
from gateway.admin.http import Request, Response
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from gateway.transactions.coordinator import CoordinatorLink
from gateway.transactions.transaction import Transaction

_STEP: Final = 10  # connections and rows without a pause
Row = dict[str, Any]


async def transactions(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?limit=&after=&user=&container=`, as their connections came. Raises WrongParameter."""
    limit, above = limit_of(request.query), (*place_of(request.query, answering.run), 0)[:2]
    user, container = request.query.get("user"), request.query.get("container")
    rows: list[Row] = []
    following = None
    for at, connection in enumerate([*gateway.connections], 1):
        if user in (None, connection.subject.user) and container in (None, connection.container):
            for number, state, transaction in _numbered(connection):
                if (connection.record.number, number) <= above:
                    continue
                if len(rows) == limit:
                    following = rows[-1]["id"]
                    break
                rows.append(_row(gateway, connection, number, state, transaction))
        if following is not None:
            break
        if at % _STEP == 0:
            await asyncio.sleep(0)
    return answering.answer(transactions=rows, next=following)


def _numbered(connection: Connection) -> list[tuple[int, str, Transaction]]:
    """In the order in which they were declared, with their numbers in the run and states."""
    stated = [(transaction, transaction.state) for transaction in connection.transactions.all()]
    stated += [(txn, "committing") for txn in _committing(connection)]
    return sorted(((_number(txn), state, txn) for txn, state in stated), key=lambda row: row[0])


def _committing(connection: Connection) -> Iterator[Transaction]:
    for link in connection.engine.links():
        if isinstance(link.owner, CoordinatorLink):
            yield from link.owner.committing


def _number(transaction: Transaction) -> int:
    """It stands in the txn-id (`Shared.next_transaction_id`)."""
    return int(transaction.id.rpartition(b":")[2], 16)


def _row(gateway: Gateway, connection: Connection, number: int, state: str, transaction: Transaction) -> Row:
    run, age_s = gateway.realm.run, gateway.clock.monotonic_s() - transaction.began_s
    return {
        "id": f"{run}.{connection.record.number}.{number}",
        "transaction": transaction.id.hex(),
        "connection": f"{run}.{connection.record.number}",
        "user": connection.subject.user,
        "container": connection.container,
        "address": connection.address,
        "state": state,
        "since_us": gateway.clock.epoch_us() - round(age_s * 1e6),
        "age_s": round(age_s, 3),
        "messages": transaction.messages,
        "size_bytes": transaction.size_bytes,
        "settlements": transaction.settlements,
        "nodes": sorted(transaction.nodes),
    }
