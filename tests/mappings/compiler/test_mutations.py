"""No shipped rule is idle: change what it says, and exactly the combinations that it hits are decided otherwise.

This also shows that the laws leave every rule some freedom.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mappings.check import check_table
from mappings.compile import Table, compile_table
from mappings.load import load_table
from mappings.table_set import SHIPPED
from mappings.vocabulary import PROFILES, TABLES

FILES = {name: yaml.safe_load((SHIPPED / "tables" / f"{name}.yaml").read_text(encoding="utf-8")) for name in TABLES}
RULES = [
    (name, profile, at)
    for name, document in FILES.items()
    for profile, written in document["profiles"].items()
    for at in range(len(written["rules"]))
]


def compiled(path: Path, name: str) -> dict[str, Table] | None:
    problems: list[Any] = []
    table = load_table(path, TABLES[name], problems)
    if table is None or check_table(table):
        return None
    return {profile: compile_table(table, table.profiles[profile]) for profile in PROFILES}


def mutants(name: str, profile: str, at: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """The file with one `then` changed, and what is changed: in one word, else to what another rule says."""
    then = FILES[name]["profiles"][profile]["rules"][at]["then"]
    others = [rule for written in FILES[name]["profiles"].values() for rule in written["rules"]]
    words = TABLES[name].then
    for key, word in words.items():
        for value in word.values:
            if value != then.get(key, *word.default):
                yield {key: value}, _with(name, profile, at, then | {key: value})
    for other in others:
        if other["then"] != then:
            complete = {key: other["then"].get(key, *word.default) for key, word in words.items()}
            yield complete, _with(name, profile, at, other["then"])


def _with(name: str, profile: str, at: int, then: dict[str, Any]) -> Any:
    document = copy.deepcopy(FILES[name])
    document["profiles"][profile]["rules"][at]["then"] = then
    return document


@pytest.fixture(scope="module")
def shipped() -> dict[str, dict[str, Table] | None]:
    return {name: compiled(SHIPPED / "tables" / f"{name}.yaml", name) for name in TABLES}


def rule_id(number: int, name: str, profile: str, at: int) -> str:
    """Every fourth is named so for the gate; `tests/tiers.py` puts the others into the long tier."""
    return f"{'' if number % 4 else 'gate-'}{name}-{profile}-{FILES[name]['profiles'][profile]['rules'][at]['id']}"


@pytest.mark.parametrize(
    ("name", "profile", "at"), RULES, ids=[rule_id(number, *rule) for number, rule in enumerate(RULES)]
)
def test_a_changed_rule_changes_its_combinations_and_no_other(
    shipped: dict[str, dict[str, Table] | None], tmp_path: Path, name: str, profile: str, at: int
) -> None:
    path = tmp_path / f"{name}.yaml"
    rule = FILES[name]["profiles"][profile]["rules"][at]["id"]
    before = shipped[name]
    assert before is not None
    for change, document in mutants(name, profile, at):
        path.write_text(yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False))
        after = compiled(path, name)
        if after is None:
            continue  # a law forbids this one
        for old, new in zip(before[profile].cells, after[profile].cells, strict=True):
            if old is None or old.rule != rule:
                assert new == old
            else:
                assert new is not None
                assert new.then == {**old.then, **change}
        return
    pytest.fail(f"nothing that rule {rule} says can be changed")
