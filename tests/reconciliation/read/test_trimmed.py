"""Old outcome records and journal were trimmed: what came after is judged as ever, what is older is said to be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from native_backend.nodes.node import Node
from reconciliation.model.runs import NEVER, Numbering, runs_of, told_since, trimmed_young, young_from
from reconciliation.model.settings import Realm, SettingsError, load_realm
from tests.reconciliation import planting
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.numberings import numbering
from tests.reconciliation.world import START_US, GatewayRun, World

DAY_US = 86_400_000_000


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
    acked = [[event.eid, event.eid] for event in old[:2]]
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
    return reconcile(Realm("embedded", "um", path=directory), now_us=START_US + 15 * DAY_US)


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
    durables = {durable["node"]: durable for durable in clean.manifest["balance"]["durables"]}
    assert (durables["orders"]["acknowledged"], durables["orders"]["available"]) == (10, 8)
    assert (durables["news"]["acknowledged"], durables["news"]["available"]) == (2, 1)


def test_the_report_says_where_it_begins(clean: Result) -> None:
    words = "what is older was trimmed and is not judged: 15 events in the stores, and the beginning of 1 run."
    assert words in clean.text
    assert words in (clean.out / "index.html").read_text()


def test_what_is_wrong_after_the_base_is_found(tmp_path: Path, reconcile: Reconcile) -> None:
    """A publish that is not there, a record that is missing, and an acknowledgement that the journal has not."""

    def plant(run: GatewayRun, orders: Node) -> None:
        run.settle(orders, run.publish(orders, 1), "accepted", journal=False)
        run.tell_publish(orders, run.number(1), [999_999], "stored")
        run.turn()
        run.records += 1

    result = judged(tmp_path, reconcile, plant)
    assert result.classes() == {"P1": 1, "A1": 1, "Q1": 1}


def trimmed(directory: Path) -> tuple[Realm, World, GatewayRun, GatewayRun]:
    """30 events were accepted and are gone, and so are all outcome records but the last one."""
    realm, log = Realm("embedded", "um", path=directory, evidence_s=86_400), open_embedded(directory)
    world = World(log, "um")
    orders, run = world.queue("orders"), world.run()
    sent = run.publish(orders, 30)
    run.turn()
    run.attest()
    run.close()
    last = world.run()
    last.publish(orders, 2)
    last.turn()
    last.close()
    last.attest()
    log.control.trim("um.outcomes", 0, log.control.bounds("um.outcomes", 0)[1] - 2)
    log.close()
    planting.edit(directory, orders.topic, lambda records: [record for record in records if record[0] > sent[-1].eid])
    return realm, world, run, last


def test_evidence_that_was_trimmed_young_is_missing(tmp_path: Path, reconcile: Reconcile) -> None:
    realm, world, run, last = trimmed(tmp_path)
    result = reconcile(realm, now_us=world.clock.now_us + 60_000_000)
    assert (result.manifest["verdict"], result.code) == ("incomplete", 1), result.text
    assert {row["run"] for row in result.examples("Q1")} == {run.name, last.name}


def test_evidence_that_was_due_is_not_missing_but_for_the_last_record(tmp_path: Path, reconcile: Reconcile) -> None:
    realm, world, _, _ = trimmed(tmp_path)
    assert reconcile(realm, now_us=world.clock.now_us + 2 * DAY_US).text.startswith("Verdict: CLEAN."), "it was due"
    with closing(open_embedded(tmp_path)) as log:
        log.control.trim("um.outcomes", 0, log.control.bounds("um.outcomes", 0)[1])
    planting.edit(tmp_path, "um.node.orders", lambda _: [])
    result = reconcile(realm, now_us=world.clock.now_us + 2 * DAY_US)
    assert "um.outcomes holds no record: what peers were told is not known" in result.text
    assert (result.manifest["verdict"], result.code) == ("incomplete", 1), "the last one is never due"


@pytest.mark.parametrize(
    ("n_first", "notes", "lost"),
    [
        (41, {"recorded": 60, "noted_old": 40, "noted_young": 45}, None),
        (51, {"recorded": 60, "noted_old": 40, "noted_young": 45}, (41, 50)),
        (51, {"recorded": 60, "noted_old": None, "noted_young": 45}, (46, 50)),  # the journal was trimmed, too
        (51, {"recorded": 60, "noted_old": None, "noted_young": 51}, None),  # the gateway was idle before that
        (None, {"recorded": 60, "noted_old": 40, "noted_young": 45}, (41, 60)),
        (51, {"recorded": None, "noted_old": None, "noted_young": None}, None),  # an earlier release
    ],
)
def test_what_a_long_run_lost_young_is_known_by_its_notes(
    n_first: int | None, notes: dict[str, int | None], lost: tuple[int, int] | None
) -> None:
    """The run is older than the evidence; the notes tell which of its records were written when."""
    known = [numbering("a-0001", source="journal", n_first=7, at_first=1, **notes)]
    if n_first is not None:
        known.append(numbering("a-0001", n_first=n_first, n_last=60))
    details = [finding["detail"] for finding in trimmed_young(known, 20_000, outcomes_first=9)]
    assert details == ([] if lost is None else [
        f"{lost[1] - lost[0] + 1} outcomes records missing: n {lost[0]} to {lost[1]}; the realm trims none that are "
        "younger than limits.evidence_s"
    ])  # fmt: skip


def test_a_young_run_has_its_journal_from_the_first_record_on() -> None:
    known = [numbering("a-0001", source="journal", n_first=first) for first in (1, 4)]
    assert [finding["count"] for finding in trimmed_young(known, 9_000, 0)] == [3]
    assert young_from(20_000_000_000, 7200) == young_from(20_000_000_000, 3600) - 3_600_000_000 == 16_400_000_000


def test_how_long_evidence_is_kept_is_read(tmp_path: Path) -> None:
    file = tmp_path / "realmgate.yaml"
    file.write_text("realm: {kind: embedded, path: realm}\nlimits: {evidence_s: 60, readers: 4}\n")
    assert load_realm(file).evidence_s == 60
    file.write_text("realm: {kind: embedded, path: realm}\n")
    assert load_realm(file).evidence_s == 14 * 86_400
    file.write_text("realm: {kind: embedded, path: realm}\nlimits: {evidence_s: soon}\n")
    with pytest.raises(SettingsError, match=r"realmgate.yaml:2: limits.evidence_s is soon; write a whole number"):
        load_realm(file)


def test_only_a_run_from_before_may_miss_its_beginning() -> None:
    first = numbering("5-0001", n_first=7, n_last=9, offset_first=20, at_offset_first=9000, next=40)
    late = numbering("a-0001", n_first=2, n_last=4, offset_first=23, at_offset_first=12_000, next=3)
    unsaid = numbering("4-0001", n_first=3, n_last=5, offset_first=21, at_offset_first=9500)
    known: list[Numbering] = [late, first, unsaid]
    assert told_since(known, 0) is None
    since = told_since(known, 20)
    assert since == 9000
    assert [entry.has_holes(since) for entry in known] == [True, False, False]
    assert {run.name: run.base for run in runs_of(known, since)} == {"5-0001": 40, "a-0001": 1, "4-0001": NEVER}
    assert all(entry.has_holes(None) for entry in known)
