"""Old outcome records and journal were trimmed: what came after is judged as ever, what is older is said to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from native_backend.nodes.node import Node
from reconciliation.model.runs import NEVER, Numbering, runs_of, told_since
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.numberings import numbering
from tests.reconciliation.world import GatewayRun, World


def fill(world: World, plant: Callable[[GatewayRun, Node], None]) -> None:
    """A run of which nothing is kept; one that goes on after its beginning was trimmed; one that began later."""
    orders, news = world.queue("orders"), world.channel("news")
    gone = world.run()
    first = gone.publish(orders, 5)
    gone.settle(orders, first[:2], "accepted")
    gone.close()
    run = world.run()
    old = run.publish(orders, 6)
    heard = run.publish(news, 3)
    world.durable(news, "app:sub", heard[0].eid)
    run.settle(orders, old[:2], "accepted")
    run.settle(news, heard[:1], "accepted", "app:sub")
    run.number(1)  # still open when the beginning is trimmed
    run.turn()
    outcomes, journal = (world.log.control.bounds(f"{world.prefix}.{name}", 0)[1] for name in ("outcomes", "journal"))
    acked = [[one.eid, one.eid] for one in old[:2]]
    world.snapshot(orders, "queue", first[2].eid, acked, journal)
    world.snapshot(news, "app:sub", heard[1].eid, [], journal)
    run.told.add(run.next_seq - 1)
    run.publish(orders, 1)
    run.turn()  # the first record that is kept
    new = run.publish(orders, 4)
    run.settle(orders, [*old[2:4], *new[:2]], "accepted")
    run.settle(news, heard[1:2], "accepted", "app:sub")
    run.turn()
    plant(run, orders)
    run.close()
    later = world.run()
    later.settle(orders, later.publish(orders, 2), "accepted")
    later.close()
    world.log.control.trim(f"{world.prefix}.outcomes", 0, outcomes)
    world.log.control.trim(f"{world.prefix}.journal", 0, journal)


def judged(directory: Path, reconcile: Reconcile, plant: Callable[[GatewayRun, Node], None]) -> Result:
    log = open_embedded(directory)
    fill(World(log, "um"), plant)
    log.close()
    return reconcile(Realm("embedded", "um", path=directory))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    return judged(tmp_path_factory.mktemp("trimmed"), reconcile, lambda _, __: None)


def test_a_trimmed_realm_is_clean(clean: Result) -> None:
    assert clean.text.startswith("Verdict: CLEAN.")
    assert (clean.code, clean.classes(), clean.manifest["balance"]["difference"]) == (0, {}, 0)


def test_what_is_older_is_in_the_books(clean: Result) -> None:
    news, orders = clean.manifest["balance"]["nodes"]
    assert (orders["older"], orders["accepted"], orders["stored"]) == (12, 6, 18)
    assert (news["older"], news["accepted"], news["stored"]) == (3, 0, 3)
    durables = {one["node"]: one for one in clean.manifest["balance"]["durables"]}
    assert (durables["orders"]["acknowledged"], durables["orders"]["available"]) == (10, 8)
    assert (durables["news"]["acknowledged"], durables["news"]["available"]) == (2, 1)


def test_the_report_says_where_it_begins(clean: Result) -> None:
    words = "what is older was trimmed and is not judged: 15 events in the stores, and the beginning of 1 run."
    assert words in clean.text
    assert words in (clean.out / "index.html").read_text()


def test_what_is_wrong_after_the_base_is_found(tmp_path: Path, reconcile: Reconcile) -> None:
    """A publish that is not there, a record that is missing, and an acknowledgement that the journal has not."""

    def plant(run: GatewayRun, orders: Node) -> None:
        run.tell_publish(orders, run.number(1), [999_999], "stored")
        run.settle(orders, run.publish(orders, 1), "accepted", journal=False)
        run.turn()
        run.records += 1

    result = judged(tmp_path, reconcile, plant)
    assert result.classes() == {"P1": 1, "A1": 1, "Q1": 1}


def test_only_a_run_from_before_may_miss_its_beginning() -> None:
    first = numbering("5-0001", n_first=7, n_last=9, offset_first=20, at_offset_first=9000, next=40)
    late = numbering("a-0001", n_first=2, n_last=4, offset_first=23, at_offset_first=12_000, next=3)
    unsaid = numbering("4-0001", n_first=3, n_last=5, offset_first=21, at_offset_first=9500)
    known: list[Numbering] = [late, first, unsaid]
    assert told_since(known, 0) is None
    since = told_since(known, 20)
    assert since == 9000
    assert [one.has_holes(since) for one in known] == [True, False, False]
    assert {run.name: run.base for run in runs_of(known, since)} == {"5-0001": 40, "a-0001": 1, "4-0001": NEVER}
    assert all(one.has_holes(None) for one in known)
