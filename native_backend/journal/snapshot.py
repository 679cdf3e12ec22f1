"""Snapshots of acknowledgement states: the records of the compacted topic `<prefix>.state`.

A snapshot is the state as of journal offset `journal`, so any of them is right together with the journal from there
on; a newer one only makes recovery shorter. `closed` 0: a process had the durable open when this was written, so that
events at or above `position` may have been given to a link since.

A snapshot is a *set* of parts, of one where one record can hold it. Each part names its set and how many parts that
has. A set of several parts has keys of its own: one that was torn by a kill is seen to be torn, and the one before it
is still there. Of one part every run has one, which replaces itself; so what a process writes that was stopped
meanwhile, and owns the realm no more, replaces nothing of its successor's.
Records: docs/records.md "State snapshot" (version 2; version 1 is read: it has one part, and counts by EID).
Errors: `UnknownVersion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from native_backend.state.ack_state import AckState

VERSIONS = (1, 2)
Key = tuple[int, str]  # store, durable


class UnknownVersion(Exception):
    """A record of a later release."""


@dataclass(frozen=True, slots=True)
class StateCopy:
    """A state that no longer changes, as of journal offset `journal`."""

    node: str
    durable: str
    store: int
    journal: int
    closed: bool
    state: AckState

    @property
    def key(self) -> Key:
        return self.store, self.durable


@dataclass(slots=True)
class Recovered:
    """A state as a snapshot and the journal tell it."""

    state: AckState
    journal: int  # the first journal offset that is not in it
    closed: bool
    snapshot: int = 0  # what `journal` was in the snapshot
    keys: tuple[bytes, ...] = ()  # of every record that the state topic has of it, older and torn sets included
    deleted: bool = False  # the journal has its end, its metadata is still there


def state_topic(prefix: str) -> str:
    return f"{prefix}.state"


def snapshot_key(store: int, durable: str) -> bytes:
    """Of a snapshot of an earlier release, in one record."""
    return orjson.dumps([store, durable])


def encode_snapshot(frozen: StateCopy, name: str, record_bytes: int) -> list[tuple[bytes, bytes]]:
    """Key and value of each part; `name` is the set's, RUN:N, like no other's."""
    state = frozen.state
    digits = len(str(state.position))
    room = max(1, (record_bytes - 500 - len(frozen.node) - len(frozen.durable)) // (2 * digits + 20))
    acked = list(state.acked)
    failed = [*_counted(state.failed)]
    delayed = list(state.delayed)
    before_delayed = len(acked) + len(failed)
    count = max(1, -(-(before_delayed + len(delayed)) // room))
    name = name if count > 1 else name.rpartition(":")[0]
    parts = []
    for part in range(count):
        begin, end = part * room, (part + 1) * room
        record = {
            "v": 2,
            "node": frozen.node,
            "durable": frozen.durable,
            "store": frozen.store,
            "journal": frozen.journal,
            "low": state.low,
            "position": state.position,
            "closed": int(frozen.closed),
            **({"gone": state.gone} if state.gone else {}),
            "set": name,
            "part": part,
            "parts": count,
            "acked": acked[begin:end],
            "failed": failed[max(0, begin - len(acked)) : max(0, end - len(acked))],
            "delayed": delayed[max(0, begin - before_delayed) : max(0, end - before_delayed)],
        }
        parts.append((orjson.dumps([frozen.store, frozen.durable, name, part]), orjson.dumps(record)))
    return parts


def newest_sets(
    records: Iterable[tuple[bytes, dict[str, Any]]],
) -> Iterator[tuple[Key, list[dict[str, Any]], tuple[bytes, ...]]]:
    """Of every durable the parts of its newest complete set, and the keys of all its records. `records`: those that
    are kept, in the order of their offsets. Newest is what names the highest journal offset; of equals, the last."""
    sets: dict[Key, dict[object, dict[int, dict[str, Any]]]] = {}
    keys: dict[Key, list[bytes]] = {}
    for key, record in records:
        store, durable, *_ = orjson.loads(key)
        if record["v"] not in VERSIONS:
            known = " and ".join(map(str, VERSIONS))
            raise UnknownVersion(f"the state of {durable!r} has version {record['v']}; this release knows {known}")
        snapshot = sets.setdefault((store, durable), {}).setdefault(record.get("set"), {})
        snapshot[record.get("part", 0)] = record
        keys.setdefault((store, durable), []).append(key)
    for pair, found_sets in sets.items():
        newest: list[dict[str, Any]] = []
        for snapshot in found_sets.values():
            parts = [snapshot[part] for part in sorted(snapshot)]
            is_complete = len(parts) == int(parts[0].get("parts", 1))
            if is_complete and (not newest or parts[0]["journal"] >= newest[0]["journal"]):
                newest = parts
        yield pair, newest, tuple(keys[pair])


def decode_snapshot(parts: list[dict[str, Any]], keys: tuple[bytes, ...]) -> Recovered:
    """The state that a complete set tells."""
    head = parts[0]
    state = AckState(head["low"], head["position"])
    state.gone = head.get("gone", 0)
    for record in parts:
        for first, last in record["acked"]:
            state.acked.add(first, last)
        for not_before_ms, first, last in record.get("delayed", ()):
            state.delayed.add(first, last, not_before_ms)
        if record["v"] == 1:
            state.failed = dict(record["failed"])
            continue
        for first, last, count in record["failed"]:
            state.failed.update((eid, count) for eid in range(first, last + 1))
    return Recovered(state, head["journal"], bool(head.get("closed", 0)), head["journal"], keys)


def _counted(failed: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """Attempts as ranges of EIDs with the same count."""
    first = last = -2
    same = 0
    for eid in sorted(failed):
        if eid == last + 1 and failed[eid] == same:
            last = eid
            continue
        if same:
            yield first, last, same
        first = last = eid
        same = failed[eid]
    if same:
        yield first, last, same
