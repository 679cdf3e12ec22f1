"""Classes of nodes: by name, one rule at most, remembered within bounds, kept in the expanded document."""

from __future__ import annotations

from pathlib import Path

import pytest

from mappings import TableSet, load_tables
from mappings.compiler.classify_file import PATTERNS_MAX, read_classification
from mappings.language.classification import NAMES_KEPT, Classified

CLASSIFY = """
table: classify
node_classes: [default, bulk]
rules:
  - id: bulk-orders
    names: ["orders.bulk.*", "feed"]
    unless: ["orders.bulk.audit"]
    node_class: bulk
    transformer: none
    because: No one waits for one of these.
    source: "3.6"
  - id: audited
    names: ["*.audit"]
    unless: ["orders.bulk.*.audit"]
    transformer: complete
    because: Others read these, too.
    source: "3.6"
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders.bulk.7", Classified("bulk", "none", "bulk-orders")),
        ("orders.bulk.", Classified("bulk", "none", "bulk-orders")),
        ("feed", Classified("bulk", "none", "bulk-orders")),
        ("orders.bulk.audit", Classified("default", "complete", "audited")),
        ("feeds", Classified("default", None, None)),
        ("Orders.bulk.7", Classified("default", None, None)),
        ("orders.bulk", Classified("default", None, None)),
    ],
)
def test_a_name_is_of_the_class_of_the_one_rule_that_matches(directory: Path, name: str, expected: Classified) -> None:
    (directory / "tables" / "classify.yaml").write_text(CLASSIFY, encoding="utf-8")
    tables = load_tables(directory)
    assert tables.classify(name) == expected
    again = TableSet.read(tables.expanded())
    assert again.classify(name) == expected, "the stored document says the same"
    assert again.digest == tables.digest


def test_the_class_is_part_of_the_digest(directory: Path) -> None:
    path = directory / "tables" / "classify.yaml"
    digests = set()
    for text in (CLASSIFY, CLASSIFY.replace("feed", "food"), CLASSIFY.replace("complete", "basic")):
        path.write_text(text, encoding="utf-8")
        digests.add(load_tables(directory).digest)
    assert len(digests) == 3


def test_without_the_file_every_node_is_like_any_other(directory: Path) -> None:
    (directory / "tables" / "classify.yaml").unlink()
    assert load_tables(directory).digest == load_tables().digest
    assert load_tables(directory).classify("orders.bulk.7") == Classified("default", None, None)


def test_a_document_of_version_1_classifies_nothing() -> None:
    document = load_tables().expanded()
    del document["classify"]
    document["v"] = 1
    tables = TableSet.read(document)
    assert tables.classify("orders") == Classified()
    assert tables.to_store(1) == {**document, "stored_us": 1}, "and is stored as it was"


def test_names_that_peers_choose_are_remembered_within_bounds() -> None:
    classify = load_tables().classify
    for number in range(NAMES_KEPT + 10):
        classify(f"node{number}")
    assert 0 < len(classify._known) <= NAMES_KEPT


def test_many_patterns_are_proven_apart_in_time(tmp_path: Path) -> None:
    path = tmp_path / "classify.yaml"
    rule = "  - {{id: r{0}, names: ['{1}'], node_class: bulk, because: why, source: '3.6'}}\n"
    head = "table: classify\nnode_classes: [default, bulk]\nrules:\n"
    path.write_text(head + "".join(rule.format(n, f"*.n{n}.*") for n in range(PATTERNS_MAX)), encoding="utf-8")
    _, problems = read_classification(path)
    assert "both match .n0.n1." in problems[1].message
    assert "after 50,000 steps it is not known" in problems[0].message, "no one waits for ever"
    path.write_text(head + "".join(rule.format(n, f"a.n{n}.*") for n in range(PATTERNS_MAX)), encoding="utf-8")
    assert read_classification(path)[1] == []
    path.write_text(head + "".join(rule.format(n, f"a.n{n}.*") for n in range(PATTERNS_MAX + 1)), encoding="utf-8")
    [problem] = read_classification(path)[1]
    assert (problem.message, problem.remedy) == ("501 patterns", "write at most 500")
