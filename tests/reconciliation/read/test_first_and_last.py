"""The first and the last record of each partition are found in its files as Spark finds them, with the same hashes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reconciliation.model.folder import LocalFolder
from reconciliation.model.row_hash import row_hash
from reconciliation.model.schemas import RECORD
from reconciliation.model.state import Seen
from reconciliation.read import first_and_last as module
from reconciliation.read.first_and_last import by_spark, first_and_last

Row = dict[str, Any]
TOPICS = {"outcomes": ["um.outcomes"], "events": ["um.node.1", "um.node.2", "um.node.11"]}


def records(rng: random.Random, kind: str) -> list[Row]:
    """In the order in which a cluster may write them; of one partition the file itself says the edges."""
    partitions = rng.choice([1, 3])
    offsets = rng.sample(range(1 << 40), 300)
    rows = [
        {
            "topic": rng.choice(TOPICS[kind]),
            "partition": rng.randrange(partitions),
            "offset": offset,
            "timestamp": rng.randint(-5, 1 << 44),
            "key": rng.choice([None, rng.randbytes(rng.randrange(90))]),
            "value": None if kind == "events" else rng.randbytes(rng.randrange(200)),
        }
        for offset in offsets
    ]
    return rows if rng.random() < 0.5 else sorted(rows, key=lambda row: (row["topic"], row["offset"]))


def write(folder: LocalFolder, rng: random.Random) -> dict[str, list[Row]]:
    written = {}
    for kind in TOPICS:
        (folder / f"kind={kind}").make()
        written[kind] = records(rng, kind)
        for part in range(2):
            file = (folder / f"kind={kind}").path / f"part-{part}.parquet"
            pq.write_table(pa.Table.from_pylist(written[kind][part::2], RECORD), file, row_group_size=40)
    return written


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_spark(tmp_path: Path, session: SparkSession, seed: int) -> None:
    folder = LocalFolder(tmp_path / "link=1")
    rows = [row for of_kind in write(folder, random.Random(seed)).values() for row in of_kind]
    seen = first_and_last(session, folder)
    assert seen == by_spark(session, folder, [folder / f"kind={kind}" for kind in TOPICS])
    for (topic, partition), edges in seen.items():
        offsets = [row["offset"] for row in rows if (row["topic"], row["partition"]) == (topic, partition)]
        assert (edges.first, edges.last) == (min(offsets), max(offsets))


def test_another_record_in_its_place_is_seen(tmp_path: Path, session: SparkSession) -> None:
    folder, rng = LocalFolder(tmp_path / "link=1"), random.Random(7)
    rows = write(folder, rng)["outcomes"]
    before = first_and_last(session, folder)
    last = max(rows, key=lambda row: (row["partition"] == 0, row["offset"]))
    last["value"] += b"."
    for part in range(2):
        file = (folder / "kind=outcomes").path / f"part-{part}.parquet"
        pq.write_table(pa.Table.from_pylist(rows[part::2], RECORD), file)
    after = first_and_last(session, folder)
    assert {place for place in before if before[place] != after[place]} == {("um.outcomes", 0)}
    assert before["um.outcomes", 0].first_mark == after["um.outcomes", 0].first_mark


@pytest.mark.parametrize("damage", ["cut", "of another shape", "gone within a page"])
def test_a_file_that_is_damaged_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    folder, of_spark = LocalFolder(tmp_path / "link=1"), {("um.outcomes", 0): Seen(1, 2, 3, 4)}
    write(folder, random.Random(5))
    file = (folder / "kind=outcomes").path / "part-1.parquet"
    octets = file.read_bytes()
    if damage == "cut":
        file.write_bytes(octets[:-9])
    elif damage == "of another shape":
        pq.write_table(pa.table({"offset": [1]}), file)
    else:
        file.write_bytes(octets[:4] + bytes(len(octets) // 2) + octets[4 + len(octets) // 2 :])
    monkeypatch.setattr(module, "by_spark", lambda *_: of_spark)
    session: Any = None
    assert first_and_last(session, folder) == of_spark


def test_without_records_there_are_none(tmp_path: Path, session: SparkSession) -> None:
    assert first_and_last(session, LocalFolder(tmp_path)) == {}


def test_hashes_are_those_of_spark(session: SparkSession) -> None:
    rng = random.Random(3)
    rows = [
        (
            rng.choice([None, rng.randint(-(1 << 63), (1 << 63) - 1)]),
            rng.choice([None, rng.randbytes(size)]),
            rng.randbytes(size),
        )
        for size in [*range(140), 10_000]
    ]
    frame = session.createDataFrame(rows, "timestamp bigint, key binary, value binary")
    wanted = [row[0] for row in frame.select(F.xxhash64("timestamp", "key", "value")).collect()]
    assert [row_hash(*row) for row in rows] == wanted
