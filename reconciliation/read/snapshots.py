"""The newest snapshot of each durable's state, as the records of `PREFIX.state` tell it.

A snapshot is one record, or a set of several: only a set of which all parts are there counts, and of several the one
with the highest journal offset. Source: docs/records.md "State snapshot".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from reconciliation.model.fields import DAMAGED, field, number, rows, text, text_or_none, why

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
    sets: dict[Place, dict[str | None, dict[int, _Part]]] = {}
    for key, record in records:
        if record.get("v") not in VERSIONS:
            unreadable.append(f"state: version {record.get('v')} is of a later release")
            continue
        try:
            place, part = _place_of(key), _Part.of(record)
            sets.setdefault(place, {}).setdefault(text_or_none(record.get("set")), {})[part.number] = part
        except DAMAGED as error:
            unreadable.append(f"state record of {key.decode(errors='replace')}: {why(error)}")
    snapshots: dict[Place, Snapshot] = {}
    for place, of_durable in sets.items():
        for parts in of_durable.values():
            head = next(iter(parts.values()))
            whole = len(parts) == head.parts
            if whole and (place not in snapshots or head.journal >= snapshots[place].journal):
                acked = [span for at in sorted(parts) for span in parts[at].acked]
                snapshots[place] = Snapshot(head.low, tuple(acked), head.journal)
    return snapshots


@dataclass(frozen=True, slots=True)
class _Part:
    """One record of a set of `parts`."""

    number: int
    parts: int
    low: int
    acked: tuple[tuple[int, int], ...]
    journal: int

    @classmethod
    def of(cls, record: dict[str, Any]) -> _Part:
        acked = tuple((number(first), number(last)) for first, last in rows(field(record, "acked")))
        part, parts = number(record.get("part", 0)), number(record.get("parts", 1))
        return cls(part, parts, number(field(record, "low")), acked, number(field(record, "journal")))


def _place_of(key: bytes) -> Place:
    store, durable, *_ = orjson.loads(key)
    return number(store), text(durable)
