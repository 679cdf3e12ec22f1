"""The newest snapshot of each durable's state, as the records of `PREFIX.state` tell it.

A snapshot is one record, or a set of several: only a set of which all parts are there counts, and of several the one
with the highest journal offset. Source: docs/records.md "State snapshot".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

VERSIONS = (1, 2)
Place = tuple[int, str]
"""Store, durable."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything below `low` and in `acked` (inclusive) is terminal, as of journal offset `journal`."""

    low: int
    acked: tuple[tuple[int, int], ...]
    journal: int


def newest(records: Iterable[tuple[bytes, dict[str, Any]]], unreadable: list[str]) -> dict[Place, Snapshot]:
    """`records`: the kept ones, key and value, in the order of their offsets. Adds what it cannot read to
    `unreadable`."""
    sets: dict[Place, dict[object, dict[int, dict[str, Any]]]] = {}
    for key, record in records:
        if record.get("v") not in VERSIONS:
            unreadable.append(f"state: version {record.get('v')} is of a later release")
            continue
        store, durable, *_ = orjson.loads(key)
        sets.setdefault((store, durable), {}).setdefault(record.get("set"), {})[record.get("part", 0)] = record
    snapshots: dict[Place, Snapshot] = {}
    for place, of_durable in sets.items():
        for parts in of_durable.values():
            head = next(iter(parts.values()))
            whole = len(parts) == head.get("parts", 1)
            if whole and (place not in snapshots or head["journal"] >= snapshots[place].journal):
                acked = [(first, last) for at in sorted(parts) for first, last in parts[at]["acked"]]
                snapshots[place] = Snapshot(head["low"], tuple(acked), head["journal"])
    return snapshots
