"""`docs/tables-vocabulary.md` and the vocabulary say the same, so the one that operators read is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mappings.language.citations import CITATIONS, ROWS
from mappings.language.vocabulary import CONDITIONS, PROFILES, TABLES, TableWords, Value

DOCUMENT = (Path(__file__).parents[3] / "docs" / "tables-vocabulary.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (\w+): .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = {match[1]: match[0] for match in SECTION.finditer(DOCUMENT)}
BARE = {"settle": (False, True), "condition": (None, *CONDITIONS), "class": (None, "fatal", "transient")}


def documented_axes(section: str) -> dict[str, tuple[str, ...]]:
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", section, re.MULTILINE)
    return {axis: tuple(values.split(", ")) for axis, values in rows if axis != "axis"}


def documented_then(section: str, words: TableWords) -> dict[str, set[Value]]:
    """`key: a|b` names the values; a bare key has those that it has in every table."""
    match = re.search(r"`then: \{(.*?)\}", section)
    assert match
    named: dict[str, set[Value]] = {}
    for part in match[1].split(", "):
        key, _, values = part.partition(": ")
        options: tuple[Value, ...] = tuple(values.split("|")) if values else BARE[key]
        named[key] = {{"true": True, "false": False}.get(str(value), value) for value in options}
    if words.name == "fault":
        named["condition"].discard(None)  # a scope never closes without saying why
    return named


def test_the_document_has_every_table_in_order() -> None:
    assert list(SECTIONS) == list(TABLES)
    named = re.search(r"^Profiles: ((?:`[^`]+`(?:, )?)+)", DOCUMENT, re.MULTILINE)
    assert named and tuple(re.findall(r"`([^`]+)`", named[1])) == PROFILES


@pytest.mark.parametrize("name", TABLES)
def test_axes_and_then_are_as_documented(name: str) -> None:
    words = TABLES[name]
    assert documented_axes(SECTIONS[name]) == dict(words.axes)
    assert list(documented_axes(SECTIONS[name])) == list(words.axes)
    assert documented_then(SECTIONS[name], words) == {key: set(word.values) for key, word in words.then.items()}
    assert list(documented_then(SECTIONS[name], words)) == list(words.then)


def test_laws_speak_of_words_that_exist() -> None:
    for words in TABLES.values():
        for law in words.laws:
            for key, values in (*law.given.items(), *law.then.items()):
                assert set(values) <= set(words.then[key].values), (words.name, law.says)
            for axis, facts in law.facts.items():
                assert set(facts) < set(words.axes[axis]), (words.name, law.says)


def test_ids_that_may_be_cited() -> None:
    assert len(set(ROWS)) == len(ROWS) == 47
    assert {"S-A5", "P-R2d", "1.3-Q", "2.H-15", "2.W-21", "NF-10", "3.6", "P2"} <= CITATIONS
    assert not {"S-A10", "P-R2e", "1.3-R", "2.H-16", "2.Z-1", "NF-11"} & CITATIONS
