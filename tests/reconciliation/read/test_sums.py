"""Days in a row are judged from the partial aggregates of their increments, and as all rows are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from reconciliation import transforms
from reconciliation.cli.judging import ROWS_NEEDED
from reconciliation.jobs import kept_sums
from reconciliation.model.window import Window
from reconciliation.read import merging
from reconciliation.transforms.copies import LATE_US
from tests.reconciliation import odd_realm, planting
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.cut_world import cut_world
from tests.reconciliation.days import BY_ROWS, BY_SUMS, Days, said
from tests.reconciliation.realms import made
from tests.reconciliation.world import START_US, GatewayRun, Sent, World


def test_days_in_a_row_are_judged_by_sums(days: Days, reconcile: Reconcile) -> None:
    days.add(2)
    assert BY_SUMS in days.judged(sums=True).text
    assert BY_SUMS in days.judged(sums=True).text, "of an increment without a record"
    days.add(1)
    result = days.judged(sums=True)
    assert BY_SUMS in result.text
    assert said(result) == said(reconcile(days.realm))


def test_sums_of_plain_records_are_made_without_spark(days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(transforms.sums, "of_link", refuse)
    days.add(1)
    assert BY_SUMS in days.judged(sums=True).text


def test_where_sums_cannot_tell_the_rows_do(days: Days, reconcile: Reconcile) -> None:
    days.add(1)
    part = days.judged(sums=True, window=Window(since=START_US))
    assert f"{BY_ROWS}only a part of the time is asked for." in part.text
    assert (days.state / ROWS_NEEDED).read_text() == "only a part of the time is asked for"
    assert said(days.judged(sums=True)) == said(reconcile(days.realm))
    assert not (days.state / ROWS_NEEDED).exists(), "the next one starts for few rows again"


def test_sums_that_a_link_has_not_are_made_of_its_records(
    days: Days, reconcile: Reconcile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reconciliation keeps none; then a file of one link and the mark of another are damaged; then they are
    merged."""
    days.add(1)
    days.judged()
    days.add(1)
    assert BY_SUMS in days.judged(sums=True).text
    [file, *_] = sorted((days.state / "links").glob("*/made=*/sum=end_blocks/*.parquet"))
    octets = bytearray(file.read_bytes())
    octets[len(octets) // 2] ^= 0xFF
    file.write_bytes(octets)
    kept_sums.VERIFIED.clear()  # as in another process
    [*_, mark] = sorted((days.state / "links").glob("*/sums.json"))
    mark.write_bytes(mark.read_bytes()[:-9])
    days.add(1)
    result = days.judged(sums=True)
    assert BY_SUMS in result.text
    assert said(result) == said(reconcile(days.realm))
    monkeypatch.setattr(merging, "LEAST", 2)
    links = len(days.links())
    for _ in range(2):
        days.add(1)
        result = days.judged(sums=True)
        assert BY_SUMS in result.text
    assert len(days.links()) < links + 2, "some were merged"
    assert said(result) == said(reconcile(days.realm))


def _lost(days: Days) -> None:
    """The last event of the last day, which is not acknowledged yet."""
    planting.edit(days.realm.path or Path(), days.topic, lambda rows: rows[:-1])


def _of_no_gateway(days: Days) -> None:
    """An event that a stranger wrote."""
    planting.edit(days.realm.path or Path(), days.topic, lambda rows: [*rows, (rows[-1][0] + 1, b"stranger", b"x")])


def _of_no_text(days: Days) -> None:
    """Another one's, with a key that is no text: Spark makes the sums of that day."""
    planting.edit(days.realm.path or Path(), days.topic, lambda rows: [*rows, (rows[-1][0] + 1, b"\xff", b"x")])


@pytest.mark.parametrize("plant", [_lost, _of_no_gateway, _of_no_text])
def test_what_is_wrong_in_the_last_day_is_found(
    plant: Callable[[Days], None], days: Days, reconcile: Reconcile, session: SparkSession
) -> None:
    days.add(2)
    days.landed().keep()
    days.add(1)
    plant(days)
    result = days.judged(sums=True)
    assert result.code == 1 and BY_SUMS in result.text, result.text
    assert said(result) == said(reconcile(days.realm))
    made = made_sums(days)
    kept_sums.VERIFIED.clear()  # as in another process
    landed = days.landed().landed
    assert landed.chain is not None
    kept_sums.kept(session, landed, landed.chain)
    assert len(made) == 2 and made < made_sums(days), "those that were kept are read, and only the new link's are made"
    assert len(made_sums(days)) == 3


@pytest.mark.parametrize("others", [0, 2])
def test_what_was_given_up_and_is_kept_nowhere_is_found_in_the_rows(
    days: Days, reconcile: Reconcile, others: int
) -> None:
    """`others`: copies in the node of dead letters that are none: they do not make up for the one that is not there."""

    def given_up(world: World, run: GatewayRun, orders: Node) -> None:
        dead = world.queue("dead")
        node = world.queue("shop", Properties(dead_letter="dead"))
        world.clock.now_us += 2 * LATE_US
        kept.extend(run.publish(node, 2))
        run.settle(node, kept[:1], "rejected", to=dead)
        for sent in run.publish(node, others, ttl="T1") if others else []:
            run.journal(node, "queue", "expired", [sent.eid], [0], False, "ttl", dead)
        nodes.append(node)

    def kept_nowhere(world: World, run: GatewayRun, orders: Node) -> None:
        run.settle(nodes[0], kept[1:], "rejected")

    kept, nodes = list[Sent](), list[Node]()
    days.add(1, given_up)
    assert BY_SUMS in days.judged(sums=True).text
    days.add(1, kept_nowhere)
    result = days.judged(sums=True)
    assert BY_SUMS in result.text, "the rows of its block alone are read"
    (row,) = [row for row in result.rows() if row["class"] == "A7"]
    assert (row["store"], row["eid"]) == (nodes[0].store, kept[1].eid)
    assert said(result) == said(reconcile(days.realm))


def test_a_range_of_two_numbers_ends_for_no_delivery(days: Days, reconcile: Reconcile) -> None:
    def halved(record: planting.Record) -> planting.Record:
        offset, key, value = record
        entries = json.loads(value or b"")["entries"]
        ends = [{**entry, "runs": [run[:2] for run in entry["runs"]]} for entry in entries]
        is_end = any(entry["operation"] == "acknowledge" for entry in entries)
        return offset, key, json.dumps({**json.loads(value or b""), "entries": ends}).encode() if is_end else value

    days.add(1)
    planting.edit(days.realm.path or Path(), "um.journal", lambda rows: [*map(halved, rows)])
    result = reconcile(days.realm)
    assert result.code == 1 and {"A1", "A2"} <= result.classes().keys(), result.text
    assert said(days.judged(sums=True)) == said(result)


def made_sums(days: Days) -> set[Path]:
    """The folders with the sums of its links."""
    return set((days.state / "links").glob("*/made=*"))


def test_what_was_left_on_an_earlier_day_is_ended_twice(days: Days, reconcile: Reconcile) -> None:
    """Its event and its first end are in another increment than its second end."""
    left: list[Sent] = []

    def first(world: World, run: GatewayRun, orders: Node) -> None:
        left.extend(run.publish(orders, 2))
        run.turn()
        run.settle(orders, left[:1], "accepted")
        run.turn()
        run.attest()

    def again(world: World, run: GatewayRun, orders: Node) -> None:
        run.settle(orders, left, "accepted")
        run.turn()
        run.attest()

    days.add(1, first)
    assert BY_SUMS in days.judged(sums=True).text
    days.add(1, again)
    result = days.judged(sums=True)
    assert result.classes().get("A4"), result.text
    assert said(result) == said(reconcile(days.realm))


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_a_realm_with_much_that_is_odd_is_judged_by_sums(
    request: pytest.FixtureRequest, tmp_path: Path, reconcile: Reconcile, kind: str
) -> None:
    place, state, results = made(kind, request, tmp_path / "realm"), tmp_path / "state", list[Result]()
    with cut_world(
        place.realm, lambda: results.append(reconcile(place.realm, state=state, sums=True)), [9, 23]
    ) as world:
        odd_realm.fill(world)
    results.append(reconcile(place.realm, state=state, sums=True))
    assert [BY_SUMS in result.text for result in results] == [True] * 3
    files = [*(state / "links").glob("link=*/made=*/sum=*/*.parquet")]
    assert files and {file.name for file in files} == {"part-0.parquet"}, "Spark made none of them"
    assert said(results[-1]) == said(reconcile(place.realm))
