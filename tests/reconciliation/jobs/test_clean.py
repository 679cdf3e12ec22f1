"""A realm where everything odd but nothing wrong has happened: what is informational is named, and the books close."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import World


def fill(world: World) -> None:
    """Releases, rejections, a durable with a hole, odd names, a deleted node, a killed run, and a live one."""
    orders, prices = world.queue("orders"), world.channel("prices & more <b>/\u00fc")
    first = world.run()
    sent = first.publish(orders, 6)
    first.turn()
    first.settle(orders, sent[:3], "released")
    first.settle(orders, sent[:2], "accepted")
    first.settle(orders, sent[3:4], "rejected")
    first.settle(orders, sent[4:5], "accepted", cause="sent-settled")
    first.publish(prices, 2)
    started = first.publish(prices, 1)[0].eid
    sub = world.durable(prices, "app:news", started)
    copies = first.publish(prices, 3)
    first.settle(prices, copies[1:2], "accepted", "app:news")
    first.settle(prices, copies[2:], "released", journal=False)  # a subscriber without durable has it again
    first.note(orders, "queue", "weighed", sent[0].eid, sent[3].eid)  # of another release: it ends nothing
    gone = world.queue("gone")
    first.publish(gone, 2)
    first.delete(gone)
    first.close()
    first.attest()
    world.project(orders, None, sent[2].eid)
    world.project(prices, sub, started)

    killed = world.run()
    held = killed.publish(orders, 2)
    killed.number(1)  # dispatched, and never settled: low stays here
    killed.publish(orders, 1)
    killed.turn()
    killed.settle(orders, held[:1], "accepted", tell=False)
    killed.store(orders, killed.number(2))

    live = world.run()
    live.publish(orders, 1)
    live.turn()
    live.settle(orders, held[1:], "accepted", tell=False)
    live.store(orders, live.number(1))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    directory: Path = tmp_path_factory.mktemp("clean")
    log = open_embedded(directory)
    fill(World(log, "um"))
    log.close()
    return reconcile(Realm("embedded", "um", path=directory))


def test_only_what_the_killed_run_left_is_told(result: Result) -> None:
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


def test_the_page_stands_alone(result: Result) -> None:
    page = (result.out / "index.html").read_text()
    assert "<strong>Clean</strong>" in page
    assert "prices &amp; more &lt;b&gt;/\u00fc" in page and "more <b>/" not in page
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|<script""", page)


def test_the_summary_is_plain(result: Result) -> None:
    assert result.text.startswith("Verdict: CLEAN.")
    assert "Difference: 0 - every event is accounted for." in result.text
    assert (result.out / "summary.txt").read_text() in result.text
