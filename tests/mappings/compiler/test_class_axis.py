"""The axis node_class of a table: proven with the others, and no cost where no rule names a class."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mappings import Slice, load_tables
from mappings.compiler.table_set import load_rules
from mappings.tools.commands import main
from tests.kit.tables.overriding import classify, override, write


@pytest.fixture
def classed(directory: Path) -> Path:
    classify(directory, "orders.bulk.*")
    override(directory, "settle", "rejected-dead-letters", native="discard")
    return directory


def run(*argv: str | Path) -> tuple[int, str]:
    out = io.StringIO()
    return main([str(word) for word in argv], out), out.getvalue()


def test_a_table_that_names_no_class_is_as_it_was(classed: Path) -> None:
    tables, shipped = load_tables(classed), load_tables()
    for name in shipped:
        same = [cell and cell.rule for cell in tables[name].cells] == [
            cell and cell.rule for cell in shipped[name].cells
        ]
        assert same == (name != "settle")
    assert len(tables["settle"].cells) == 2 * len(shipped["settle"].cells)
    assert tables.for_node("orders.bulk.7")["publish"] is tables["publish"]


def test_the_tables_of_a_class_are_slices_with_one_less_axis(classed: Path) -> None:
    tables, shipped = load_tables(classed), load_tables()
    other, bulk = tables.for_node("orders.7")["settle"], tables.for_node("orders.bulk.7")["settle"]
    assert isinstance(other, Slice) and other.axes == shipped["settle"].axes
    assert [cell and cell.rule for cell in other.cells] == [cell and cell.rule for cell in shipped["settle"].cells]
    constants = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
    link = bulk.slice(**constants)
    assert link is bulk.slice(**constants), "links that attach alike share one"
    decision = link.decide(state="rejected", already_settled="no", attempts="below")
    assert decision.rule == "rejected-dead-letters-bulk"
    assert decision is tables["settle"].cells[decision.cell]
    assert tables["settle"].facts(decision.cell) | constants == tables["settle"].facts(decision.cell)
    assert link.constants == {"node_class": "bulk", **constants}


def test_a_gap_and_a_clash_of_a_class_are_reported_with_its_name(classed: Path) -> None:
    path = classed / "tables" / "settle.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("node_class: bulk\n", "node_class: default\n"), encoding="utf-8")
    report = "\n".join(problem.sentence for problem in load_rules(classed)[1])
    assert "clash in extended: both hit node_class=default state=rejected" in report
    assert "no rule hits node_class=bulk state=rejected" in report
    assert "write a rule for when (node_class is bulk and state is rejected" in report


def test_a_scenario_may_name_a_class_and_without_one_speaks_of_all(classed: Path) -> None:
    code, output = run("test", classed)
    assert code == 1
    assert "extended decides node_class=bulk state=rejected already_settled=no" in output
    assert "by rule rejected-dead-letters-bulk: native is discard, expected dead-letter" in output
    path = classed / "scenarios" / "settle_test.yaml"
    text = path.read_text(encoding="utf-8")
    dead = '{state: rejected, already_settled: "no", subscription: [queue, durable]}\n    expect: {then: {native: dead'
    assert text.count(dead) == 1
    path.write_text(text.replace(dead, dead.replace("{state", "{node_class: default, state")), encoding="utf-8")
    code, output = run("test", classed)
    assert (code, "no scenario reaches rule rejected-dead-letters-bulk (extended)" in output) == (1, True), output
    write_more = (
        "  - name: Rejected is discarded\n    profiles: [extended]\n"
        '    given: {node_class: bulk, state: rejected, already_settled: "no", subscription: [queue, durable]}\n'
        "    expect: {then: {native: discard}}\n"
    )
    path.write_text(path.read_text(encoding="utf-8") + write_more, encoding="utf-8")
    assert run("test", classed)[0] == 0


def test_scenarios_of_a_table_with_a_problem_are_not_blamed_for_its_classes(classed: Path) -> None:
    path = classed / "scenarios" / "settle_test.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("given: {state", "given: {node_class: bulk, state", 1))
    table = classed / "tables" / "settle.yaml"
    table.write_text(table.read_text(encoding="utf-8").replace("native: discard", "native: discrad", 1))
    output = run("check", classed)[1]
    assert "discrad" in output and "unknown key" not in output and "node_class" not in output, output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["node=orders.bulk.7"], "node orders.bulk.7: class bulk, transformer as configured"),
        (["settle", "node=orders.bulk.7", "state=rejected"], "  node_class=bulk state=rejected\n"),
        (["settle", "node=orders.7", "node_class=default", "state=rejected"], "  node_class=default state=rejected\n"),
        (["settle", "node=orders.7", "node_class=bulk"], "node orders.7 is of class default; leave node_class out"),
        (["settle", "node_class=slow"], "there is no node_class slow; write one of default, bulk"),
        (["publish", "node_class=bulk"], "there is no axis node_class"),
        (["publish", "node=orders.bulk.7"], "table publish, profile extended"),
    ],
)
def test_explain_classifies_the_node(classed: Path, words: list[str], expected: str) -> None:
    assert expected in run("explain", classed, *words)[1]


def test_diff_names_patterns_that_are_classified_otherwise(classed: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    (before / "tables").parent.mkdir()
    (classed / "tables").rename(before / "tables")
    (classed / "tables").mkdir()
    for path in (before / "tables").iterdir():
        (classed / "tables" / path.name).write_bytes(path.read_bytes())
    rule = {"id": "bulk", "names": ["feeds.*"], "node_class": "bulk", "transformer": "none"}
    rules = [{**rule, "because": "They are.", "source": "3.6"}]
    write(classed, "classify", {"table": "classify", "node_classes": ["default", "bulk"], "rules": rules})
    code, output = run("diff", before, classed)
    assert code == 1
    assert output.splitlines() == [
        "classify: feeds.*: node_class: default -> bulk, transformer: as configured -> none",
        "classify: orders.bulk.*: node_class: bulk -> default",
        "2 combinations decided otherwise",
    ]
