"""A reconciliation that continues from the last one's state finds what one over everything finds, wherever the history
was cut; and what keeps it from continuing is named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import closing
from functools import reduce
from pathlib import Path

import pytest
from pyarrow import dataset, parquet
from pyspark.sql import DataFrame, SparkSession

from native_backend.log.open import open_embedded
from native_backend.log.sqlite.schema import connect
from reconciliation.cli import judging
from reconciliation.model.hadoop_folder import HadoopFolder
from reconciliation.model.settings import Realm, SettingsError
from reconciliation.model.state import CHAINED
from reconciliation.read import export, increments
from reconciliation.report import report
from reconciliation.transforms.frames import landed_records
from tests.reconciliation import odd_realm, planting
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.cut_world import CutWorld, cut_world
from tests.reconciliation.days import Days, said
from tests.reconciliation.realms import Place, made
from tests.reconciliation.variants import of_publishes, of_settlements, of_the_evidence, of_the_realm
from tests.reconciliation.variants.honest import honest
from tests.reconciliation.variants.shared_realm import SharedRealm
from tests.reconciliation.world import START_US, World

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
DAY_US = 86_400_000_000


def variants(world: World) -> None:
    """All that can be wrong."""
    shared = SharedRealm(world)
    honest(shared)
    for module in (of_publishes, of_settlements, of_the_realm, of_the_evidence):
        for variant in module.VARIANTS:
            variant.plant(shared, variant.name)
    shared.close()


def writes_of(fill: Callable[[World], object], directory: Path) -> int:
    """How often it writes records."""
    open_embedded(directory).close()
    with cut_world(Realm("embedded", "um", path=directory), lambda: None) as world:
        fill(world)
        return world.writes


@pytest.mark.timeout(1500)  # of five reconciliations: each takes a minute beside others
@pytest.mark.parametrize(
    ("kind", "fill", "cuts"),
    [("embedded", odd_realm.fill, 2), ("embedded", variants, 3), ("kafka", odd_realm.fill, 2), ("kafka", variants, 1)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_increments_find_what_one_run_finds(
    kind: str, fill: Callable[[World], object], cuts: int, request: pytest.FixtureRequest, tmp_path: Path,
    reconcile: Reconcile,
) -> None:  # fmt: skip
    place, state = made(kind, request, tmp_path / "realm"), tmp_path / "state"
    count = writes_of(fill, tmp_path / "twin")
    chosen = random.Random(f"{kind} {fill.__name__}").sample(range(2, count), cuts)
    with cut_world(place.realm, lambda: reconcile(place.realm, state=state), chosen) as world:
        fill(world)
    continued = reconcile(place.realm, state=state)
    assert f"reconciliation number {cuts + 1} of this state" in continued.text
    assert said(continued) == said(reconcile(place.realm)), f"cut behind the writes {sorted(chosen)}"


def test_evidence_trimmed_below_what_was_judged_stays_in_the_books(days: Days) -> None:
    days.add(2)
    days.judged()
    days.trim("um.outcomes", days.end("outcomes") - 2)
    days.trim("um.journal", days.end("journal") - 2)
    days.trim(days.topic, 3)  # acknowledged
    days.add(1)
    result = days.judged(now_us=START_US + 20 * DAY_US)
    assert (result.manifest["verdict"], result.code) == ("clean", 0), result.text
    [orders] = result.manifest["balance"]["nodes"]
    assert (orders["accepted"], orders["stored"], orders["retained_out"], orders["older"]) == (12, 9, 3, 0)
    [queue] = result.manifest["balance"]["durables"]
    assert (queue["entitled"], queue["acknowledged"], queue["available"]) == (12, 9, 3)
    assert "Base:" not in result.text


def test_what_was_landed_counts_once_and_as_far_as_it_is_there(days: Days, session: SparkSession) -> None:
    days.add(1)
    days.landed().keep()
    days.trim(days.topic, 2)
    days.add(1)
    landed = days.landed().landed
    records = [landed_records(session, landed, kind).select("topic", "offset") for kind in CHAINED]
    counting = reduce(DataFrame.unionAll, records).collect()
    extent = export.export(days.directory / "realm", "um", days.directory / "whole", CHAINED)
    whole = dataset.dataset(days.directory / "whole").to_table(["topic", "offset"]).to_pylist()
    assert sorted(tuple(row) for row in counting) == sorted((row["topic"], row["offset"]) for row in whole)
    assert landed.extent.only("um", CHAINED).ranges == extent.ranges
    events = landed.files("events")
    assert events is not None
    assert parquet.read_table(events.fetched()).num_rows == 1 + 4, "the last one that is known, and the new ones"


def test_what_retention_took_since_it_was_judged_is_lost(days: Days) -> None:
    days.add(1)
    days.landed().keep()
    days.trim(days.topic, 4)  # the last one was not acknowledged
    days.add(1)
    result = days.judged()
    assert result.classes() == {"S1": 1}
    assert result.manifest["balance"]["difference"] == 0


def test_evidence_trimmed_before_it_was_judged_is_named_ever_after(days: Days) -> None:
    days.add(1)
    days.judged()
    reached = days.end("outcomes")
    days.add(2)
    first = days.end("outcomes") - 2
    days.trim("um.outcomes", first)
    words = f"um.outcomes was trimmed up to offset {first:,}, and read up to {reached:,}"
    for words_of_state in ("begun anew, because the evidence could not be continued (Q1)", "continued from that of"):
        result = days.judged()
        assert words in "".join(row["detail"] for row in result.examples("Q1")), result.text
        assert (result.manifest["verdict"], result.code) == ("incomplete", 1)
        assert words_of_state in result.text


def test_evidence_restored_to_earlier_offsets_is_named(days: Days) -> None:
    days.add(2)
    days.judged()
    reached = days.end("outcomes")
    Place(days.realm).keep("um.outcomes", lambda record: record[0] < 3)
    result = days.judged()
    details = [row["detail"] for row in result.examples("Q1")]
    assert any(f"and was read up to {reached:,}: it became shorter" in detail for detail in details), details


def test_evidence_with_another_record_at_its_end_is_named(days: Days) -> None:
    """As many records as before, and others."""
    days.add(1)
    days.judged()
    reached = days.end("outcomes")
    planting.edit(days.realm.path or Path(), "um.outcomes", lambda rows: [*rows[:-1], (rows[-1][0], b"x", b"{}")])
    assert days.end("outcomes") == reached
    details = [row["detail"] for row in days.judged().examples("Q1")]
    assert any("than was read there: it was replaced" in detail for detail in details), details


def test_a_store_that_became_shorter_and_grew_again_is_read_anew(days: Days, reconcile: Reconcile) -> None:
    days.add(1)
    days.judged()
    planting.edit(days.realm.path or Path(), days.topic, lambda rows: rows[:2])
    with closing(connect(days.realm.path or Path())) as connection, connection:
        connection.execute("UPDATE partitions SET next = 2 WHERE topic = ?", (days.topic,))
    days.add(2)
    result = days.judged()
    assert result.classes()["P1"] == 2
    assert said(result) == said(reconcile(days.realm))


def test_a_reconciliation_that_was_killed_leaves_the_earlier_state(
    days: Days, reconcile: Reconcile, monkeypatch: pytest.MonkeyPatch
) -> None:
    days.add(1)
    days.judged()
    before = days.kept()
    days.add(1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    places = ((increments, "first_and_last"), (judging, "judge"), (report, "write_manifest"))
    for module, name in places:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(module, name, killed)
            days.judged()
        assert days.kept() == before
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(increments, "_tidy", killed)
        days.judged()
    assert days.kept()[0] == "state-000002.json", "behind its state, it has ended"
    days.add(1)
    result = days.judged()
    assert "reconciliation number 3 of this state" in result.text
    assert said(result) == said(reconcile(days.realm))
    assert len(days.links()) == 3
    assert {file.name for file in days.state.iterdir()} == {"links", "state-000003.json"}


def test_a_state_is_of_one_realm_and_one_release(days: Days, tmp_path: Path, reconcile: Reconcile) -> None:
    days.add(1)
    days.judged()
    other = Realm("embedded", "um", path=tmp_path / "other")
    with cut_world(Realm("embedded", "um", path=other.path), lambda: None) as world:
        odd_realm.fill(world)
    for realm in (other, Realm("embedded", "an", path=days.realm.path)):
        with pytest.raises(SettingsError, match="is of another realm"):
            reconcile(realm, state=days.state)
    name, content = days.kept()
    (days.state / name).write_text(json.dumps({**json.loads(content), "v": 99}))
    with pytest.raises(SettingsError, match="is of another release: name another directory by --state"):
        days.judged()
    (days.state / name).write_text("{")
    with pytest.raises(SettingsError, match="cannot be read"):
        days.judged()


def test_a_state_may_be_at_a_uri(days: Days, reconcile: Reconcile, session: SparkSession, tmp_path: Path) -> None:
    session._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.states.link./here", tmp_path.as_uri())
    (tmp_path / "scratch").mkdir()
    folder = HadoopFolder(session, "viewfs://states/here/kept", tmp_path / "scratch")
    for _ in range(2):
        days.add(1)
        result = reconcile(days.realm, state=folder)
    assert "reconciliation number 2 of this state" in result.text
    assert said(result) == said(reconcile(days.realm))
    assert len(list((tmp_path / "kept" / "links").glob("link=*"))) == 2


def test_without_outcomes_nothing_is_continued(days: Days) -> None:
    days.add(1)
    days.judged()
    before = days.kept()
    Place(days.realm).drop("um.outcomes")
    result = days.judged()
    assert "State: not continued and left as it was, because um.outcomes cannot be read" in result.text
    assert (result.manifest["verdict"], days.kept()) == ("incomplete", before)
    assert len(days.links()) == 1


def test_a_cut_world_counts_its_writes(tmp_path: Path) -> None:
    seen: list[int] = []
    open_embedded(tmp_path).close()
    with cut_world(Realm("embedded", "um", path=tmp_path), lambda: seen.append(world.writes), [2, 4]) as world:
        assert isinstance(world, CutWorld)
        odd_realm.fill(world)
    assert seen == [2, 4]
