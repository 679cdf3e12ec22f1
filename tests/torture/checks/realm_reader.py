"""What a realm keeps, read with other code than the one that wrote it: kafka-python, or sqlite3. See docs/records.md.

Errors: those of the clients.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Protocol

from kafka import KafkaConsumer, TopicPartition

from tests.torture.history import Said, read_body

Record = tuple[int, bytes | None, bytes | None]  # offset, key, value
Store = tuple[str, int]  # node, id
Place = tuple[Store, str]  # and durable
TERMINAL = ("acknowledge", "discard", "dead-letter", "expired", "filtered", "evicted")


@dataclass(slots=True)
class Kept:
    """`events` by store and EID (None: written by no one of ours), those of them that are deleted by now also in
    `trimmed`; `terminal` and `starts` by store and durable; `partitions` says where in its node's topic a store lies,
    `levels` how many levels of priority a node has."""

    events: dict[Store, dict[int, Said | None]] = field(default_factory=dict)
    trimmed: dict[Store, set[int]] = field(default_factory=dict)
    starts: dict[Place, int] = field(default_factory=dict)
    terminal: dict[Place, set[int]] = field(default_factory=dict)
    partitions: dict[Store, int] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    journal_records: int = 0

    def left(self) -> dict[Place, list[int]]:
        """Events that a durable or queue is entitled to and that no one has ended yet."""
        places = {}
        for place, start in self.starts.items():
            events = self.events.get(place[0], {})
            ended = self.terminal.get(place, set())
            left = [eid for eid in events if eid >= start and eid not in ended]
            if left:
                places[place] = left
        return places


class Log(Protocol):
    """Committed records of the log under a realm, from an offset on, and the first offset that is kept."""

    def records(self, topic: str, partition: int, start: int) -> tuple[int, Iterator[Record]]: ...

    def close(self) -> None: ...


class KafkaLog:
    def __init__(self, bootstrap: str) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap.split(","), isolation_level="read_committed", consumer_timeout_ms=1000
        )

    def records(self, topic: str, partition: int, start: int) -> tuple[int, Iterator[Record]]:
        consumer, place = self._consumer, TopicPartition(topic, partition)
        consumer.assign([place])
        first: int = consumer.beginning_offsets([place])[place]
        end = consumer.end_offsets([place])[place]
        consumer.seek(place, max(first, start))

        def found() -> Iterator[Record]:
            while consumer.position(place) < end:
                for record in consumer.poll(timeout_ms=500, max_records=5000).get(place, []):
                    yield record.offset, record.key, record.value

        return first, found()

    def close(self) -> None:
        self._consumer.close()


class SqliteLog:
    def __init__(self, directory: Path) -> None:
        self._connection = sqlite3.connect(f"file:{directory / 'realm.sqlite'}?mode=ro", uri=True)
        self._connection.execute("BEGIN")

    def records(self, topic: str, partition: int, start: int) -> tuple[int, Iterator[Record]]:
        where = "SELECT id, first FROM partitions WHERE topic = ? AND number = ?"
        number, first = self._connection.execute(where, (topic, partition)).fetchone() or (0, 0)  # not made yet
        batches = "SELECT first, count, data FROM batches WHERE partition = ? AND first + count > ? ORDER BY first"
        rows = self._connection.execute(batches, (number, start)).fetchall()
        return first, (record for row in rows for record in _rows(*row) if record[0] >= max(first, start))

    def close(self) -> None:
        self._connection.close()


def _rows(first: int, count: int, blob: bytes) -> Iterator[Record]:
    """2 x count lengths (2^32-1: null), then the keys, then the values."""
    lengths = struct.unpack_from(f"<{2 * count}I", blob)
    at = 8 * count
    items: list[bytes | None] = []
    for length in lengths:
        if length == 0xFFFFFFFF:
            items.append(None)
            continue
        items.append(blob[at : at + length])
        at += length
    for number in range(count):
        yield first + number, items[number], items[count + number]


class Reading:
    """What a realm has kept so far, read piece by piece, so that what it deletes in its own time is known.
    `was_outrun`: it has deleted what no one had read."""

    def __init__(self, prefix: str) -> None:
        self.was_outrun = False
        self._prefix = prefix
        self._kept = Kept()
        self._positions: dict[tuple[str, int], int] = {}
        self._firsts: dict[Store, int] = {}
        self._topics: dict[str, str] = {}
        self._stores: dict[str, list[Store]] = {}
        self._starts: dict[tuple[str, str], list[int]] = {}  # by node and durable
        self._lock = threading.Lock()

    def take(self, log: Log) -> Kept:
        """Everything up to now. Closes the log."""
        with closing(log), self._lock:
            for value in self._next(log, f"{self._prefix}.realm"):
                self._described(*value[1:])
            for value in self._next(log, f"{self._prefix}.journal"):  # what it names is there by then
                self._journaled(value[2])
            for store, partition in self._kept.partitions.items():
                events = self._kept.events.setdefault(store, {})
                for offset, _, octets in self._next(log, self._topics[store[0]], partition, store):
                    if octets is not None:
                        events[offset] = read_body(octets)
            self._entitle()
            return self._copy()

    def _entitle(self) -> None:
        """A queue's own state is written down before its node."""
        for (node, durable), starts in self._starts.items():
            for store, start in zip(self._stores[node], chain(starts, repeat(0)), strict=False):  # 0: added later
                self._kept.starts[store, durable] = start

    def _next(self, log: Log, topic: str, partition: int = 0, store: Store | None = None) -> Iterator[Record]:
        place = topic, partition
        position = self._positions.get(place, 0)
        first, records = log.records(topic, partition, position)
        if store is not None:
            self._firsts[store] = first
        self.was_outrun = self.was_outrun or first > position
        for record in records:
            self._positions[place] = record[0] + 1
            yield record

    def _copy(self) -> Kept:
        kept = self._kept
        trimmed = {store: {eid for eid in bodies if eid < self._firsts[store]} for store, bodies in kept.events.items()}
        return replace(
            kept,
            events={store: {**events} for store, events in kept.events.items()},
            trimmed=trimmed,
            starts={**kept.starts},
            terminal={place: {*eids} for place, eids in kept.terminal.items()},
        )

    def _described(self, key: bytes | None, value: bytes | None) -> None:
        """The first record of a node or durable says what it is."""
        if key is None or value is None:
            return
        kind, *names = json.loads(key)
        document = json.loads(value)
        if kind == "node" and names[0] not in self._topics:
            node, properties = names[0], document.get("properties", {})
            levels = self._kept.levels[node] = properties.get("priority_levels", 0)
            self._topics[node] = document["topic"]
            stores = self._stores[node] = _stores(node, document, max(1, properties.get("partitions", 1), levels))
            self._kept.partitions.update((store, partition) for partition, store in enumerate(stores))
        elif kind == "durable":
            self._starts.setdefault((names[0], names[1]), [document["start"], *document.get("starts", ())])

    def _journaled(self, value: bytes | None) -> None:
        if value is None:
            return
        self._kept.journal_records += 1
        for entry in json.loads(value)["entries"]:
            if entry["operation"] in TERMINAL:
                place = (entry["node"], entry["store"]), entry["durable"]
                ended = self._kept.terminal.setdefault(place, set())
                for first, last, *_ in entry["runs"]:
                    ended.update(range(first, last + 1))


def _stores(node: str, document: dict[str, Any], count: int) -> list[Store]:
    """By partition; the id is a digest of the topic's id and the partition."""
    topic_id, ids = bytes.fromhex(document["topic_id"]), []
    for partition in range(count):
        digest = blake2b(topic_id + partition.to_bytes(4, "big"), digest_size=8).digest()
        ids.append(int.from_bytes(digest, "big") % (10**12 - 1) + 1)
    assert ids[0] == document["store"], document
    return [(node, store_id) for store_id in ids]
