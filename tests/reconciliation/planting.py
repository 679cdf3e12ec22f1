"""Faults, planted in the file of an embedded realm: records of a topic are taken out, changed, doubled, and put
back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from native_backend.log.sqlite.columns import decode, encode
from native_backend.log.sqlite.schema import connect

Record = tuple[int, bytes | None, bytes | None]
"""Offset, key, value."""


def edit(realm: Path, topic: str, change: Callable[[list[Record]], list[Record]]) -> None:
    """Rewrite a topic: one row per record, offsets as `change` leaves them."""
    connection = connect(realm)
    partition, end = connection.execute("SELECT id, next FROM partitions WHERE topic = ?", (topic,)).fetchone()
    records: list[Record] = []
    rows = connection.execute(
        "SELECT first, count, at_ms, data FROM batches WHERE partition = ?", (partition,)
    ).fetchall()
    for first, count, _, data in rows:
        keys, values = decode(data, count)
        records += [(first + index, keys[index], values[index]) for index in range(count)]
    at_ms = rows[0][2]
    connection.execute("BEGIN")
    connection.execute("DELETE FROM batches WHERE partition = ?", (partition,))
    for offset, key, value in sorted(change(records), key=lambda record: record[0]):
        row = (partition, offset, 1, at_ms, None, encode([key], [value]))
        connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute("UPDATE partitions SET next = max(next, ?) WHERE id = ?", (end, partition))
    connection.execute("COMMIT")
    connection.close()


def delete(realm: Path, topic: str, offset: int) -> None:
    edit(realm, topic, lambda records: [record for record in records if record[0] != offset])


def add(realm: Path, topic: str, key: bytes, value: bytes | None) -> int:
    """Append a record at the end; returns its offset."""
    placed: list[int] = []

    def append(records: list[Record]) -> list[Record]:
        placed.append(records[-1][0] + 1)
        return [*records, (placed[0], key, value)]

    edit(realm, topic, append)
    return placed[0]


def rewrite(realm: Path, topic: str, run: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change the JSON records of one run; None takes a record out."""

    def each(records: list[Record]) -> list[Record]:
        kept: list[Record] = []
        for offset, key, value in records:
            assert value is not None
            document = json.loads(value)
            changed = change(document) if document["run"] == run else document
            if changed is not None:
                kept.append((offset, key, json.dumps(changed).encode()))
        return kept

    edit(realm, topic, each)
