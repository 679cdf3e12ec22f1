"""What a gateway recorded, decided by other tables: real traffic and planted records, read by the real readers.
Tables of ours: what consumers of `orders.bulk.*` reject is discarded; all else as in `extended`."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyspark.sql import SparkSession

from mappings import TableSet, load_tables
from mappings.compiler.table_set import SHIPPED
from reconciliation.cli import what_if as command
from reconciliation.model.window import Window
from reconciliation.read import landing
from reconciliation.what_if import text
from reconciliation.what_if.document import is_alike
from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.job import Question
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, start_gateway
from tests.kit.processes.gateway import realmgate as printed
from tests.kit.tables.overriding import classify, override
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import BAD, given_back
from tests.kit.wire.transacting import Transacting
from tests.reconciliation.realms import Place, place_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
BULK, PLAIN = "orders.bulk.7", "orders.7"
PEERS, LINES = 25, 10
DAMAGED = 40
"""Deliveries in each record of which an octet is another one."""
NOT_STORED = f"the tables under digest {'0' * 32} are not stored"
LATER_US = 3_000_000_000_000_000  # beyond the window


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> TableSet:
    directory = tmp_path_factory.mktemp("ours")
    shutil.copytree(SHIPPED / "tables", directory / "tables")
    classify(directory, "orders.bulk.*")
    override(directory, "settle", "rejected-dead-letters", native="discard")
    return load_tables(directory)


def traffic(gateway: GatewayProcess) -> None:
    """A message in a transaction; at each node one message that is rejected and one that is released."""
    with Transacting(gateway.port) as peer:
        peer.publisher("paid", handle=2)
        transaction = peer.begun()
        peer.post(transaction, frames.message(), handle=2)
        peer.dispositions(1)
        assert peer.discharge(transaction) == "accepted"
    for node in (BULK, PLAIN):
        given_back(gateway, node, BAD, frames.state("released"))


def damaged(record: dict[str, Any], group: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One octet is another one, in a name. All are JSON still."""
    others = {name: value for name, value in record.items() if name not in ("groups", "at")}
    yield {**others, "at": record["at"], "grours": [group]}
    yield {**others, "au": record["at"], "groups": [group]}
    for name, flipped in (("table", "tacle"), ("seq", "sep")):
        yield {**record, "groups": [{{name: flipped}.get(key, key): value for key, value in group.items()}]}
    yield {**record, "groups": [], "decisions": [{"whau": "fault", "table": "fault", "cell": 1, "count": 1}]}


def plant(place: Place) -> None:
    """More of what was recorded: rejected by many peers, a time later than asked for, tables that are not stored,
    decisions that had no room, and no record at all."""
    topic = place.topic("outcomes")
    records = [orjson.loads(value) for _, _, value in place.records(topic) if value]
    [(record, group)] = [
        (record, group) for record in records for group in record["groups"]
        if group["node"] == BULK and group["rule"] == "rejected-dead-letters"
    ]  # fmt: skip
    many = [
        {**group, "container": f"many-{at:02}", "user": "ann", "seq": [*range(1000, 1001 + at)], "eid": [-1] * (at + 1)}
        for at in range(PEERS)
    ]
    planted = [
        {**record, "groups": many},
        {**record, "groups": many, "at": LATER_US},
        {**record, "groups": [{**group, "node": "elsewhere"}], "digest": "0" * 32},
        {**record, "groups": [], "decisions": [{"what": "fault", "left_out": 3}]},
        *damaged(
            record, {**group, "container": "damaged", "seq": [*range(2000, 2000 + DAMAGED)], "eid": [-1] * DAMAGED}
        ),
    ]
    values = [*map(orjson.dumps, planted), b"no record"]
    place.produce(topic, [(record["run"].encode(), value) for value in values])


@dataclass(slots=True)
class Told:
    document: dict[str, Any]
    text: str

    def changes(self, **fields: object) -> list[dict[str, Any]]:
        return [row for row in self.document["changes"] if all(row.get(key) == value for key, value in fields.items())]


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def answer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, session: SparkSession, ours: TableSet
) -> Iterator[Told]:
    directory = tmp_path_factory.mktemp("what-if")
    realm = (
        embedded_realm(directory)
        if request.param == "embedded"
        else kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"w{uuid.uuid4().hex[:8]}")
    )
    gateway = start_gateway(directory, realm)
    try:
        traffic(gateway)
    finally:
        assert gateway.stop() == 0, gateway.log()
    place = place_of(gateway)
    plant(place)
    window = Window(until=LATER_US)
    question = Question("ours", ExpandedTables(ours.expanded()), window, lines=LINES)
    document = command.run(session, place.realm, landing.extent_of(place.realm), question, directory / "out")
    session.catalog.clearCache()
    yield Told(json.loads(json.dumps(document)), text.write(document))


def test_only_what_the_changed_rule_decides_is_different(answer: Told) -> None:
    [change] = answer.changes(kind="differs")
    assert (change["old_rules"], change["new_rules"]) == (
        "settle.rejected-dead-letters",
        "settle.rejected-dead-letters-bulk",
    )
    assert change["effects"] == [
        {"name": "operation", "old": "dead-letter", "new": "discard"},
        {"name": "outcome", "old": "rejected", "new": None},
    ]
    assert change["not_recorded"] == "the realm's answer to discard"
    assert {line["node"] for line in change["lines"]} == {BULK}


def test_counts_are_exact_however_many_peers_there_are(answer: Told) -> None:
    [change] = answer.changes(kind="differs")
    in_all = 1 + sum(range(1, PEERS + 1))
    assert change["count"] == in_all
    assert [line["count"] for line in change["lines"]] == [*range(PEERS, PEERS - LINES, -1)]
    named = sum(line["count"] for line in change["lines"])
    assert change["more"] == {"lines": 1 + PEERS - LINES, "count": in_all - named}
    totals = answer.document["deliveries"]
    assert (totals["differently"], totals["undecided"]) == (in_all, 1 + DAMAGED)
    assert totals["alike"] == 1 + 4 + 3, "published in a transaction; published; released, and rejected elsewhere"
    assert totals["all"] == totals["alike"] + in_all + 1 + DAMAGED


def test_each_line_leads_to_a_delivery(answer: Told) -> None:
    [change] = answer.changes(kind="differs")
    first = change["lines"][0]
    assert (first["user"], first["container"]) == ("ann", f"many-{PEERS - 1:02}")
    assert first["example"]["delivery"].endswith(":1000")
    assert first["command"] == f"realmgate trace {first['example']['delivery']}"
    [of_store] = answer.changes(kind="undecided", reason=NOT_STORED)[0]["lines"]
    assert of_store["command"] == f"realmgate trace {of_store['example']['tag']}"
    assert f"  {BULK}  ann   many-24    {first['command']}" in answer.text


def test_tables_that_are_not_stored_decide_nothing(answer: Told) -> None:
    [change] = answer.changes(kind="undecided", reason=NOT_STORED)
    assert [line["node"] for line in change["lines"]] == ["elsewhere"]
    assert change["reason"] in answer.text


def test_what_is_damaged_and_json_still_is_not_alike(answer: Told) -> None:
    """Deliveries whose group names no table can be counted, and not decided."""
    assert answer.document["records"]["unreadable"] == 1 + 5
    [change] = answer.changes(kind="undecided", reason="the record does not say which table decided")
    assert (change["what"], change["count"]) == ("delivery", DAMAGED)
    assert "6 outcome records, or parts of them, cannot be read; what they say is not decided." in answer.text


def test_what_has_no_record_is_named(answer: Told) -> None:
    assert any(words.startswith("3 decisions about fault") for words in answer.document["not_recorded"])
    assert answer.document["others"] == {
        "all": 2, "alike": 2, "alike_by_another_rule": 0, "differently": 0, "undecided": 0, "decided_by_assumption": 0,
    }, "a declare and its discharge"  # fmt: skip
    assert "is not simulated" in answer.text.replace("\n", " ")
    assert not is_alike(answer.document)


def test_the_command_and_its_exit_codes(tmp_path: Path) -> None:
    """As an operator runs it: by the same tables nothing is different, by others something is."""
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path))
    given_back(gateway, PLAIN, BAD)
    config, out = ("--config", str(gateway.config_path)), ("--out", str(tmp_path / "out"))
    code, output, _ = printed("what-if", "--profile", "extended", *config, *out)
    assert (code, "Different" in output) == (0, False)
    report = tmp_path / "out" / "what-if.json"
    assert gateway.stop() == 0
    code, output, _ = printed("what-if", "--profile", "um-9.12", "--assume", "framing=whole", *config, *out)
    assert code == 1 and "settle.rejected-dead-letters -> settle.rejected-discards" in output
    assert json.loads(report.read_text())["deliveries"]["differently"] == 1
    assert (tmp_path / "out" / "what-if.txt").read_text() == output
    code, as_json, _ = printed("what-if", "--profile", "um-9.12", *config, "--to", "2000-01-01", "--json")
    assert (code, json.loads(as_json)["deliveries"]["all"]) == (0, 0)
    [landed] = (tmp_path / "out" / "landed-outcomes").iterdir()
    assert {file.name for file in landed.iterdir()} == {"kind=outcomes", "kind=tables", "extent.json"}
