"""The sums that this machine makes by columns are those that Spark makes of the same records, number by number."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reconciliation.jobs import kept_sums
from reconciliation.model import schemas
from reconciliation.model.folder import LocalFolder
from reconciliation.model.state import CHAINED
from reconciliation.read import landing
from reconciliation.summing import journal, link
from reconciliation.summing.hashing import hashed
from reconciliation.transforms import frames, sums
from tests.reconciliation import odd_realm
from tests.reconciliation.cut_world import cut_world
from tests.reconciliation.random_history import History
from tests.reconciliation.realms import made
from tests.reconciliation.world import World

Row = dict[str, Any]
Fill = Callable[[World], object]
Records = dict[str, pa.Table]


def _at_random(seed: int) -> Fill:
    return lambda world: History(world, random.Random(seed), faults=3, shortens=False).fill(40)


FILLS: dict[str, Fill] = {"odd": odd_realm.fill, **{f"seed-{seed}": _at_random(seed) for seed in range(3)}}


@pytest.fixture
def landed(request: pytest.FixtureRequest, tmp_path: Path, session: SparkSession) -> Callable[[Fill], Records]:
    """The records of a world, by kind."""

    def land(fill: Fill) -> Records:
        place = made("embedded", request, tmp_path / "realm")
        with cut_world(place.realm, lambda: None) as world:
            fill(world)
        extent = landing.extent_of(place.realm)
        landed = landing.land(place.realm, extent, session, LocalFolder(tmp_path / "landed"))
        folders = {kind: landed.files(kind) for kind in CHAINED}
        return {
            kind: pq.read_table(folder.path, partitioning=None)
            for kind, folder in folders.items()
            if isinstance(folder, LocalFolder)
        }

    return land


def _prefix(records: Records) -> str:
    return str(records["outcomes"]["topic"][0]).removesuffix(".outcomes")


def by_columns(records: Records, directory: Path, first: int = 0, rows: int = 1000) -> list[Row] | None:
    """None: they are not plain. `first`: from where on records count; `rows`: in a row group."""
    folders, counts = dict[str, Path](), dict[tuple[str, int], int]()
    for kind, table in records.items():
        folders[kind] = directory / f"kind={kind}"
        folders[kind].mkdir(parents=True)
        pq.write_table(table, folders[kind] / "part-0.parquet", row_group_size=rows)
        counts |= {(row["topic"], row["partition"]): first for row in table.select(["topic", "partition"]).to_pylist()}
    tables = link.of_link(folders, counts, _prefix(records), kept_sums.types())
    return None if tables is None else [{"sum": name, **row} for name, table in tables for row in table.to_pylist()]


def by_spark(records: Records, session: SparkSession, first: int = 0) -> list[Row]:
    def of_kind(kind: str) -> Any:
        rows = [tuple(row.values()) for row in records[kind].to_pylist() if row["offset"] >= first]
        return session.createDataFrame(rows, schemas.RECORD_DDL)

    decoded = frames.decoded(of_kind)
    summed = sums.of_link(decoded.outcomes, decoded.journal, decoded.events, _prefix(records)).collect()
    session.catalog.clearCache()
    return [row.asDict(recursive=True) for row in summed]


def same(left: list[Row], right: list[Row]) -> None:
    """Digests are a set."""

    def ordered(rows: list[Row]) -> list[str]:
        return sorted(repr({**row, "digests": sorted(row["digests"] or ())}) for row in rows)

    assert ordered(left) == ordered(right)


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_both_make_the_same_sums(
    landed: Callable[[Fill], Records], fill: Fill, tmp_path: Path, session: SparkSession
) -> None:
    records = landed(fill)
    summed = by_columns(records, tmp_path / "whole")
    assert summed is not None
    same(summed, by_spark(records, session))
    part = by_columns(records, tmp_path / "part", first=5)
    assert part is not None
    same(part, by_spark(records, session, first=5))


def test_several_processes_make_the_same_sums(
    landed: Callable[[Fill], Records], tmp_path: Path, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second half of the records comes first."""
    records, pools = landed(_at_random(3)), list[int]()

    def pool(processes: int, *more: Any, **others: Any) -> ProcessPoolExecutor:
        pools.append(processes)
        return ProcessPoolExecutor(processes, *more, **others)

    monkeypatch.setattr(link, "ALONE", 1)
    monkeypatch.setattr(link, "ProcessPoolExecutor", pool)
    halves = {kind: len(table) // 2 for kind, table in records.items()}
    turned = {
        kind: pa.concat_tables([table.slice(halves[kind]), table.slice(0, halves[kind])])
        for kind, table in records.items()
    }
    summed = by_columns(turned, tmp_path / "pieces", rows=max(halves["outcomes"] // 2, 1))
    assert summed is not None and pools == [link.PROCESSES_MAX]
    same(summed, by_spark(records, session))


def test_the_partitions_of_a_topic_have_sums_of_their_own(
    landed: Callable[[Fill], Records], tmp_path: Path, session: SparkSession
) -> None:
    records = landed(odd_realm.fill)
    rows = records["events"].to_pylist()
    rows += [{**row, "partition": 7, "offset": row["offset"] + 4000} for row in rows[::2]]
    divided = {**records, "events": pa.Table.from_pylist(rows, schemas.RECORD)}
    summed = by_columns(divided, tmp_path / "divided")
    assert summed is not None and {0, 7} == {row["partition"] for row in summed}
    same(summed, by_spark(divided, session))


def test_a_damaged_file_is_left_to_spark(tmp_path: Path) -> None:
    folder = tmp_path / "kind=outcomes"
    folder.mkdir()
    (folder / "part-0.parquet").write_bytes(b"PAR1 torn")
    assert link.of_link({"outcomes": folder}, {("um.outcomes", 0): 0}, "um", pa.schema([])) is None


def _with(**values: object) -> Callable[[bytes], bytes]:
    return lambda value: json.dumps({**json.loads(value), **values}).encode()


def _with_each(listed: str, **values: object) -> Callable[[bytes], bytes]:
    """All that the record lists by that name."""

    def change(value: bytes) -> bytes:
        record = json.loads(value)
        record[listed] = [{**part, **values} for part in record[listed]]
        return json.dumps(record).encode()

    return change


_with_group, _with_entry = partial(_with_each, "groups"), partial(_with_each, "entries")


NO_SEQS: Row = {"seq": [], "eid": []}
Odd = dict[str, Callable[[bytes], bytes]]
ODD_OUTCOMES: Odd = {
    "torn": lambda value: value[:-7],
    "empty": lambda value: b"",
    "no mapping": lambda value: b"[1]",
    "followed by more": lambda value: value + b" x",
    "run is a number": _with(run=7),
    "number is a text": _with(n="7"),
    "number is true": _with(n=True),
    "number is a fraction": _with(n=7.5),
    "number is too large": _with(n=1 << 63),
    "no time": _with(at=None),
    "no digest": _with(digest=None),
    "another field": _with(more={"true": [True]}),
    "a deep field": _with(more=json.loads("[" * 600 + "]" * 600)),
    "a large field": _with(more=[[number] for number in range(600)]),
    "one time": _with(at=1_900_000_000_000_000),
    "a group twice": lambda value: _with(groups=json.loads(value)["groups"] * 2)(value),
    "an older release": _with(next=None, closed=None),
    "cell is too large": _with_group(cell=1 << 31),
    "store is a fraction": _with_group(store=1.0),
    "node is true": _with_group(node=True),
    "node is a list": _with_group(node=["orders"]),
    "name is a mapping": _with_group(name={"a": 1}),
    "node is called true": _with_group(node="true \u00e9 \U0001f600"),
    "no node, store or link": _with_group(node=None, store=None, link=None, durable="d"),
    "more seqs than eids": _with_group(seq=[1, 2, 3], eid=[1]),
    "seqs that fall": _with_group(direction="publish", answer="stored", seq=[9, 7, 8], eid=[3, 1, 2]),
    "eids that fall": _with_group(direction="publish", answer="stored", seq=[7, 8, 9], eid=[3, 1, 2]),
    "a seq is a text": _with_group(seq=["1"], eid=[1]),
    "no eid": _with_group(seq=[1], eid=[None]),
    "no seqs": _with_group(seq=[], eid=[]),
    "no seqs, then some": lambda value: _with(
        groups=[{**group, **more} for group in json.loads(value)["groups"] for more in (NO_SEQS, {})]
    )(value),
    "half a surrogate": _with(digest="\ud800"),
    "a number twice": lambda value: value.replace(b'"n"', b'"n": 5, "n"', 1),
}
ODD_JOURNAL: Odd = {
    "torn": lambda value: value[:-7],
    "no entries": _with(entries=None),
    "a short range": _with_entry(runs=[[1, 2]]),
    "a range that falls": _with_entry(runs=[[5, 2, 7, 5]]),
    "a range of texts": _with_entry(runs=[["1", "2", "3", "4"]]),
    "for no delivery": _with_entry(runs=[[1, 5000, 0, 1]]),
    "kept elsewhere": _with_entry(operation="move", to=77, runs=[[1, 9, 0, 1]]),
    "an unknown operation": _with_entry(operation="weighed"),
    "operation is a list": _with_entry(operation=["move"]),
    "no operation": _with_entry(operation=None),
    "failed is a text": _with_entry(failed="1"),
    "returned": _with_entry(operation="return", failed=1, runs=[[4000, 4200, 17, 4000]]),
    "returned for no delivery": _with_entry(operation="return", runs=[[4000, 9000, 0, 4000]]),
    "behind a gap": _with_entry(runs=[[4100, 4110, 17, 4000], [8192, 8192, 4, 8191], [7, 7, 5, 9], [8, 8, 0, None]]),
    "returned behind a gap": _with_entry(operation="return", runs=[[4100, 4110, 17, 4000]]),
    "given up": _with_entry(operation="dead-letter", runs=[[4090, 4110, 17, 4090]]),
    "given up and kept": _with_entry(operation="dead-letter", to=77, runs=[[4090, 4110, 17]]),
}
PLAIN = {
    "a number twice", "a large field", "one time", "a group twice", "an older release", "node is called true",
    "no node, store or link", "seqs that fall", "eids that fall", "no seqs", "no seqs, then some", "for no delivery",
    "kept elsewhere", "an unknown operation", "returned", "returned for no delivery", "behind a gap",
    "returned behind a gap", "given up", "given up and kept",
}  # fmt: skip
"""What columns sum all the same."""
ODD_KEYS = [
    None, b"", b"stranger", b"1;basic;0-0000;5", b"1;basic;0-0000;5;", b"1;basic;0-0000;5x;",
    b"1;basic;0-0000;\xd9\xa1;", b"1;Basic;0-0000;5;", b"1;basic;0-00001;5;", b"2;7;8;", b"2;7;8", b"2;7;8;1;2",
    b"2;7777777777777;8;", b"2;x;8;", b"1;basic;0-0000;" + b"9" * 19, b"3;basic;0-0000;" + b"9" * 18,
    *(f"1;basic;0-0000;5{end}".encode() for end in ("\n", "\r", "\u0085", "\u2028")), b"3;basic;0-0000;5;1;2\n",
]  # fmt: skip
NO_TEXT = b"\xff;a;b;1"


def _changed(records: Records, kind: str, column: str, changes: Iterable[Callable[[Any], Any]]) -> Records:
    """Those records that say something, once for each change; it is made in every second of them."""
    rows, there = [], [row for row in records[kind].to_pylist() if kind == "events" or b"store" in row["value"]]
    for number, change in enumerate(changes):
        for place, row in enumerate(there):
            value = row[column] if place % 2 else change(row[column])
            rows.append({**row, "offset": row["offset"] + 100 * number, column: value})
    return {**records, kind: pa.Table.from_pylist(rows, schemas.RECORD)}


def _of_link(number: int, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Deliveries of a link of its own."""
    return lambda value: change(_with_group(link=number)(value))


def _instead(key: bytes | None, _: object) -> bytes | None:
    return key


@pytest.mark.parametrize(("kind", "odd"), [("outcomes", ODD_OUTCOMES), ("journal", ODD_JOURNAL)])
def test_records_of_another_shape_are_left_to_spark_or_summed_as_it_does(
    kind: str, odd: Odd, landed: Callable[[Fill], Records], tmp_path: Path, session: SparkSession
) -> None:
    records = landed(odd_realm.fill)
    if kind == "outcomes":
        odd = {name: _of_link(number, change) for number, (name, change) in enumerate(odd.items(), 100)}
    plain = [
        name
        for name, change in odd.items()
        if by_columns(_changed(records, kind, "value", [change]), tmp_path / name) is not None
    ]
    assert plain == [name for name in odd if name in PLAIN]
    together = _changed(records, kind, "value", [odd[name] for name in plain])
    summed = by_columns(together, tmp_path / "together")
    assert summed is not None
    same(summed, by_spark(together, session))
    left = _changed(records, kind, "value", [odd[name] for name in odd if name not in PLAIN])
    assert by_spark(left, session), "none of these ends a reconciliation"


def test_keys_of_another_shape_are_left_to_spark_or_summed_as_it_does(
    landed: Callable[[Fill], Records], tmp_path: Path, session: SparkSession
) -> None:
    records = landed(odd_realm.fill)

    def of_keys(*keys: bytes | None) -> Records:
        return _changed(records, "events", "key", [partial(_instead, key) for key in keys])

    assert by_columns(of_keys(NO_TEXT), tmp_path / "left") is None
    together = of_keys(*ODD_KEYS)
    summed = by_columns(together, tmp_path / "together")
    assert summed is not None
    same(summed, by_spark(together, session))


def test_ends_are_unfolded_some_at_a_time_and_a_range_that_is_too_long_is_left_to_spark(
    landed: Callable[[Fill], Records], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = landed(odd_realm.fill)
    at_once = by_columns(records, tmp_path / "at-once")
    monkeypatch.setattr(journal, "EIDS_MAX", 3)
    summed = by_columns(records, tmp_path / "some")
    assert at_once is not None and summed is not None
    same(summed, at_once)
    monkeypatch.setattr(journal, "EIDS_MAX", 0)
    assert by_columns(records, tmp_path / "long") is None


def test_hashes_are_those_of_spark(session: SparkSession) -> None:
    rng = random.Random(5)
    rows = [(rng.randint(-(1 << 63), (1 << 63) - 1), rng.choice([None, rng.randint(-9, 1 << 40)])) for _ in range(200)]
    frame = session.createDataFrame(rows, "first bigint, second bigint")
    wanted = frame.select(F.xxhash64("first").alias("one"), F.xxhash64("first", "second").alias("both")).collect()
    table = pa.table({"first": [row[0] for row in rows], "second": [row[1] or 0 for row in rows]})
    known = pa.array([row[1] is not None for row in rows]).to_numpy(zero_copy_only=False)
    first, second = table["first"].to_numpy(), table["second"].to_numpy()
    assert hashed(first).tolist() == [row["one"] for row in wanted]
    assert hashed(first, second, known).tolist() == [row["both"] for row in wanted]
