"""The shipped tables, exhaustively: a slice, a table and a scan of the rules decide every combination alike."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path

import pytest

from mappings import Decision, ImpossibleFacts, MappingProblems, Slice, Table, TableSet, load_tables
from mappings.compiler.table_set import SHIPPED, digest_of, load_rules
from mappings.language.rules import TableRules
from mappings.language.vocabulary import PROFILES, TABLES

LISTED = {"rejected": "agreed", "released": "agreed"}


@pytest.fixture(scope="module", params=PROFILES)
def tables(request: pytest.FixtureRequest) -> TableSet:
    return load_tables(profile=request.param)


def scan(rules: TableRules, profile: str, facts: dict[str, str]) -> str | None:
    """The decision by reading the rules from top to bottom, as a person would; None where it is impossible."""
    at = [values.index(facts[axis]) for axis, values in rules.words.axes.items()]

    def holds(box: tuple[int, ...]) -> bool:
        return all(mask >> position & 1 for mask, position in zip(box, at, strict=True))

    if any(holds(item.box) for item in rules.impossible):
        return None
    hits = [rule.id for rule in rules.profiles[profile].rules if holds(rule.box)]
    assert len(hits) == 1, (facts, hits)
    return hits[0]


def decide(table: Slice, facts: dict[str, str]) -> Decision | None:
    try:
        return table.decide(**facts)
    except ImpossibleFacts:
        return None


@pytest.mark.parametrize("name", TABLES)
def test_table_and_scan_decide_alike(tables: TableSet, name: str) -> None:
    rules, _ = load_rules()
    table = tables[name]
    for cell, values in enumerate(product(*table.axes.values())):
        facts = dict(zip(table.axes, values, strict=True))
        decision = decide(table, facts)
        assert table.cell(**facts) == cell
        assert table.facts(cell) == facts
        assert (decision.rule if decision else None) == scan(rules[name], tables.profile, facts)
        assert decision is table.cells[cell]
        if decision is not None:
            assert (decision.table, decision.cell) == (name, cell)
            assert list(decision.then) == list(TABLES[name].then)


@pytest.mark.parametrize("name", TABLES)
def test_every_slice_is_the_same_decision_object(tables: TableSet, name: str) -> None:
    table = tables[name]
    names = list(table.axes)
    for count in range(len(names) + 1):
        for fixed in combinations(names, count):
            _compare_slices(table, fixed)


def _compare_slices(table: Table, fixed: tuple[str, ...]) -> None:
    for constants in product(*(table.axes[axis] for axis in fixed)):
        given = dict(zip(fixed, constants, strict=True))
        part = table.slice(**given)
        assert list(part.axes) == [axis for axis in table.axes if axis not in fixed]
        for at, values in enumerate(product(*part.axes.values())):
            facts = dict(zip(part.axes, values, strict=True))
            whole = table.cells[table.cell(**given, **facts)]
            assert part.cells[at] is whole
            branch = part.decisions
            for value in facts.values():
                branch = branch.get(value) if branch is not None else None
            assert branch is whole


def test_wrong_facts_are_named(tables: TableSet) -> None:
    table = tables["published"]
    good = {"answer": "stored", "sender_settle_mode": "unsettled", "presettled": "no", **LISTED}
    with pytest.raises(KeyError, match="axis presettled is missing"):
        table.decide(answer="stored", sender_settle_mode="unsettled", **LISTED)
    with pytest.raises(KeyError, match="axis colour"):
        table.decide(**good, colour="red")
    with pytest.raises(ValueError, match="answer has no value 'storred'"):
        table.decide(**{**good, "answer": "storred"})
    with pytest.raises(ImpossibleFacts, match="sender_settle_mode=unsettled presettled=yes"):
        table.decide(**{**good, "presettled": "yes"})
    with pytest.raises(KeyError, match="no axis colour"):
        table.slice(colour="red")
    with pytest.raises(ValueError, match="presettled has no value 'maybe'"):
        table.slice(presettled="maybe")
    with pytest.raises(ImpossibleFacts, match="presettled=yes"):
        table.slice(presettled="yes").decide(answer="stored", sender_settle_mode="unsettled", **LISTED)
    with pytest.raises(KeyError, match="axis presettled is not one that is open"):
        table.slice(presettled="yes").decide(answer="stored", sender_settle_mode="settled", presettled="yes", **LISTED)


def test_a_decision_cannot_be_changed(tables: TableSet) -> None:
    decision = tables["fault"].decide(fault="idle")
    with pytest.raises(TypeError):
        decision.then["scope"] = "link"  # type: ignore[index]


def test_the_expanded_document_carries_its_digest(tables: TableSet) -> None:
    document = tables.expanded()
    assert document["digest"] == tables.digest == digest_of(document | {"stored_us": 1})
    assert len(bytes.fromhex(tables.digest)) == 16
    assert document["v"] == 2
    assert document["classify"] == {"node_classes": ["default"], "rules": {}}
    assert document["profile"] == tables.profile
    assert list(document["tables"]) == list(TABLES)
    again = json.loads(json.dumps(document))
    for name, words in TABLES.items():
        written = again["tables"][name]
        assert written["axes"] == {axis: list(values) for axis, values in words.axes.items()}
        assert written["cells"] == [None if cell is None else cell.rule for cell in tables[name].cells]
        assert set(filter(None, written["cells"])) == written["rules"].keys()
    document["tables"].clear()
    assert tables.expanded()["tables"], "the caller's copy is its own"


def test_the_digest_follows_what_is_decided(tmp_path: Path) -> None:
    shipped = load_tables()
    assert load_tables().digest == shipped.digest
    assert load_tables(profile="um-9.12").digest != shipped.digest
    copy = _copy(tmp_path)
    assert load_tables(copy).digest == shipped.digest
    fault = copy / "tables" / "fault.yaml"
    fault.write_text(fault.read_text().replace('"amqp:not-allowed"', '"amqp:illegal-state"'))
    assert load_tables(copy).digest != shipped.digest
    assert load_tables(copy)["fault"].decide(fault="outcome-not-agreed").then["condition"] == "amqp:illegal-state"


def test_all_problems_of_all_files_are_raised_together(tmp_path: Path) -> None:
    copy = _copy(tmp_path)
    for name, old, new in (
        ("fault", "scope: link", "scope: lnk"),
        ("settled", "when: {answer: done}", "when: {answer: finished}"),
        ("default", "when: {cause: stopped}", "when: {cause: stopped, default_outcome: unset}"),
    ):
        path = copy / "tables" / f"{name}.yaml"
        path.write_text(path.read_text().replace(old, new))
    (copy / "tables" / "attach.yaml").unlink()
    (copy / "tables" / "extra.yaml").write_text("table: extra\n")
    with pytest.raises(MappingProblems) as raised:
        load_tables(copy)
    text = str(raised.value)
    for part in ("scope cannot be lnk", "answer has no value finished", "table default has a gap", "attach is missing"):
        assert part in text
    assert "there is no table extra" in text
    assert text.count("\n") == len(raised.value.problems) - 1


def test_9_10_is_9_12_and_9_9_is_it_without_transactions() -> None:
    documented = load_tables(profile="um-9.12")
    assert [load_tables(profile="um-9.10")[name].cells for name in TABLES] == [
        documented[name].cells for name in TABLES
    ]
    oldest = load_tables(profile="um-9.9")
    about = {("address", "coordinator")}
    about |= {("transactional", word) for word in ("open", "full", "doomed", "unknown")}
    about |= {("state", word) for word in ("transactional", "transactional-full", "transactional-unknown")}
    for name in TABLES:
        for new, old in zip(documented[name].cells, oldest[name].cells, strict=True):
            if old is not None and new != old:
                assert about & oldest[name].facts(old.cell).items(), (name, old)
    alike = [name for name in TABLES if oldest[name].cells == documented[name].cells]
    assert set(TABLES) - set(alike) == {"attach", "publish", "settle"}


def test_an_unknown_profile_or_directory_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(
        MappingProblems, match=r"there is no profile um-9\.11; write um-9\.9 or um-9\.10 or um-9\.12 or extended"
    ):
        load_tables(profile="um-9.11")
    with pytest.raises(MappingProblems, match="is no directory"):
        load_tables(tmp_path / "nowhere")


def _copy(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    for path in (SHIPPED / "tables").glob("*.yaml"):
        (tmp_path / "tables" / path.name).write_text(path.read_text())
    return tmp_path
