"""Findings are counted as they are read: their number costs no memory, and their order does not matter."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciliation.model.folder import LocalFolder
from reconciliation.model.schemas import FINDING
from reconciliation.model.window import Window
from reconciliation.report import report
from reconciliation.report.findings import EXAMPLES, ClassReport
from tests.reconciliation.history.runs import AT_US, row

MANY = 200_000


def write(directory: Path, code: str, name: str, table: pa.Table) -> None:
    folder = directory / f"class={code}"
    folder.mkdir(exist_ok=True)
    pq.write_table(table.drop_columns("class"), folder / name)


def test_the_first_examples_are_those_of_the_first_times(tmp_path: Path) -> None:
    """From two files, the rows of each in any order; what has no time is first."""
    rows = [row(eid=eid, at=AT_US + eid // 2) for eid in range(60)] + [row(eid=None, at=None, detail="a topic is gone")]
    random.Random(7).shuffle(rows)
    for at in range(2):
        write(tmp_path, "P1", f"part-{at}.parquet", pa.Table.from_pylist(rows[at::2], schema=FINDING))
    [lost] = report.condense(LocalFolder(tmp_path), Window()).classes
    assert (lost.count, lost.first_eid, lost.last_eid) == (61, 0, 59)
    assert [example["eid"] for example in lost.examples] == [None, *range(EXAMPLES - 1)]


def test_the_rows_are_read_a_batch_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thousand = pa.Table.from_pylist([row(detail="the same text in each of very many rows")] * 1_000, schema=FINDING)
    table = pa.concat_tables([thousand] * (MANY // 1_000)).combine_chunks()
    write(tmp_path, "P1", "part-0.parquet", table)
    size, before, most = table.nbytes, pa.total_allocated_bytes(), 0
    counted = ClassReport.add

    def looked_at(seen: ClassReport, found_row: dict[str, object]) -> None:
        nonlocal most
        most = max(most, pa.total_allocated_bytes() - before)
        counted(seen, found_row)

    monkeypatch.setattr(ClassReport, "add", looked_at)
    [lost] = report.condense(LocalFolder(tmp_path), Window()).classes
    assert lost.count == MANY
    assert 0 < most < size / 2, (most, size)
