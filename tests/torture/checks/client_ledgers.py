"""The peers' history as ledgers of clients (docs/client-ledgers.md), which `realmgate reconcile --ledgers` compares.

The connections of a peer are one client that never closes in order, so what it settled is not held against a gateway
that says nothing of it. Numbers of transactions are of the whole run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.torture.history import Row

_OUTCOMES = ("accepted", "rejected", "released", "modified")
Line = dict[str, Any]


def write(rows: Iterable[Row], names: Mapping[int, str], begin_us: int, directory: Path) -> Path:
    """`names`: of the peers, by their numbers, which are their containers; `begin_us`: when the history began, in
    microseconds since 1970."""
    directory.mkdir()
    with (directory / "history.jsonl").open("w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines(rows, names, begin_us))
    return directory


def lines(rows: Iterable[Row], names: Mapping[int, str], begin_us: int) -> Iterator[Line]:
    links: dict[int, tuple[str, str]] = {}  # by link: the peer's name, the node
    of_transactions: dict[int, str] = {}
    for kind, at_ms, *fields in rows:
        head = {"v": 1, "at": begin_us + at_ms * 1000}
        if kind == "link":
            link, _, node, _, peer, _ = fields
            links[link] = (names[peer], node)
            yield {**head, "what": "opened", "client": names[peer], "container": names[peer]}
        elif kind == "discharged" and fields[1] == "accepted" and fields[0] in of_transactions:
            yield {**head, "what": "committed", "client": of_transactions[fields[0]], "transaction": str(fields[0])}
        elif kind in _STEPS:
            client, node = links[fields[0]]
            line = _STEPS[kind](fields, node)
            if line is not None:
                yield {**head, "client": client, **line}
            if kind == "send" and fields[3]:
                of_transactions[fields[3]] = client


def _sent(fields: list[Any], node: str) -> Line:
    link, index, _, transaction, *_ = fields
    return {"what": "sent", "node": node, "id": f"{link}:{index}", **_in_transaction(transaction)}


def _told(fields: list[Any], _: str) -> Line | None:
    link, index, outcome, _ = fields
    return {"what": "told", "id": f"{link}:{index}", "outcome": outcome} if outcome in _OUTCOMES else None


def _received(fields: list[Any], _: str) -> Line:
    store, eid, link, index = (fields[at] for at in (1, 2, 5, 6))
    return {"what": "received", "tag": f"{store}:{eid}", "id": f"{link}:{index}"}


def _damaged(fields: list[Any], _: str) -> Line:
    return {"what": "received", "tag": f"{fields[1]}:{fields[2]}", "id": "of no one"}


def _settled(fields: list[Any], _: str) -> Line:
    _, store, eid, outcome, transaction = fields
    return {"what": "settled", "tag": f"{store}:{eid}", "outcome": outcome, **_in_transaction(transaction)}


def _in_transaction(number: int) -> Line:
    return {"transaction": str(number)} if number else {}


_STEPS = {"send": _sent, "told": _told, "received": _received, "damaged": _damaged, "settle": _settled}
