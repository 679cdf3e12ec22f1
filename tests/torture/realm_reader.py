"""What a realm keeps, read with other code than the one that wrote it: kafka-python, or sqlite3. See docs/records.md.

Errors: those of the clients. May import: the standard library, kafka-python, `tests.torture.history`.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from tests.torture.history import Said, read_body

Record = tuple[int, bytes | None, bytes | None]  # offset, key, value
Place = tuple[str, str]  # node, durable
PATIENCE = 3  # more attempts at reading, of half a minute each
TERMINAL = ("acknowledge", "discard", "dead-letter", "expired", "filtered", "evicted")


@dataclass(slots=True)
class Kept:
    """`events` by node and EID (None: written by nobody of ours), those of them that are deleted by now also in
    `trimmed`; `terminal` and `starts` by node and durable."""

    events: dict[str, dict[int, Said | None]] = field(default_factory=dict)
    trimmed: dict[str, set[int]] = field(default_factory=dict)
    starts: dict[Place, int] = field(default_factory=dict)
    terminal: dict[Place, set[int]] = field(default_factory=dict)
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

        def records(topic: str) -> Iterator[Record]:
            place = TopicPartition(topic, 0)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            while consumer.position(place) < end:
                for each in consumer.poll(timeout_ms=500, max_records=5000).get(place, []):
                    yield each.offset, each.key, each.value

        return _read(prefix, records)


def read_sqlite(directory: Path, prefix: str) -> Kept:
    connection = sqlite3.connect(f"file:{directory / 'realm.sqlite'}?mode=ro", uri=True)
    rows = "SELECT b.first, b.count, b.data FROM batches b JOIN partitions p ON p.id = b.partition WHERE p.topic = ?"

    def records(topic: str) -> Iterator[Record]:
        for first, count, blob in connection.execute(f"{rows} ORDER BY b.first", (topic,)).fetchall():
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
    nodes = _metadata(kept, records(f"{prefix}.realm"))
    _journal(kept, records(f"{prefix}.journal"))  # before the events: what it names is there by then
    for name, topic in nodes.items():
        kept.events[name] = {offset: read_body(value) for offset, _, value in records(topic) if value is not None}
    return kept


def _metadata(kept: Kept, records: Iterable[Record]) -> dict[str, str]:
    """Topics by node; the first record of a node or durable says what it is."""
    nodes: dict[str, str] = {}
    for _, key, value in records:
        if key is None or value is None:
            continue
        kind, *names = json.loads(key)
        said = json.loads(value)
        if kind == "node":
            nodes.setdefault(names[0], said["topic"])
        elif kind == "durable":
            kept.starts.setdefault((names[0], names[1]), said["start"])
    return nodes


def _journal(kept: Kept, records: Iterable[Record]) -> None:
    for _, _, value in records:
        if value is None:
            continue
        kept.journal_records += 1
        for entry in json.loads(value)["entries"]:
            if entry["operation"] in TERMINAL:
                ended = kept.terminal.setdefault((entry["node"], entry["durable"]), set())
                for first, last, *_ in entry["runs"]:
                    ended.update(range(first, last + 1))
