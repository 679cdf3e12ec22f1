"""What cannot be seen is never counted as fine: outcome records that are missing (their end, those of a run, all), runs
that no one knows, topics that are gone. The verdict is incomplete, and says what could not be read. On both realms."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from native_backend.log.sqlite.schema import connect
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import TORN
from reconciliation.model.runs import Numbering, runs_of, tail_findings
from reconciliation.model.window import Window
from reconciliation.read import landing
from reconciliation.report import report
from reconciliation.report.balance import Balance, NodeBalance
from reconciliation.report.findings import Findings
from reconciliation.report.verdict import verdict_of
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.numberings import numbering
from tests.reconciliation.planting import Record
from tests.reconciliation.realms import Place, made
from tests.reconciliation.world import GatewayRun, World

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
UNKNOWN = "1a2b3c4d5e6-beef"
REALMS = ["embedded", "kafka"]


@pytest.fixture(params=REALMS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return made(request.param, request, tmp_path / "realm")


def traffic(world: World, *, attested: bool = True) -> GatewayRun:
    """One whole run: 6 published one by one, 4 acknowledged."""
    orders, run = world.queue("orders"), world.run()
    sent = []
    for _ in range(6):
        sent += run.publish(orders, 1)
        run.turn()
    run.settle(orders, sent[:4], "accepted")
    run.turn()
    if attested:
        run.attest()
    return run


def number(record: Record) -> tuple[str, int]:
    content = json.loads(record[2] or b"null")
    return content["run"], content["n"]


def is_incomplete(result: Result) -> bool:
    """And nothing else is wrong: what was seen agrees, and the books say what was not."""
    outcome = (result.manifest["verdict"], result.manifest["complete"], result.manifest["clean"], result.code)
    assert outcome == ("incomplete", False, False, 1), result.text
    assert set(result.classes()) <= {"Q1", "P5"}
    assert result.manifest["balance"]["difference"] == 0
    assert result.text.startswith("Verdict: INCOMPLETE. ")
    assert "Not everything could be seen: " in result.text.splitlines()[0]
    page = (result.out / "index.html").read_text()
    return "<strong>Incomplete</strong>" in page and "<title>Incomplete - " in page


def test_the_end_of_the_outcomes_is_cut_off(place: Place, reconcile: Reconcile) -> None:
    """The last run was killed: only the journal knows that there was more. What is missing belongs to every window:
    nothing in it says when it was sent."""
    with place.world() as world:
        run = traffic(world)
    place.keep(place.topic("outcomes"), lambda record: number(record)[1] <= 4)
    result = reconcile(place.realm)
    assert is_incomplete(result)
    words = f"run {run.name}: 4 outcomes records missing: n 5 to 8; the journal notes that 8 were stored"
    assert words in result.text
    [orders] = result.manifest["balance"]["nodes"]
    assert (orders["accepted"], orders["unproven"], orders["indeterminate"], orders["stored"]) == (3, 3, 0, 6)
    for window in (Window(1, 2), Window(run.world.clock.now_us + 1, run.world.clock.now_us + 2)):
        findings = report.condense(LocalFolder(result.out / "report" / f"window={Window().name}"), window)
        [missing] = [entry for entry in findings.classes if entry.code != "P5"]
        details = [row["detail"] for row in missing.examples]
        assert (missing.code, len(details)) == ("Q1", 3), details
        assert "3 events in the store; outcome records of this run are missing" in details


def test_a_run_without_outcome_records(place: Place, reconcile: Reconcile) -> None:
    """One of two runs has lost all of its records; and there are events of a run that never was."""
    with place.world() as world:
        lost = traffic(world, attested=False)
        lost.close()
        kept = world.run()
        orders = world.queue("orders")
        kept.publish(orders, 2)
        kept.close()
    place.keep(place.topic("outcomes"), lambda record: number(record)[0] != lost.name)
    place.produce(orders.topic, [(b"1;basic;%s;%d;1;4;;0;;0" % (UNKNOWN.encode(), seq), b"x") for seq in (1, 2, 3)])
    result = reconcile(place.realm)
    assert is_incomplete(result)
    details = {(row["run"], row["detail"]) for row in result.examples("Q1", "orders")}
    assert details == {
        (lost.name, "6 events in the store; no outcome record of this run is there"),
        (lost.name, "4 ends in the journal; no outcome record of this run is there"),
        (
            UNKNOWN,
            "3 events in the store; no such run is known, neither by outcome records nor by the journal: find out who "
            "wrote this",
        ),
    }
    [books] = result.manifest["balance"]["nodes"]
    assert (books["accepted"], books["unproven"], books["stored"]) == (2, 9, 11)


@pytest.mark.parametrize("sides", [("accepted", "unread"), ("unproven", "stored")])
def test_the_books_alone_keep_a_verdict_from_clean(sides: tuple[str, str]) -> None:
    names = [field.name for field in fields(NodeBalance) if field.name not in ("node", "kind", "part")]
    numbers: dict[str, Any] = {name: 4 if name in sides else 0 for name in names}
    node = NodeBalance("orders", "queue", **numbers)
    verdict = verdict_of(Findings([], Counter()), Balance([node], [], 0, 0))
    assert (node.difference, verdict.word, verdict.complete) == (0, "incomplete", False)
    assert verdict.sentence == "Not everything could be seen: 4 could not be compared with anything."


def test_no_outcome_record_at_all(place: Place, reconcile: Reconcile) -> None:
    with place.world() as world:
        traffic(world, attested=False).close()
    place.keep(place.topic("outcomes"), lambda _: False)
    result = reconcile(place.realm)
    assert is_incomplete(result)
    assert f"{place.topic('outcomes')} holds no record: what peers were told is not known" in result.text
    assert "every event is accounted for, but 6 could not be compared with anything" in result.text


def test_topics_of_the_realm_are_gone(place: Place, reconcile: Reconcile) -> None:
    with place.world() as world:
        traffic(world).close()
    for kind in ("outcomes", "state", "tables"):
        place.drop(place.topic(kind))
    result = reconcile(place.realm)
    assert is_incomplete(result)
    details = [row["detail"] for row in result.examples("Q1")]
    for kind in ("outcomes", "state", "tables"):
        assert f"{place.topic(kind)}: the topic is gone: restore it from a backup" in details


def test_without_metadata_nothing_was_seen(place: Place, reconcile: Reconcile) -> None:
    """No node is known to be gone: what was accepted may be where it was."""
    with place.world() as world:
        traffic(world).close()
    place.drop(place.topic("realm"))
    result = reconcile(place.realm)
    assert is_incomplete(result)
    [orders] = result.manifest["balance"]["nodes"]
    assert (orders["node"], orders["accepted"], orders["unread"]) == ("orders", 6, 6)
    assert "6 publishes could be compared with nothing" in result.text


def test_without_the_commands_what_is_laid_to_them_has_no_reason(place: Place, reconcile: Reconcile) -> None:
    with place.world() as world:
        run = traffic(world)
        orders = world.queue("orders")
        world.command("c1", "purge", orders)
        [left] = run.publish(orders, 1)
        run.note(orders, "queue", "purge", left.eid, left.eid, "command c1")
        run.close()
    assert reconcile(place.realm).manifest["verdict"] == "clean"
    place.drop(place.topic("commands"))
    result = reconcile(place.realm)
    assert is_incomplete(result)
    assert f"{place.topic('commands')} is gone, though the journal names commands" in result.text


def test_a_journal_that_is_gone_takes_what_it_held(place: Place, reconcile: Reconcile) -> None:
    """Acknowledged, says the outcome, and nothing else says so: that is worse than incomplete."""
    with place.world() as world:
        traffic(world).close()
    place.drop(place.topic("journal"))
    result = reconcile(place.realm)
    assert result.classes() == {"A1": 4, "Q1": 1}
    assert (result.manifest["verdict"], result.manifest["complete"], result.code) == ("not clean", False, 1)
    assert "Not everything could be seen: " in result.text.splitlines()[0]


def torn(directory: Path, topic: str, index: int = -1) -> bytes:
    """The octets of one batch are damaged (the last one; `index` counts as that of a list does); returns them."""
    with closing(connect(directory)) as connection, connection:
        clause = "FROM batches WHERE partition = (SELECT id FROM partitions WHERE topic = ?1)"
        rowid, octets = connection.execute(f"SELECT rowid, data {clause} ORDER BY first", (topic,)).fetchall()[index]
        connection.execute("UPDATE batches SET data = x'00' WHERE rowid = ?", (rowid,))
        return bytes(octets)


def restored(directory: Path, octets: bytes) -> None:
    with closing(connect(directory)) as connection, connection:
        connection.execute("UPDATE batches SET data = ? WHERE data = x'00'", (octets,))


@pytest.mark.parametrize("kind", ["outcomes", "state"])
def test_records_that_cannot_be_read(
    tmp_path: Path, request: pytest.FixtureRequest, reconcile: Reconcile, session: SparkSession, kind: str
) -> None:
    """A batch whose octets are damaged: each time that it is asked about, until it is restored."""
    place = made("embedded", request, tmp_path / "realm")
    with place.world() as world:
        run = traffic(world)
        world.snapshot(world.queue("orders"), "queue", 0, [], 0)
        run.close()
    octets = torn(tmp_path / "realm", place.topic(kind))
    result = reconcile(place.realm)
    assert is_incomplete(result)
    assert "these records cannot be decoded" in " / ".join(row["detail"] for row in result.examples("Q1"))
    for is_torn in (True, False):
        folder = LocalFolder(result.out / "landed")
        landed = landing.land(place.realm, landing.extent_of(place.realm), session, folder)
        assert [entry.why for entry in landed.extent.unread] == [TORN] * is_torn
        restored(tmp_path / "realm", octets)


def test_a_batch_in_the_middle_hides_no_other(
    tmp_path: Path, request: pytest.FixtureRequest, reconcile: Reconcile
) -> None:
    """Of a store that holds copies, and of the journal, which ends events that are read."""
    place = made("embedded", request, tmp_path / "realm")
    with place.world() as world:
        run, orders, letters = world.run(), world.queue("orders"), world.queue("letters")
        sent = [event for _ in range(4) for event in run.publish(orders, 2)]
        run.settle(orders, sent[:4], "accepted")
        run.settle(orders, sent[6:7], "rejected", to=letters)
        run.publish(letters, 1)
        world.project(orders, None, sent[4].eid)
        run.close()
    torn(tmp_path / "realm", orders.topic, 1)
    torn(tmp_path / "realm", letters.topic, 0)
    torn(tmp_path / "realm", place.topic("journal"), 1)
    result = reconcile(place.realm)
    assert is_incomplete(result)
    books = {node["node"]: node for node in result.manifest["balance"]["nodes"]}
    numbers = ("accepted", "unread", "copied", "stored")
    assert [books["orders"][name] for name in numbers] == [8, 2, 0, 6]
    assert [books["letters"][name] for name in numbers] == [1, 0, 0, 1]


def test_only_notes_from_before_the_question_count() -> None:
    """A live gateway notes records that were stored after it had been asked where the outcomes end; and what is older
    than the base may have been trimmed."""
    outcomes, noted = numbering("a-0001", n_last=3), {"source": "journal", "low": None, "next": None, "closed": None}
    assert tail_findings([outcomes, numbering("a-0001", **noted, recorded=3)], None) == []
    [finding] = tail_findings([outcomes, numbering("a-0001", **noted, recorded=5)], None)
    assert (finding["class"], finding["count"]) == ("Q1", 2)
    alone: list[Numbering] = [numbering("a-0001", **noted, recorded=5)]
    assert tail_findings(alone, 0xA * 1000) == []
    assert len(tail_findings(alone, 0xA * 1000 - 1)) == len(tail_findings(alone, None)) == 1


def test_the_latest_run_may_have_begun_meanwhile() -> None:
    begun = numbering("b-0001", source="journal", low=None, next=None, closed=None)
    outcomes = numbering("a-0001", closed=1)
    assert [run.name for run in runs_of([outcomes, begun])] == ["a-0001"]
    assert [(run.name, run.state) for run in runs_of([outcomes, begun], growing=True)] == [
        ("a-0001", "closed"),
        ("b-0001", "live"),
    ]


def test_a_process_that_has_ended_is_not_live() -> None:
    known = [numbering("a-0001")]
    assert [run.state for run in runs_of(known)] == ["live"]
    assert [run.state for run in runs_of(known, ended=frozenset({"a-0001"}))] == ["killed"]
