"""The file `realm.sqlite`: its tables, and how to open a connection to it.

A row of `batches` is a run of records with dense offsets (`columns.py`); between rows offsets are skipped, as Kafka's
commit markers do. A compacted topic has one record a row, and its key beside it, so that the next record of the key
takes the older one away. `partitions.next` is the end of a partition; the trigger keeps it true in the statement
that stores. `claims` says who may transact for a shard; format 1 had none, formats 1 and 2 no headers (`columns.py`).
Times are milliseconds since 1970.
Errors: `sqlite3.Error`, and `LogError` for a file that is not ours.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from native_backend.log.port import FORMAT, Failure, LogError

FILE = "realm.sqlite"
VERSION = 3
CACHE_KIB = 8192
CHECKPOINT_PAGES = 4096  # 16 MiB of write-ahead log between two checkpoints
BUSY_STEP_S = 0.001

COMPACT = """
CREATE TRIGGER IF NOT EXISTS compact AFTER INSERT ON batches WHEN new.key IS NOT NULL BEGIN
  DELETE FROM batches WHERE partition = new.partition AND key = new.key AND +first < new.first;
END;
"""
"""The plus: without it SQLite looks for older records through all of the partition, not by their key."""
TABLES = """
CREATE TABLE IF NOT EXISTS topics (
  name TEXT PRIMARY KEY, id BLOB NOT NULL, partitions INTEGER NOT NULL, compacted INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS partitions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, number INTEGER NOT NULL,
  first INTEGER NOT NULL DEFAULT 0, next INTEGER NOT NULL DEFAULT 0, UNIQUE (topic, number));
CREATE TABLE IF NOT EXISTS batches (
  partition INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  key BLOB, data BLOB NOT NULL, PRIMARY KEY (partition, first));
CREATE INDEX IF NOT EXISTS newest ON batches (partition, key) WHERE key IS NOT NULL;
CREATE TABLE IF NOT EXISTS positions (
  "group" TEXT, topic TEXT, partition INTEGER, position INTEGER NOT NULL, metadata TEXT NOT NULL,
  PRIMARY KEY ("group", topic, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (shard TEXT PRIMARY KEY, holder BLOB NOT NULL) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS advance AFTER INSERT ON batches BEGIN
  UPDATE partitions SET next = new.first + new.count + 1 WHERE id = new.partition;
END;
"""


def connect(directory: Path, busy_s: float = 10.0) -> sqlite3.Connection:
    """A connection for one thread at a time, outside any transaction."""
    connection = sqlite3.connect(directory / FILE, timeout=busy_s, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection


def create(directory: Path) -> None:
    """Make the file and its tables when they are not there; several processes may do so at once."""
    _make_private(directory)
    connection = connect(directory)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            detail = f"{directory / FILE} has format {version}; this release knows up to {VERSION}"
            raise LogError(Failure("unexpected", detail, FORMAT))
        if version < VERSION:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {COMPACT} PRAGMA user_version = {VERSION}; COMMIT;")
        _compact_by_key(connection)
    finally:
        connection.close()


def _compact_by_key(connection: sqlite3.Connection) -> None:
    """A file of an earlier release gets the trigger of this one. Who may not write leaves it to the next that may."""
    (text,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'compact'").fetchone()
    if "+first" not in text:
        with suppress(sqlite3.OperationalError):
            connection.executescript(f"BEGIN IMMEDIATE; DROP TRIGGER compact; {COMPACT} COMMIT;")


def _make_private(directory: Path) -> None:
    """The directory and an empty file in it, for their owner alone, whatever the umask; SQLite gives the files beside
    it the same mode. What is there already keeps its mode. A name is stored (fsync of the directory that has it)
    before anything is put behind it."""
    for above in (*reversed(directory.parents), directory):
        with suppress(FileExistsError):
            if not above.exists():
                above.mkdir(0o700 if above == directory else 0o777)
                if above == directory:  # a umask may have taken the owner's own rights
                    above.chmod(0o700)
                _sync(above.parent)
    with suppress(FileExistsError):
        made = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.fchmod(made, 0o600)
        os.close(made)
        _sync(directory)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def begin(connection: sqlite3.Connection, deadline: float) -> None:
    """Take the write lock, asking every millisecond until `deadline` (monotonic seconds).

    SQLite's own busy handler sleeps up to 100 ms between two tries and so loses against a busy writer.
    """
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(BUSY_STEP_S)
