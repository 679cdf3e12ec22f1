"""`docs/conformance/readings.md`: every reading of what the documents leave open has its place and its test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mappings.compiler.table_set import load_rules
from tests.kit.tables.um_rows import SEED

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "conformance" / "readings.md"
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [A-Z] \|", line)
]
RULES = {
    f"{name}.{rule.id}": rule
    for name, table in load_rules()[0].items()
    for profile in table.profiles.values()
    for rule in profile.rules
}
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests" / "wire").rglob("test_*.py")))


def test_every_reading_has_a_line() -> None:
    assert [letter for letter, *_ in LINES] == list("ABCDEFGHIJKLMNOPQ")


@pytest.mark.parametrize(("letter", "where", "shown"), [(line[0], line[3], line[4]) for line in LINES])
def test_what_a_line_names_is_there_and_speaks_of_it(letter: str, where: str, shown: str) -> None:
    rules = re.findall(r"`([a-z]+\.[a-z0-9-]+)`", where)
    citing = [f"1.3-{letter}" in RULES[rule].sources for rule in rules]
    for path in re.findall(r"\(\.\./adr/([^)]+)\)", where):
        text = (ROOT / "docs" / "adr" / path).read_text(encoding="utf-8")
        citing.append(f"1.3-{letter}`" in text or "`1.3-A` to `1.3-Q`" in text)
    assert citing and any(citing), where
    assert all(citing), f"{where}: a rule or an ADR that does not cite 1.3-{letter}"
    named = re.findall(r"`(test_\w+)`", shown)
    assert all(f"def {test}(" in TESTS for test in named), named
    rows = re.findall(r"\b[SPT]-[A-Z0-9]+[a-e]?\b", shown)
    assert set(rows) <= SEED.keys() and (rows or named), shown
