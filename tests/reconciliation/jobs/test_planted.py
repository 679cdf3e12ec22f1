"""Each class of anomaly, planted in the realm itself on a node of its own, is found by the real readers and named
with its tag; and nothing else is named there."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from native_backend.log.open import open_embedded
from native_backend.log.sqlite.schema import connect
from native_backend.nodes.node import Node
from reconciliation.history import kept
from reconciliation.model.folder import LocalFolder
from reconciliation.model.settings import Realm
from tests.reconciliation import planting
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import TABLES, GatewayRun, Sent, World

NAMES = ["p1", "p2", "p2-home", "p2-abroad", "p3", "p3-foreign", "p3-over", "p4", "p5", "a1", "a1-discard", "a1-home",
         "a2", "a2-abroad", "a3", "a5", "a5-foreign", "a12", "s1", "q1-cell", "untouched"]  # fmt: skip
PLAIN = "plain-again"  # a channel: its subscriber has no durable

LOST = TABLES["attached"].decide(direction="subscribe", answer="not-found", moment="later")
"""What was in flight when its subscription ended."""


class Planted:
    """The realm, and where things are in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.nodes: dict[str, Node] = {}
        self.sent: dict[str, list[Sent]] = {}
        self.seqs: dict[str, list[int]] = {}
        log = open_embedded(directory)
        self.world = world = World(log, "um")
        self.run, self.holed, self.killed = world.run(), world.run(), world.run()
        self._honest_part()
        self.last = world.run()
        self.last.close()
        self._indeterminate(self.killed)
        log.control.trim(self.nodes["s1"].topic, 0, self.sent["s1"][3].eid)
        log.close()
        self._plant()

    def _honest_part(self) -> None:
        run, world = self.run, self.world
        for name in NAMES:
            node = self.nodes[name] = world.queue(name)
            self.sent[name] = run.publish(node, 4)
            self.seqs[name] = run.settle(node, self.sent[name][:2], "rejected" if name == "a1-discard" else "accepted")
            run.turn()
        refused = run.number(1)
        run.tell_publish(self.nodes["p4"], refused, [-1], "capacity-reached")
        self.seqs["p4"] = refused
        lost = run.number(2)
        run.tell_publish(self.nodes["a12"], lost, [-1, -1], "capacity-reached", presettled=True)
        self.seqs["a12"] = lost
        self._across_stores()
        self._no_anomalies()
        for name in ("a5", "a5-foreign"):
            world.project(self.nodes[name], None, self.sent[name][2].eid)
        run.close()
        self._holes(self.holed)

    def _across_stores(self) -> None:
        """An event of `a1-home` was acknowledged; under that seq the journal has one of `a2-abroad`."""
        home, abroad = self.nodes["a1-home"], self.nodes["a2-abroad"]
        [seq] = self.run.settle(home, self.sent["a1-home"][2:3], "accepted", journal=False)
        self.run.journal(abroad, "queue", "acknowledge", [self.sent["a2-abroad"][2].eid], [seq], False, "disposition")

    def _no_anomalies(self) -> None:
        """What a plain subscriber gives back is in no journal; what is no delivery has records without groups; a
        consumer's error stands beside its deliveries."""
        run = self.run
        node = self.nodes[PLAIN] = self.world.channel(PLAIN)
        sent = self.sent[PLAIN] = run.publish(node, 4)
        run.settle(node, sent, "released", journal=False, subscription="plain")
        run.settle(node, sent, "modified", journal=False, subscription="plain")
        run.turn(decisions=[{"what": "attach", "container": "app-1", "outcome": "refused", "node": "nowhere",
                             "condition": "amqp:not-found", "count": 3}, {"what": "fault", "left_out": 2}])  # fmt: skip
        rejected = run.settle(self.nodes["untouched"], self.sent["untouched"][2:3], "rejected")
        run.groups[-1]["errors"] = [{"condition": "app:bad", "description": "no", "info": None, "seq": rejected}]

    def _holes(self, run: GatewayRun) -> None:
        node = self.nodes["untouched"]
        for _ in range(5):
            self.world.channel("plain")
            run.tell_publish(node, run.number(1), [-1], "capacity-reached")
            run.turn()
        run.close()

    def _indeterminate(self, run: GatewayRun) -> None:
        """Answers that never came, told as such; and what a killed run never told."""
        node = self.nodes["p5"]
        present, absent, untold = run.number(1), run.number(1), run.number(2)
        eids = run.store(node, present)
        run.tell_publish(node, present, [-1], "indeterminate")
        run.tell_publish(node, absent, [-1], "indeterminate")
        run.turn()
        eids += run.store(node, untold)
        self.sent["p5"] = [Sent(0, eid) for eid in eids]

    def _plant(self) -> None:
        realm, run = self.directory, self.run.name
        topic = {name: node.topic for name, node in self.nodes.items()}
        planting.delete(realm, topic["p1"], self.sent["p1"][3].eid)
        doubled = f"1;basic;{run};{self.sent['p2'][3].seq};1;4;;0;;0".encode()
        self.sent["p2"].append(Sent(0, planting.add(realm, topic["p2"], doubled, b"x")))
        abroad = f"1;basic;{run};{self.sent['p2-home'][3].seq};1;4;;0;;0".encode()
        self.sent["p2-abroad"].append(Sent(0, planting.add(realm, topic["p2-abroad"], abroad, b"x")))
        later = f"1;basic;{self.last.name};7;1;4;;0;;0".encode()  # the last run closed at low 1: no one published 7
        self.sent["p3"].append(Sent(7, planting.add(realm, topic["p3"], later, b"x")))
        self.sent["p3-foreign"].append(Sent(0, planting.add(realm, topic["p3-foreign"], b"not ours", b"x")))
        over = self.sent["p3-over"][3].eid
        planting.edit(realm, topic["p3-over"], lambda rs: [(o, b"k" if o == over else k, v) for o, k, v in rs])
        refused = f"1;basic;{run};{self.seqs['p4'][0]};1;4;;0;;0".encode()
        self.sent["p4"].append(Sent(0, planting.add(realm, topic["p4"], refused, b"x")))
        planting.rewrite(realm, "um.journal", run, self._journal)
        planting.rewrite(realm, "um.outcomes", run, self._outcomes)
        planting.rewrite(
            realm, "um.outcomes", self.holed.name, lambda record: None if record["n"] in (2, 3) else record
        )
        connection = connect(realm)
        with connection:
            group = f"um.queue.{self.nodes['a5-foreign'].name}"
            mark = self.sent["a5-foreign"][3].eid + 1
            connection.execute('UPDATE positions SET position = ?, metadata = ? WHERE "group" = ?', (mark, "", group))
        connection.close()

    def _journal(self, record: dict[str, Any]) -> dict[str, Any]:
        """The journal loses the end of one event each; the consumer of `a5` was never told either."""
        forgotten = {self.seqs["a1"][1], self.seqs["a1-discard"][1], self.seqs["a5"][1]}
        for entry in record["entries"]:
            entry["runs"] = [run for run in entry["runs"] if run[2] not in forgotten]
        return record

    def _outcomes(self, record: dict[str, Any]) -> dict[str, Any]:
        """What the records say is changed: a2's second is told as released, a5's as nothing done; a3's rule is
        another; the cells of q1-cell's first and second decision are in no table."""
        groups = []
        for group in record["groups"]:
            if group["node"] in ("a2", "a5") and group["direction"] == "subscribe":
                seqs, eids = group["seq"], group["eid"]
                groups.append({**group, "seq": seqs[:1], "eid": eids[:1]})
                untold = {"table": "attached", "cell": LOST.cell, "rule": LOST.rule, "answer_table": None,
                          "answer_cell": None, "answer_rule": None, "operation": "none", "answer": None,
                          "outcome": LOST.then["in_flight"], "condition": LOST.then["condition"],
                          "class": LOST.then["class"]}  # fmt: skip
                groups.append({**group, **untold, "seq": seqs[1:], "eid": eids[1:]})
                continue
            if group["node"] == "a3" and group["direction"] == "subscribe":
                group = {**group, "outcome": "released"}
            if group["node"] == "q1-cell":
                side = "" if group["direction"] == "publish" else "answer_"
                group = {**group, f"{side}cell": 9999}
            groups.append(group)
        return {**record, "groups": groups}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def result(planted: Planted, reconcile: Reconcile) -> Result:
    return reconcile(Realm("embedded", "um", path=planted.directory))


CASES = [
    # node, class, which event (index into sent; None: the finding names no event), and what the detail says
    ("p1", "P1", 3, "no such event"),
    ("p2", "P2", 3, "stored at EIDs"),
    ("p2-abroad", "P2", 4, "stored under the tags"),
    ("p3", "P3", 4, "no publish outcome"),
    ("p3-foreign", "P3", 4, "written by no gateway"),
    ("p3-over", "P3", 3, "written by no gateway"),
    ("p4", "P4", 4, "refused to the publisher"),
    ("a1", "A1", 1, "acknowledge was answered done"),
    ("a1-discard", "A1", 1, "dead-letter was answered done"),
    ("a1-home", "A1", 2, "acknowledge was answered done"),
    ("a2", "A2", 1, "ended in the journal"),
    ("a2-abroad", "A2", 2, "ended in the journal"),
    ("a3", "A3", 0, "outcome released where the table says accepted"),
    ("a5", "A5", 1, "never ended"),
    ("a5-foreign", "A5", 2, "never ended"),
    ("a5-foreign", "A9", None, "another program has set it"),
    ("a12", "A12", None, "capacity-reached"),
    ("s1", "S1", 2, "the store begins at"),
    ("q1-cell", "Q1", 0, "have no rule in cell 9999 of table "),
]


@pytest.mark.parametrize(("name", "code", "index", "words"), CASES, ids=[f"{case[1]}-{case[0]}" for case in CASES])
def test_it_is_named_with_its_tag(
    planted: Planted, result: Result, name: str, code: str, index: int | None, words: str
) -> None:
    rows = result.examples(code, name)
    assert rows, result.classes()
    tag = None if index is None else f"{planted.nodes[name].store}:{planted.sent[name][index].eid}"
    assert tag in [row["tag"] for row in rows]
    assert words in rows[0]["detail"]


@pytest.mark.parametrize("name", [*NAMES, PLAIN])
def test_nothing_else_is_named_there(result: Result, name: str) -> None:
    expected = {code for node, code, _, _ in CASES if node == name} | ({"P5"} if name == "p5" else set())
    named = {entry["class"] for entry in result.manifest["classes"] if name in entry["nodes"]}
    assert named == expected


def test_indeterminate_answers_are_resolved(planted: Planted, result: Result) -> None:
    rows = result.examples("P5", "p5")
    assert sorted(row["detail"] for row in rows) == [
        "answer unknown: found",
        "answer unknown: not found",
        "left by a killed gateway: found",
        "left by a killed gateway: found",
    ]
    store = planted.nodes["p5"].store
    assert {row["tag"] for row in rows} == {None} | {f"{store}:{event.eid}" for event in planted.sent["p5"]}


def test_holes_in_the_evidence_are_named(planted: Planted, result: Result) -> None:
    details = [row["detail"] for row in result.examples("Q1") if row["run"] == planted.holed.name]
    assert "2 outcomes records missing: n 2 to 3" in details
    assert "2 deliveries without outcome record, seqs 1 to 2" in details


def test_the_counts_are_exact(result: Result) -> None:
    assert result.classes() == {
        "P1": 1, "P2": 2, "P3": 3, "P4": 1, "P5": 4, "A1": 3, "A2": 2, "A3": 2, "A5": 3, "A9": 1, "A12": 2, "Q1": 10,
        "S1": 1,
    }  # fmt: skip
    assert result.code == 1


def test_each_is_a_finding_with_a_name_in_the_record(planted: Planted, result: Result) -> None:
    [record] = kept.read(LocalFolder(result.out / "history")).records
    anomalies = {code: count for code, count in result.classes().items() if code not in ("P5", "A12")}
    counted = Counter[str]()
    for finding in record.findings:
        counted[finding.code] += finding.count
    assert counted == anomalies and record.open == sum(anomalies.values())
    [lost] = [finding for finding in record.findings if finding.code == "P1"]
    assert (lost.node, lost.members.parts()) == ("p1", [str(planted.sent["p1"][3].eid)])
    news = json.loads((result.out / "since-last.json").read_text())
    assert news["is_news"] and news["before"] is None and news["counts"]["new"] == len(record.findings)
    assert all(finding.id in result.text for finding in record.findings if finding.code in ("P1", "A9", "S1"))


def test_the_books_close_all_the_same(result: Result) -> None:
    """Every planted fault is accounted for: what is lost, doubled or foreign stands in the sheet."""
    nodes = {node["node"]: node for node in result.manifest["balance"]["nodes"]}
    anomalies = {name: nodes[name]["anomalies"] for name in ("p1", "p2-home", "p2-abroad", "untouched", PLAIN)}
    assert anomalies == {"p1": -1, "p2-home": 0, "p2-abroad": 1, "untouched": 0, PLAIN: 0}
    assert result.manifest["balance"]["difference"] == 0
