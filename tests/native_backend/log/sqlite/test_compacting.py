"""A record that takes an older one away costs as much with many keys as with few."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from native_backend.log.port import TopicSpec
from native_backend.log.sqlite import schema
from native_backend.log.sqlite.commit import INSERT

FEW = 5
"""Steps that differ with the depth of a tree."""
EARLIER = schema.COMPACT.replace("+first", "first")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    schema.create(tmp_path)
    with closing(schema.connect(tmp_path)) as made:
        yield made


def steps(connection: sqlite3.Connection, first: int, key: bytes) -> int:
    """Of SQLite's machine, for one record with a key."""
    count = [0]

    def step() -> None:
        count[0] += 1

    connection.set_progress_handler(step, 1)
    connection.execute(INSERT, (1, first, 1, 0, key, b"value"))
    connection.set_progress_handler(None, 0)
    return count[0]


def filled(connection: sqlite3.Connection, keys: int) -> list[int]:
    """Steps of the first and of the last write."""
    connection.execute("INSERT INTO partitions (id, topic, number) VALUES (1, 'um.realm', 0)")
    connection.execute("BEGIN")
    counts = [steps(connection, number * 2, b"key-%d" % number) for number in range(keys)]
    connection.execute("COMMIT")
    return [counts[0], counts[-1]]


def test_a_write_does_not_look_at_other_keys(connection: sqlite3.Connection) -> None:
    first, last = filled(connection, 500)
    assert last <= first + FEW
    again = steps(connection, 2000, b"key-7")
    assert again < 3 * first, "one record is taken away"
    assert connection.execute("SELECT count(*) FROM batches").fetchone() == (500,)


def test_a_file_of_an_earlier_release_gets_it(connection: sqlite3.Connection, tmp_path: Path) -> None:
    connection.executescript(f"DROP TRIGGER compact; {EARLIER}")
    first, last = filled(connection, 100)
    assert last > first + 99, "it looked at each of them"
    schema.create(tmp_path)
    schema.create(tmp_path)
    steps(connection, 1000, b"key-new")  # the connection reads the schema again
    assert steps(connection, 1002, b"key-newer") <= first + FEW
    steps(connection, 1004, b"key-7")
    assert connection.execute("SELECT count(*) FROM batches").fetchone() == (102,)


def test_who_may_not_write_reads_it_as_it_is(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as log:
        log.control.create_topics([TopicSpec("um.realm", compacted=True)])
        log.control.put("um.realm", b"node", b"first")
    with closing(schema.connect(tmp_path)) as connection:
        connection.executescript(f"DROP TRIGGER compact; {EARLIER}")
        connection.execute("BEGIN IMMEDIATE")  # as a gateway of the earlier release that writes
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schema, "connect", partial(schema.connect, busy_s=0.0))
            schema.create(tmp_path)
        connection.execute("ROLLBACK")
    with closing(open_embedded(tmp_path)) as log:
        log.control.put("um.realm", b"node", b"second")
        assert log.control.bounds("um.realm", 0)[1] > 1
