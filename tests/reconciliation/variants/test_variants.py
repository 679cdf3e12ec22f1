"""Every variant of corruption, planted in the stored data of a realm, is found: with its class, its node, its tags and
words, and nothing else is named at its node. All together in one run on each realm; each alone on the embedded one. By
sums all of it is found, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.days import said
from tests.reconciliation.realms import made
from tests.reconciliation.variants import of_durables, of_publishes, of_settlements, of_the_evidence, of_the_realm
from tests.reconciliation.variants.honest import honest, honest_few
from tests.reconciliation.variants.shared_realm import Expected, SharedRealm, Variant

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
VARIANTS = [
    *of_publishes.VARIANTS,
    *of_settlements.VARIANTS,
    *of_durables.VARIANTS,
    *of_the_realm.VARIANTS,
    *of_the_evidence.VARIANTS,
]
OF_THE_REALM = {case.name for case in of_the_evidence.VARIANTS}
INFORMATIONAL = {"P5", "A12"}
Row = dict[str, object]


@dataclass(slots=True)
class Judged:
    """What was planted, and all that was found."""

    expected: dict[str, Expected]
    result: Result
    rows: list[Row]

    def of(self, name: str) -> list[Row]:
        """The findings that belong to a variant."""
        expected = self.expected[name]
        if name in OF_THE_REALM:
            return [row for row in self.rows if expected.words in str(row["detail"]) and _is_of(row, expected)]
        return [row for row in self.rows if row["node"] == name]


def _is_of(row: Row, expected: Expected) -> bool:
    return not expected.run or row["run"] == expected.run


def planted(kind: str, request: pytest.FixtureRequest, directory: Path, reconcile: Reconcile,
            variants: list[Variant], beside: Callable[[SharedRealm], None] = honest) -> Judged:  # fmt: skip
    place = made(kind, request, directory / "realm")
    with place.world() as world:
        shared = SharedRealm(world)
        beside(shared)
        expected = {variant.name: variant.plant(shared, variant.name) for variant in variants}
        shared.close()
    result = reconcile(place.realm)
    assert said(reconcile(place.realm, state=directory / "state", sums=True)) == said(result)
    return Judged(expected, result, result.rows())


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Judged:
    return planted(request.param, request, tmp_path_factory.mktemp("variants"), reconcile, VARIANTS)


def is_found(judged: Judged, name: str) -> None:
    expected, rows = judged.expected[name], judged.of(name)
    named = Counter(str(row["class"]) for row in rows)
    assert set(named) == set(expected.classes), [(row["class"], row["eid"], row["detail"]) for row in rows]
    for code, tags in expected.classes.items():
        matches = [row for row in rows if row["class"] == code]
        reported = ["" if row["eid"] is None else f"{row['store']}:{row['eid']}" for row in matches]
        if any(tags):
            assert sorted(reported) == sorted(tags), matches
        assert any(expected.words in str(row["detail"]) for row in rows), rows


@pytest.mark.parametrize("name", [case.name for case in VARIANTS])
def test_it_is_found_among_all(judged: Judged, name: str) -> None:
    is_found(judged, name)


def test_nothing_is_found_where_nothing_was_planted(judged: Judged) -> None:
    strange = {str(row["node"]) for row in judged.rows if row["node"] is not None} - set(judged.expected)
    allowed = {"a-letter-is-of-another-event-letters", "the-same-in-another-node-home"}
    assert strange <= allowed, [row for row in judged.rows if row["node"] in strange - allowed]


def test_the_books_close_over_all_of_it(judged: Judged) -> None:
    assert judged.result.manifest["balance"]["difference"] == 0, judged.result.text
    assert judged.result.code == 1


def test_the_findings_are_written_in_the_order_of_their_places(judged: Judged) -> None:
    """The driver joins neighbours as it reads them; it does not sort."""
    files = [*(judged.result.out / "report").glob("window=*/class=*/part-*.parquet")]
    places = [[(row["store"] or 0, row["eid"] or -1) for row in pq.read_table(file).to_pylist()] for file in files]
    assert places == [sorted(some) for some in places]
    assert sum(len(some) > 2 for some in places) > 3


@pytest.mark.parametrize("variant", VARIANTS, ids=[case.name for case in VARIANTS])
def test_it_is_found_alone(
    request: pytest.FixtureRequest, tmp_path: Path, reconcile: Reconcile, variant: Variant
) -> None:
    judged = planted("embedded", request, tmp_path, reconcile, [variant], honest_few)
    is_found(judged, variant.name)
    codes = {str(row["class"]) for row in judged.rows}
    assert codes == set(judged.expected[variant.name].classes), judged.rows
    assert judged.result.code == (0 if codes <= INFORMATIONAL else 1)
    assert judged.result.manifest["balance"]["difference"] == 0


def test_what_has_its_reason_is_clean(request: pytest.FixtureRequest, tmp_path: Path, reconcile: Reconcile) -> None:
    judged = planted("embedded", request, tmp_path, reconcile, [])
    assert judged.result.text.startswith("Verdict: CLEAN."), judged.result.text
