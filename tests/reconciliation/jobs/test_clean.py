"""A realm where everything odd but nothing wrong has happened: what is informational is named, and the books close."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from reconciliation.history import kept
from reconciliation.model.folder import LocalFolder
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.odd_realm import fill
from tests.reconciliation.world import World


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    directory: Path = tmp_path_factory.mktemp("clean")
    log = open_embedded(directory)
    fill(World(log, "um"))
    log.close()
    return reconcile(Realm("embedded", "um", path=directory))


def test_only_what_the_killed_run_left_is_reported(result: Result) -> None:
    assert result.classes() == {"P5": 3}  # one end in the journal, two events
    assert result.code == 0
    assert result.manifest["clean"] and result.manifest["complete"]


def test_the_balance_closes_in_every_line(result: Result) -> None:
    orders, prices = result.manifest["balance"]["nodes"]
    assert result.manifest["balance"]["difference"] == 0
    assert result.manifest["balance"]["deleted"] == 2
    assert (orders["accepted"], orders["indeterminate"], orders["in_flight"], orders["stored"]) == (10, 2, 1, 13)
    assert (prices["accepted"], prices["stored"]) == (6, 6)


def test_durables_say_what_became_of_each_event(result: Result) -> None:
    queue, news = result.manifest["balance"]["durables"]
    assert (queue["entitled"], queue["acknowledged"], queue["dead_lettered"], queue["available"]) == (13, 5, 1, 7)
    assert (news["entitled"], news["acknowledged"], news["available"]) == (4, 1, 3)


def test_runs_are_known_for_what_they_are(result: Result) -> None:
    assert [run["state"] for run in result.manifest["runs"]] == ["closed", "killed", "live"]


def test_a_record_of_it_is_kept(result: Result) -> None:
    history = kept.read(LocalFolder(result.out / "history"))
    [record] = history.records
    assert (record.verdict, record.complete, list(record.findings)) == ("clean", True, []) and not history.damaged
    assert record.classes == {"P5": 3}, "what is no anomaly is a number only"
    assert (record.books["difference"], record.books["accepted"], record.books["stored"]) == (0, 16, 19)
    assert record.sources["runs"] == {"closed": 1, "killed": 1, "live": 1} and not record.sources["unread"]
    assert record.realm.keys() == {"um.realm", "um.outcomes", "um.journal"}


def test_the_page_stands_alone(result: Result) -> None:
    page = (result.out / "index.html").read_text()
    assert "<strong>Clean</strong>" in page
    assert "prices &amp; more &lt;b&gt;/\u00fc" in page and "more <b>/" not in page
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|<script""", page)


def test_the_summary_is_plain(result: Result) -> None:
    assert result.text.startswith("Verdict: CLEAN.")
    assert "Difference: 0 - every event is accounted for." in result.text
    assert (result.out / "summary.txt").read_text() in result.text
