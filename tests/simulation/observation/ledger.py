"""The disk, read behind the realm's back: events, the journal, the evidence. Nothing of the gateway's code is used.

What lies on the disk counts, whether or not a reader may see it yet; of an unfinished transaction nothing counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from native_backend.log.simulated.disk import Disk, Stored
from tests.simulation.peers.bodies import marker_of

PREFIX = "um"


@dataclass(frozen=True, slots=True)
class Entry:
    """One event's part of one journal record."""

    run: str
    n: int
    seq: int
    operation: str
    failed: bool
    cause: str


class Ledger:
    """Reads on, never twice."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._journal_from = 0
        self._records: dict[tuple[str, int], bytes] = {}
        self.doubled: list[str] = []  # journal numbers that two different records have
        self._entries: dict[tuple[int, str, int], list[Entry]] = {}
        self._events: dict[str, dict[str, int]] = {}
        self._events_from: dict[str, int] = {}
        self._stores: dict[int, str] = {}

    # -- events

    def node_of(self, store: int) -> str | None:
        if store not in self._stores:
            records = self._of(f"{PREFIX}.realm")
            nodes = [orjson.loads(record.value) for record in records if record.value and b'"node",' in record.key]  # type: ignore[operator]
            self._stores = {node["store"]: node["name"] for node in nodes if "kind" in node}
        return self._stores.get(store)

    def events(self, node: str) -> list[Stored]:
        return self._of(f"{PREFIX}.node.{node}")

    def event(self, node: str, eid: int) -> Stored | None:
        partition = self._disk.partitions[f"{PREFIX}.node.{node}", 0]
        at = partition.index(eid)
        record = partition.records[at] if at < len(partition.records) else None
        return record if record is not None and record.offset == eid else None

    def end(self, node: str) -> int:
        return self._disk.partitions[f"{PREFIX}.node.{node}", 0].end

    def holds(self, node: str, payload_marker: str) -> bool:
        """Is an event with this marker stored?"""
        eids = self._events.setdefault(node, {})
        start = self._events_from.get(node, 0)
        partition = self._disk.partitions[f"{PREFIX}.node.{node}", 0]
        records = partition.records[partition.index(start) :]
        for record in records:
            if not record.open:
                eids[marker_of(record.value or b"")] = record.offset
        self._events_from[node] = next((record.offset for record in records if record.open), partition.end)
        return payload_marker in eids

    def marker(self, event: Stored | None) -> str:
        return marker_of(event.value or b"") if event is not None else ""

    def markers(self, node: str) -> list[str]:
        """Of every event that is stored."""
        return [marker_of(record.value or b"") for record in self.events(node)]

    def eid(self, node: str, marker: str) -> int:
        """-1 when it is not stored."""
        return self._events[node][marker] if self.holds(node, marker) else -1

    # -- the journal

    def entries(self, store: int, durable: str, eid: int) -> list[Entry]:
        """What the journal says of one event, in order; a record submitted twice counts once."""
        self._read_journal()
        return self._entries.get((store, durable, eid), [])

    def all_entries(self) -> dict[tuple[int, str, int], list[Entry]]:
        self._read_journal()
        return self._entries

    def numbers(self) -> dict[str, list[int]]:
        """By run, the `n` of its journal records."""
        self._read_journal()
        numbers: dict[str, list[int]] = {}
        for run, n in self._records:
            numbers.setdefault(run, []).append(n)
        return numbers

    def _read_journal(self) -> None:
        partition = self._disk.partitions[f"{PREFIX}.journal", 0]
        for record in partition.records[partition.index(self._journal_from) :]:
            if record.open:
                return
            self._journal_from = record.offset + 1
            if record.value is not None:  # a mark, written while a result was looked for, says nothing
                self._read_record(record.value)

    def _read_record(self, value: bytes) -> None:
        record = orjson.loads(value)
        run, n = record["run"], record["n"]
        known = self._records.get((run, n))
        if known is not None:
            if known != value:
                self.doubled.append(f"journal record {n} of run {run}")
            return
        self._records[run, n] = value
        for entry in record["entries"]:
            if entry["operation"] in ("recorded", "delete"):  # of outcome records, of a durable as a whole: of no event
                continue
            for first, last, seq, _ in entry["runs"]:
                for eid in range(first, last + 1):
                    made = Entry(run, n, seq + eid - first, entry["operation"], bool(entry["failed"]), entry["cause"])
                    self._entries.setdefault((entry["store"], entry["durable"], eid), []).append(made)

    # -- the rest

    def evidence(self) -> list[dict[str, Any]]:
        return [orjson.loads(record.value or b"") for record in self._of(f"{PREFIX}.outcomes")]

    def durables(self) -> dict[tuple[str, str], int]:
        """Node and name of every durable that has not been deleted -> the EID it began at."""
        starts = {}
        for record in self._of(f"{PREFIX}.realm"):
            what, *names = orjson.loads(record.key or b"[]")
            if what == "durable" and record.value:
                starts[names[0], names[1]] = int(orjson.loads(record.value)["start"])
            elif what == "durable":
                starts.pop((names[0], names[1]), None)
        return starts

    def snapshots(self) -> dict[tuple[int, str], dict[str, Any]]:
        """The newest snapshot of each durable."""
        by_durable = {}
        for record in self._of(f"{PREFIX}.state"):
            if record.value is None:
                continue
            snapshot = orjson.loads(record.value)
            by_durable[snapshot["store"], snapshot["durable"]] = snapshot
        return by_durable

    def _of(self, topic: str) -> list[Stored]:
        return [record for record in self._disk.partitions[topic, 0].records if not record.open]
