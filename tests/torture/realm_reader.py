"""What a realm keeps, read with other code than the one that wrote it: kafka-python, or sqlite3. See docs/records.md.

Errors: those of the clients. May import: the standard library, kafka-python, `tests.torture.history`.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from tests.torture.history import Said, read_body

Record = tuple[int, bytes | None, bytes | None]  # offset, key, value
Store = tuple[str, int]  # node, id
Place = tuple[Store, str]  # and durable
PATIENCE = 3  # more attempts at reading, of half a minute each
TERMINAL = ("acknowledge", "discard", "dead-letter", "expired", "filtered", "evicted")


@dataclass(slots=True)
class Kept:
    """`events` by store and EID (None: written by nobody of ours), those of them that are deleted by now also in
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
        """Events that a durable or queue is entitled to and that nobody has ended yet."""
        found = {}
        for place, start in self.starts.items():
            events = self.events.get(place[0], {})
            ended = self.terminal.get(place, set())
            left = [eid for eid in events if eid >= start and eid not in ended]
            if left:
                found[place] = left
        return found


def read_kafka(bootstrap: str, prefix: str) -> Kept:
    """Committed records only. A cluster that has just lost a broker may take its time."""
    for _ in range(PATIENCE):
        with suppress(KafkaTimeoutError):
            return _read_kafka(bootstrap, prefix)
    return _read_kafka(bootstrap, prefix)


def _read_kafka(bootstrap: str, prefix: str) -> Kept:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap.split(","), isolation_level="read_committed", consumer_timeout_ms=1000
    )
    with closing(consumer):

        def records(topic: str, partition: int = 0) -> Iterator[Record]:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            while consumer.position(place) < end:
                for each in consumer.poll(timeout_ms=500, max_records=5000).get(place, []):
                    yield each.offset, each.key, each.value

        return _read(prefix, records)


def read_sqlite(directory: Path, prefix: str) -> Kept:
    connection = sqlite3.connect(f"file:{directory / 'realm.sqlite'}?mode=ro", uri=True)
    rows = "SELECT b.first, b.count, b.data FROM batches b JOIN partitions p ON p.id = b.partition"
    asked = f"{rows} WHERE p.topic = ? AND p.number = ? ORDER BY b.first"

    def records(topic: str, partition: int = 0) -> Iterator[Record]:
        for first, count, blob in connection.execute(asked, (topic, partition)).fetchall():
            yield from _rows(first, count, blob)

    with closing(connection):
        connection.execute("BEGIN")
        return _read(prefix, records)


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


def _read(prefix: str, records: Any) -> Kept:
    kept = Kept()
    topics = _metadata(kept, records(f"{prefix}.realm"))
    _journal(kept, records(f"{prefix}.journal"))  # before the events: what it names is there by then
    for store, partition in kept.partitions.items():
        found = records(topics[store[0]], partition)
        kept.events[store] = {offset: read_body(value) for offset, _, value in found if value is not None}
    return kept


def _metadata(kept: Kept, records: Iterable[Record]) -> dict[str, str]:
    """Topics by node; the first record of a node or durable says what it is."""
    topics: dict[str, str] = {}
    stores: dict[str, list[Store]] = defaultdict(list)
    for _, key, value in records:
        if key is None or value is None:
            continue
        kind, *names = json.loads(key)
        said = json.loads(value)
        if kind == "node" and names[0] not in topics:
            node = names[0]
            properties = said.get("properties", {})
            kept.levels[node] = properties.get("priority_levels", 0)
            topics[node] = said["topic"]
            stores[node] = _stores(node, said, max(1, properties.get("partitions", 1), kept.levels[node]))
            kept.partitions.update((store, partition) for partition, store in enumerate(stores[node]))
        elif kind == "durable":
            starts = chain((said["start"], *said.get("starts", ())), repeat(0))  # 0 in what was added later
            for store, start in zip(stores[names[0]], starts, strict=False):
                kept.starts.setdefault((store, names[1]), start)
    return topics


def _stores(node: str, said: dict[str, Any], count: int) -> list[Store]:
    """By partition; the id is a digest of the topic's id and the partition."""
    topic_id, ids = bytes.fromhex(said["topic_id"]), []
    for partition in range(count):
        digest = blake2b(topic_id + partition.to_bytes(4, "big"), digest_size=8).digest()
        ids.append(int.from_bytes(digest, "big") % (10**12 - 1) + 1)
    assert ids[0] == said["store"], said
    return [(node, each) for each in ids]


def _journal(kept: Kept, records: Iterable[Record]) -> None:
    for _, _, value in records:
        if value is None:
            continue
        kept.journal_records += 1
        for entry in json.loads(value)["entries"]:
            if entry["operation"] in TERMINAL:
                ended = kept.terminal.setdefault(((entry["node"], entry["store"]), entry["durable"]), set())
                for first, last, *_ in entry["runs"]:
                    ended.update(range(first, last + 1))
