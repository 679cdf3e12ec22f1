"""The journal's records: docs/records.md "Journal"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from native_backend.journal.settlement import Settlement

VERSION = 2
_VERSION_2: Final = "truncated"
"""What a release that knows version 1 only would take for the end of those events: it has to refuse the record."""
_EntryKey = tuple[int, str, bool, str, int, int]


@dataclass(frozen=True, slots=True)
class Lookback:
    """What the journal's tail shows of a transaction of unknown result."""

    rival: bool  # records of another run
    stored: bool
    offsets: list[int]  # of its event writes
    following: int  # the first offset behind what was read


def encode(run: str, n: int, at_us: int, settlements: list[Settlement], runs_max: int) -> Iterator[bytes]:
    """The settlements of one transaction as records of at most `runs_max` runs each: one, nearly always. An entry
    weighs as many runs as its names and fixed parts take the room of."""
    entries: dict[_EntryKey, dict[str, Any]] = {}
    room = runs_max
    for settlement in settlements:
        runs, at = settlement.runs, 0
        while at < len(runs):
            if room <= 0:
                yield encode_record(run, n, at_us, entries)
                entries, room, n = {}, runs_max, n + 1
            known = len(entries)
            entry = _entry(entries, settlement)
            if len(entries) > known and room > 1:
                room = max(1, room - 3 - (len(entry["node"]) + len(entry["durable"])) // 20)
            part = runs[at : at + room] if at or len(runs) > room else runs
            entry["runs"].extend(part)
            at += len(part)
            room -= len(part)
    yield encode_record(run, n, at_us, entries)


def encode_record(run: str, n: int, at_us: int, entries: dict[_EntryKey, dict[str, Any]]) -> bytes:
    """One record, of the lowest version that can say it."""
    listed = [*entries.values()]
    version = VERSION if any(entry["operation"] == _VERSION_2 for entry in listed) else 1
    return orjson.dumps({"v": version, "run": run, "n": n, "at": at_us, "entries": listed})


def _entry(entries: dict[_EntryKey, dict[str, Any]], settlement: Settlement) -> dict[str, Any]:
    """What has the same keeper, operation, count, cause and time shares an entry."""
    not_before = settlement.not_before_ms
    key = (id(settlement.keeper), settlement.operation, settlement.failed, settlement.cause, not_before, settlement.to)
    entry = entries.get(key)
    if entry is None:
        node, durable, store = settlement.keeper.keys()
        entry = entries[key] = {
            "node": node,
            "durable": durable,
            "store": store,
            "operation": settlement.operation,
            "failed": int(settlement.failed),
            "cause": settlement.cause,
            "runs": [],
        }
        if not_before:
            entry["not_before"] = not_before
        if settlement.to:
            entry["to"] = settlement.to
    return entry
