"""Every law of the vocabulary refuses something: a shipped rule is rewritten to break it, and the law is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from mappings.compiler.load import load_table
from mappings.compiler.table_set import SHIPPED
from mappings.language.vocabulary import TABLES, Law, TableWords, Value

LAWS = [(name, law) for name, words in TABLES.items() for law in words.laws]


def breaking(words: TableWords, law: Law) -> Iterator[Mapping[str, Value]]:
    """Every `then` that the law speaks of and that does not say what it demands (any, where it demands facts only)."""
    for values in product(*(word.values for word in words.then.values())):
        then = dict(zip(words.then, values, strict=True))
        spoken_of = all(then[key] in allowed for key, allowed in law.given.items())
        if spoken_of and (not law.then or any(then[key] not in allowed for key, allowed in law.then.items())):
            yield then


def problems_of(tmp_path: Path, name: str, when: Mapping[str, Any], then: Mapping[str, Value]) -> list[str]:
    document = yaml.safe_load((SHIPPED / "tables" / f"{name}.yaml").read_text(encoding="utf-8"))
    document["profiles"]["um-9.12"]["rules"][0] |= {"when": dict(when), "then": dict(then)}
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    problems: list[Any] = []
    load_table(path, TABLES[name], problems)
    return [problem.message for problem in problems]


@pytest.mark.parametrize(("name", "law"), LAWS, ids=[f"{name}-{law.says}".replace(" ", "-") for name, law in LAWS])
def test_a_law_refuses_what_breaks_it(tmp_path: Path, name: str, law: Law) -> None:
    words = TABLES[name]
    then = next(breaking(words, law))
    everything: dict[str, Any] = {axis: list(values) for axis, values in words.axes.items()}
    assert any(message.startswith(f"{law.says}: ") for message in problems_of(tmp_path, name, everything, then))


@pytest.mark.parametrize(("name", "law"), [(name, law) for name, law in LAWS if law.facts])
def test_a_law_on_facts_holds_for_each_fact(tmp_path: Path, name: str, law: Law) -> None:
    words = TABLES[name]
    then = next(
        dict(zip(words.then, values, strict=True))
        for values in product(*(word.values for word in words.then.values()))
        if all(dict(zip(words.then, values, strict=True))[key] in allowed for key, allowed in law.given.items())
    )
    lawful = {axis: list(law.facts.get(axis, values)) for axis, values in words.axes.items()}
    for axis in law.facts:
        wide = lawful | {axis: list(words.axes[axis])}
        assert f"{law.says}: {axis} may be something else" in problems_of(tmp_path, name, wide, then)
    assert not any(
        "may be something else" in m for m in problems_of(tmp_path, name, lawful, then) if m.startswith(law.says)
    )
