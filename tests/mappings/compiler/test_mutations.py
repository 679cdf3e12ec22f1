"""No shipped rule is idle: change what it says, and exactly the combinations that it hits are decided otherwise.

This also shows that the laws leave every rule some freedom.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mappings.compiler.compile import Table
from mappings.compiler.table_set import SHIPPED
from mappings.language.vocabulary import TABLES
from tests.kit.tables.mutants import FILES, compiled, mutants

RULES = [
    (name, profile, at)
    for name, document in FILES.items()
    for profile, written in document["profiles"].items()
    for at in range(len(written["rules"]))
]


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
