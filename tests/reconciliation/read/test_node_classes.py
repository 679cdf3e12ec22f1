"""A cell of another class than its node's is not by the rule (A3)."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from mappings import Decision, TableSet, load_tables
from mappings.compiler.table_set import SHIPPED
from reconciliation.model.tally import Example, Tally, tally_findings
from reconciliation.read.node_classes import NodeClasses
from tests.kit.tables.overriding import classify, override

BULK, OTHER = "orders.bulk.7", "orders.7"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> TableSet:
    directory = tmp_path_factory.mktemp("classed")
    shutil.copytree(SHIPPED / "tables", directory / "tables")
    classify(directory, "orders.bulk.*")
    override(directory, "settle", "rejected-dead-letters", native="discard")
    override(directory, "settled", "done-as-asked", outcome="none")
    return load_tables(directory)


def told(tables: TableSet, node: str | None, node_class: str) -> Tally:
    """A delivery of `node` that was rejected, decided as of a class."""
    by = tables.for_class(node_class)
    link = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
    rule = by["settle"].decide(state="rejected", already_settled="no", attempts="below", **link)
    answer = by["settled"].decide(operation=rule.then["native"], answer="done", peer_settled="no")
    return tally(tables, node, rule, answer)


def tally(tables: TableSet, node: str | None, rule: Decision, answer: Decision) -> Tally:
    return Tally(
        direction="subscribe", node=node, store=7, durable="queue", digest=tables.digest,
        table=rule.table, cell=rule.cell, rule=rule.rule,
        answer_table=answer.table, answer_cell=answer.cell, answer_rule=answer.rule,
        operation=rule.then["native"], cause="disposition", answer="done", native=None, outcome="rejected",
        condition=None, severity=None, presettled=False, inside=True, count=1, at_first=1, at_last=1, mismatch=None,
        example=Example(1, "run", 1, 1, "link", "container"),
    )  # fmt: skip


def test_a_delivery_decided_as_of_its_class_is_well(tables: TableSet) -> None:
    classes = NodeClasses([load_tables().expanded(), tables.expanded()])
    for node, node_class in ((BULK, "bulk"), (OTHER, "default"), (None, "default")):
        delivery = told(tables, node, node_class)
        assert classes.checked(delivery) is delivery


@pytest.mark.parametrize(("node", "node_class"), [(BULK, "default"), (OTHER, "bulk")])
def test_one_decided_as_of_another_class_is_not_by_the_rule(tables: TableSet, node: str, node_class: str) -> None:
    classes = NodeClasses([tables.expanded()])
    delivery = replace(told(tables, node, node_class), mismatch="outcome rejected where the table says none")
    [finding] = tally_findings([classes.checked(delivery)])
    its_own = "bulk" if node == BULK else "default"
    assert finding["class"] == "A3"
    assert finding["detail"] == (
        "outcome rejected where the table says none; "
        f"decided as class {node_class} by settle where its node is of class {its_own}; "
        f"decided as class {node_class} by settled where its node is of class {its_own}"
    )


def test_tables_that_name_no_class_are_not_asked(tables: TableSet) -> None:
    shipped = load_tables()
    document = shipped.expanded()
    del document["classify"]  # version 1
    delivery = replace(told(tables, BULK, "default"), digest=shipped.digest)
    assert NodeClasses([document]).checked(delivery) is delivery
    assert NodeClasses([document, tables.expanded()]).checked(delivery) is delivery
