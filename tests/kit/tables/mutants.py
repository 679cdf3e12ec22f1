"""Shipped tables with one rule changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mappings.compiler.check import check_table
from mappings.compiler.compile import Table, compile_table
from mappings.compiler.load import load_table
from mappings.compiler.table_set import SHIPPED
from mappings.language.vocabulary import PROFILES, TABLES

FILES = {name: yaml.safe_load((SHIPPED / "tables" / f"{name}.yaml").read_text(encoding="utf-8")) for name in TABLES}


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
