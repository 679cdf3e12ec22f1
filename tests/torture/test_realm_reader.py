"""What a realm keeps is read by code of its own, and a message says who wrote it."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path
from random import Random

import pytest

from tests.torture.checks.realm_reader import Reading, SqliteLog
from tests.torture.history import Said, read_body, write_body


@pytest.mark.parametrize("size", [0, 28, 400])
def test_a_body_says_who_wrote_it(size: int) -> None:
    body = write_body(Said(3, 1 << 40, 7, 9), size)
    assert len(body) >= size
    assert read_body(b"\x00\x53\x75\xa0" + body) == Said(3, 1 << 40, 7, 9)
    at = Random(1).randrange(len(body) - 28, len(body))
    assert read_body(body[:at] + bytes((body[at] ^ 1,)) + body[at + 1 :]) is None
    assert read_body(b"short") is None


def test_what_a_realm_keeps_is_read_without_its_code(tmp_path: Path) -> None:
    """The file as docs/records.md says, made by hand."""
    topic_id = bytes(range(16)).hex()
    first, second = 52_608_436_976, 910_189_469_406
    connection = sqlite3.connect(tmp_path / "realm.sqlite")
    connection.executescript("""
      CREATE TABLE partitions (id INTEGER PRIMARY KEY, topic TEXT, number INTEGER, first INTEGER DEFAULT 0);
      CREATE TABLE batches (partition INTEGER, first INTEGER, count INTEGER, data BLOB);
      INSERT INTO partitions (id, topic, number) VALUES
        (1, 'um.realm', 0), (2, 'um.journal', 0), (3, 'um.node.q', 0), (4, 'um.node.q', 1);
    """)
    entry = b'{"node":"q","store":%d,"durable":"queue","operation":"%s","runs":[%s]}'
    journal = b'{"entries":[%s,%s,%s]}' % (
        entry % (first, b"acknowledge", b"[4,5,1,4]"),
        entry % (first, b"return", b"[6,6,3,6]"),
        entry % (second, b"discard", b"[2,2,9,2]"),
    )
    node = b'{"topic":"um.node.q","topic_id":"%s","store":%d,"properties":{"partitions":2}}' % (
        topic_id.encode(),
        first,
    )
    body = write_body(Said(1, 2, 3, 4), 0)
    topics: list[tuple[int, int, list[tuple[bytes, bytes | None]]]] = [
        (1, 0, [(b'["durable","q","queue"]', b'{"start":4,"starts":[2]}'), (b'["node","q"]', node)]),
        (2, 0, [(b"r", journal)]),
        (3, 4, [(b"k", body), (b"k", b"by another"), (b"k", None), (b"k", body)]),
        (4, 2, [(b"k", body), (b"k", body)]),
    ]
    for partition, offset, records in topics:
        connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", (partition, offset, len(records), _blob(records)))
    connection.commit()
    reading = Reading("um")
    kept = reading.take(SqliteLog(tmp_path))
    content, stores = Said(1, 2, 3, 4), [("q", first), ("q", second)]
    assert kept.events == {stores[0]: {4: content, 5: None, 7: content}, stores[1]: {2: content, 3: content}}
    assert kept.partitions == {stores[0]: 0, stores[1]: 1}
    assert kept.starts == {(stores[0], "queue"): 4, (stores[1], "queue"): 2}
    assert kept.terminal == {(stores[0], "queue"): {4, 5}, (stores[1], "queue"): {2}}
    assert kept.left() == {(stores[0], "queue"): [7], (stores[1], "queue"): [3]}

    connection.execute("INSERT INTO batches VALUES (3, 9, 1, ?)", (_blob([(b"k", body)]),))
    connection.execute("UPDATE partitions SET first = 6 WHERE id = 3")
    connection.execute("DELETE FROM batches WHERE partition = 3 AND first = 4")
    connection.commit()
    later = reading.take(SqliteLog(tmp_path))
    assert later.events[stores[0]] == {4: content, 5: None, 7: content, 9: content}, "what is deleted by now is known"
    assert later.trimmed == {stores[0]: {4, 5}, stores[1]: set()}
    assert kept.events[stores[0]].keys() == {4, 5, 7}, "an earlier look stays as it was"
    assert not reading.was_outrun
    connection.execute("UPDATE partitions SET first = 12 WHERE id = 3")
    connection.commit()
    connection.close()
    reading.take(SqliteLog(tmp_path))
    assert reading.was_outrun


def _blob(records: list[tuple[bytes, bytes | None]]) -> bytes:
    columns = [key for key, _ in records] + [value for _, value in records]
    lengths = [0xFFFFFFFF if item is None else len(item) for item in columns]
    return struct.pack(f"<{len(lengths)}I", *lengths) + b"".join(item for item in columns if item is not None)
