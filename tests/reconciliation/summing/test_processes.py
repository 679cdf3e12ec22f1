"""The processes that make sums together: one of them may be killed, by a machine that has no memory left."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciliation.summing import link

TOPIC = "um.node.orders"
COUNTED = pa.schema([("topic", pa.string()), ("run", pa.string()), ("count", pa.int64())])
FILES = 2 * link.PROCESSES_MAX + 2


@pytest.fixture
def events(tmp_path: Path) -> Path:
    for file in range(FILES):
        keys = [b"1;none;run;%d" % seq for seq in (2 * file, 2 * file + 1)]
        columns = {"topic": [TOPIC] * 2, "partition": [0] * 2, "offset": [2 * file, 2 * file + 1], "key": keys}
        types = pa.schema(
            [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("key", pa.binary())]
        )
        pq.write_table(pa.table(columns, types), tmp_path / f"part-{file}.parquet")
    return tmp_path


def _summed(events: Path) -> dict[str, list[dict[str, object]]] | None:
    tables = link.of_link({"events": events}, {(TOPIC, 0): 0}, "um", COUNTED)
    return None if tables is None else {name: table.to_pylist() for name, table in tables}


def _kill_one(is_over: threading.Event, killed: list[int]) -> None:
    while not (children := multiprocessing.active_children()) and not is_over.wait(0.01):
        pass
    for child in children[:1]:
        os.kill(child.pid or 0, signal.SIGKILL)
        killed.append(child.pid or 0)


def test_events_in_several_processes_are_summed(events: Path) -> None:
    summed = _summed(events)
    assert summed is not None
    assert summed["events"][0]["count"] == 2 * FILES


def test_sums_of_which_a_process_is_killed_are_left_to_spark(events: Path) -> None:
    is_over, killed = threading.Event(), list[int]()
    killing = threading.Thread(target=_kill_one, args=(is_over, killed))
    killing.start()
    summed = _summed(events)
    is_over.set()
    killing.join()
    assert len(killed) == 1
    assert summed is None
    assert not multiprocessing.active_children(), "the others have ended, too"
