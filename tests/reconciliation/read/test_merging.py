"""Links become one when there are many, and what counts of them stays what it was."""

from __future__ import annotations

import random
from functools import reduce
from pathlib import Path

import pytest
from pyarrow import dataset
from pyspark.sql import DataFrame, SparkSession

from native_backend.log.open import open_embedded
from reconciliation.model.ranges import Range
from reconciliation.model.settings import Realm
from reconciliation.model.state import CHAINED, Link
from reconciliation.read import export, merging
from reconciliation.read.links import files_of
from reconciliation.transforms.frames import landed_records
from tests.reconciliation import odd_realm
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.cut_world import cut_world
from tests.reconciliation.days import Days, said


def links(*merges: int, records: int = 10) -> list[Link]:
    return [
        Link(str(at), (Range("um.outcomes", 0, at * records, (at + 1) * records),), count)
        for at, count in enumerate(merges)
    ]


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ((), ""),
        ((0, 0), ""),
        ((0, 0, 0), "012"),
        ((1, 0, 0, 0), "123"),
        ((1, 1, 0, 0), ""),
        ((1, 1, 0, 0, 0), "01234"),
        ((2, 2, 1, 1, 0, 0, 0), "0123456"),
        ((2, 1, 1, 0, 0, 0), "12345"),
        ((0, 0, 0, 0), "123"),
    ],
)
def test_the_newest_that_were_merged_equally_often_are_due(there: tuple[int, ...], chosen: str) -> None:
    assert "".join(link.name for link in merging.due(links(*there), 3)) == chosen


def test_what_would_be_too_large_is_not_due() -> None:
    at_most = merging.RECORDS_MAX // 3
    assert len(merging.due(links(0, 0, 0, records=at_most), 3)) == 3
    assert not merging.due(links(0, 0, 0, records=at_most + 1), 3)
    large = [*links(1, 1, records=at_most), *links(0, 0, 0)]
    assert [link.merges for link in merging.due(large, 3)] == [1, 1, 0, 0, 0]
    larger = [*links(1, 1, records=2 * at_most), *links(0, 0, 0)]
    assert [link.merges for link in merging.due(larger, 3)] == [0, 0, 0]


def test_each_record_counts_once_and_as_far_as_it_is_there(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each landing begins with the last record of the one before, which counts there already."""
    monkeypatch.setattr(merging, "LEAST", 2)
    days = Days(tmp_path, None, session)
    for day in range(6):
        days.add(1)
        if day == 3:
            days.trim(days.topic, 5)
        landed = days.landed()
        landed.keep()
    chain = landed.landed.chain
    assert chain is not None
    assert [link.merges for link in chain.links] == [2, 0, 0]
    assert days.links() == {link.name for link in chain.links}, "what became one is removed"
    assert [link.files for link in chain.links] == [files_of(chain.folder, link.name) for link in chain.links]
    records = [landed_records(session, landed.landed, kind).select("topic", "offset") for kind in CHAINED]
    counting = reduce(DataFrame.unionAll, records).collect()
    export.export(days.directory / "realm", "um", days.directory / "whole", CHAINED)
    whole = dataset.dataset(days.directory / "whole").to_table(["topic", "offset"]).to_pylist()
    assert sorted(tuple(row) for row in counting) == sorted((row["topic"], row["offset"]) for row in whole)


@pytest.mark.timeout(900)  # of seven reconciliations
def test_a_chain_that_was_merged_is_judged_as_the_whole_realm(
    tmp_path: Path, reconcile: Reconcile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "LEAST", 2)
    realm, state = Realm("embedded", "um", path=tmp_path / "realm"), tmp_path / "state"
    open_embedded(tmp_path / "twin").close()
    with cut_world(Realm("embedded", "um", path=tmp_path / "twin"), lambda: None) as world:
        odd_realm.fill(world)
        chosen = random.Random("merging").sample(range(2, world.writes), 5)
    open_embedded(tmp_path / "realm").close()
    with cut_world(realm, lambda: reconcile(realm, state=state), chosen) as world:
        odd_realm.fill(world)
    continued = reconcile(realm, state=state)
    assert len(list((state / "links").iterdir())) <= 3
    assert said(continued) == said(reconcile(realm)), f"cut behind the writes {sorted(chosen)}"
