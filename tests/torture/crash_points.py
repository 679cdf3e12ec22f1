"""A gateway that can be told to die at a named place: `python -m tests.torture.crash_points serve --config FILE`.

The gateway's own code knows nothing of it: before it starts, one function at each place is replaced by one that looks
whether the file named by `TORTURE_CRASH` holds the place's name, and if so ends the process with SIGKILL. `before`:
when the function is called; `after`: when it has returned.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gateway.cli.main import main
from native_backend.dispatch.context import RealmContext
from native_backend.shard.shard import Shard

MARK = "TORTURE_CRASH"
SNAPSHOT_RECORDS = 12  # journal records between two rounds of snapshots, so that a short run has many
TRIM_INTERVAL_S = 0.5
Realm = Literal["embedded", "kafka", "both"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place between two things that should both happen."""

    name: str
    module: str
    function: str  # CLASS.METHOD, or FUNCTION
    when: Literal["before", "after"]
    realm: Realm = "both"
    is_start: bool = False  # reached while a gateway starts and its peers come back, not later

    @property
    def owner(self) -> tuple[Any, str]:
        """Where the function is found."""
        owner: Any = importlib.import_module(self.module)
        *path, name = self.function.split(".")
        for step in path:
            owner = getattr(owner, step)
        return owner, name


POINTS = (
    Point("transfer, append", "native_backend.publish.publisher", "Publisher.publish", "before"),
    Point("append, stored", "native_backend.publish.publisher", "Publisher.publish", "after"),
    Point("stored, accept", "native_backend.publish.publisher", "Publisher.completed", "before"),
    Point("accept, evidence", "gateway.evidence.outcomes", "Outcomes.flush", "before"),
    Point("evidence, socket", "gateway.evidence.outcomes", "Outcomes.flush", "after"),
    Point("settle, journal", "native_backend.journal.journal", "Journal.add", "before"),
    Point("journal begun", "native_backend.journal.journal", "Journal._transact", "after"),
    Point("journal, settle", "native_backend.journal.journal", "Journal._stored", "before"),
    Point("settled, told", "native_backend.journal.journal", "Journal._stored", "after"),
    Point("snapshot taken, put", "native_backend.shard.snapshot_writer", "SnapshotWriter._batch", "after"),
    Point("snapshot put, told", "native_backend.shard.snapshot_writer", "SnapshotWriter._written", "before"),
    Point("discharge, unit", "gateway.transactions.transaction", "Transaction.commit", "before"),
    Point("unit, answer", "gateway.transactions.coordinator", "CoordinatorLink._done", "before"),
    Point("answer, told", "gateway.transactions.transaction", "Transaction.conclude", "before"),
    Point("rolled back, given back", "gateway.transactions.transaction", "Transaction.roll_back", "before"),
    Point("trim noted, trimmed", "native_backend.shard.queue_trimmer", "QueueTrimmer._noted", "before"),
    Point("trimmed, next", "native_backend.log.kafka.admin", "AdminCalls.trim", "after", "kafka"),
    Point("trimmed, next", "native_backend.log.sqlite.control", "SqliteControl.trim", "after", "embedded"),
    Point("old evidence, trimmed", "native_backend.shard.evidence_trimmer", "trim", "before"),
    Point("old evidence trimmed, next", "native_backend.shard.evidence_trimmer", "trim", "after"),
    Point("put, next", "native_backend.log.kafka.control", "KafkaControl.put", "after", "kafka", is_start=True),
    Point("put, next", "native_backend.log.sqlite.control", "SqliteControl.put", "after", "embedded", is_start=True),
    Point("projection, next", "native_backend.shard.group_offset_writer", "GroupOffsetWriter.commit", "after"),
    Point("taken, sent", "native_backend.dispatch.dispatcher", "Dispatcher.take", "after"),
    Point("returned, given", "native_backend.dispatch.next_events", "EventPicker.take_returned", "after"),
    Point("records, commit", "native_backend.log.kafka.transactions", "Transactions._commit", "before", "kafka"),
    Point("commit, answer", "native_backend.log.kafka.transactions", "Transactions._commit", "after", "kafka"),
    Point("rows, commit", "native_backend.log.sqlite.commit", "Committer._store", "after", "embedded"),
    Point("commit, completion", "native_backend.log.sqlite.commit", "Committer.commit", "after", "embedded"),
    Point("claim, first record", "native_backend.journal.journal", "Journal.begin", "before", is_start=True),
    Point("first record, recovery", "native_backend.journal.journal", "Journal.begin", "after", is_start=True),
    Point("recovered, ready", "native_backend.shard.shard", "Shard.claim", "after", is_start=True),
    Point("snapshot, given", "native_backend.shard.shard", "Shard._found", "before", is_start=True),
)


def arm(mark: Path) -> None:
    """Replace the function at every place; and let snapshots and trims come often."""
    init = Shard.__init__

    def often(self: Shard, context: RealmContext) -> None:
        object.__setattr__(context.limits, "snapshot_records", SNAPSHOT_RECORDS)
        object.__setattr__(context.limits, "trim_interval_s", TRIM_INTERVAL_S)
        init(self, context)

    Shard.__init__ = often  # type: ignore[method-assign]
    for point in POINTS:
        owner, name = point.owner
        setattr(owner, name, _deadly(point, getattr(owner, name), mark))


def _deadly(point: Point, original: Callable[..., Any], mark: Path) -> Callable[..., Any]:
    def look() -> None:
        try:
            is_wanted = mark.read_text() == point.name
        except FileNotFoundError:
            return
        if is_wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if point.when == "before":
            look()
        result = original(*arguments, **named)
        if point.when == "after":
            look()
        return result

    return wrapped


if __name__ == "__main__":
    arm(Path(os.environ[MARK]))
    sys.exit(main())
