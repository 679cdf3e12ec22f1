"""The tables of one profile, loaded, checked and compiled, under a digest that says exactly which they are.

Errors: `MappingProblems` with every problem of every file; a table set that exists is sound.
Source: docs/records.md, *Expanded tables*. May import: the standard library, `mappings`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mappings.check import check_table
from mappings.compile import Origin, Table, compile_table, table_of
from mappings.load import load_directory
from mappings.rules import TableRules
from mappings.vocabulary import DEFAULT_PROFILE, PROFILES
from mappings.yaml_lines import Problem

SHIPPED = Path(__file__).parent  # holds tables/, scenarios/, expanded/


class MappingProblems(Exception):
    """The tables cannot be used; `problems` is all that is wrong with them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class TableSet:
    """Every table of one profile."""

    def __init__(
        self,
        profile: str,
        tables: Mapping[str, Table],
        origin: Origin | None = None,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        """`origin`: that of the tables' decisions. `document`: what was expanded already, with its digest."""
        self.profile = profile
        self._tables = dict(tables)
        self.origin = origin or Origin(profile)
        if document is None:
            expanded = {name: expanded_part(self[name]) for name in self}
            self._document: dict[str, Any] = {"v": 1, "profile": profile, "tables": expanded}
            self.origin.digest = digest_of(self._document)
        else:
            self._document = {key: document[key] for key in ("v", "profile", "tables")}
        self.digest = self.origin.digest

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> TableSet:
        """The tables that an expanded document holds, whatever the vocabulary is by now. Its digest is believed: it was
        made by us, or the caller has compared it (`digest_of`)."""
        return next(whole for whole in cls.read_in_steps(document) if whole is not None)

    @classmethod
    def read_in_steps(cls, document: Mapping[str, Any]) -> Iterator[TableSet | None]:
        """The same, a table at a time, so that others may have their turn in between: None until it is whole."""
        origin = Origin(document["profile"], document["digest"])
        tables: dict[str, Table] = {}
        for name, part in document["tables"].items():
            tables[name] = table_of(name, part, origin)
            yield None
        yield cls(document["profile"], tables, origin, document)

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def expanded(self) -> dict[str, Any]:
        """The document that is stored under the digest, but for `stored_us`."""
        document: dict[str, Any] = json.loads(json.dumps(self._document))  # a copy: the caller may add to it
        return {"v": document.pop("v"), "digest": self.digest, **document}

    def to_store(self, stored_us: int) -> Mapping[str, Any]:
        """The same with the time, not copied: to be written out at once, never changed."""
        return {"digest": self.digest, **self._document, "stored_us": stored_us}


def digest_of(document: Mapping[str, Any]) -> str:
    """blake2b-128, in hex, of the document as canonical JSON: keys sorted, no spaces, UTF-8, without `digest` and
    `stored_us` themselves."""
    content = {key: value for key, value in document.items() if key not in ("digest", "stored_us")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def load_rules(directory: Path | None = None) -> tuple[dict[str, TableRules], list[Problem]]:
    """The rules of every table under DIRECTORY/tables, checked; None means the shipped ones. Tables with problems of
    their own are left out, so that every problem is told once."""
    tables, problems = load_directory((directory or SHIPPED) / "tables")
    for table in tables.values():
        problems.extend(check_table(table))
    return tables, problems


def compile_profile(rules: Mapping[str, TableRules], profile: str) -> TableSet:
    """Checked rules of every table, compiled for one profile."""
    origin = Origin(profile)
    tables = {name: compile_table(table, table.profiles[profile], origin) for name, table in rules.items()}
    return TableSet(profile, tables, origin)


def load_tables(directory: Path | None = None, profile: str = DEFAULT_PROFILE) -> TableSet:
    """The tables to decide by. Raises `MappingProblems` with everything that is wrong, never a table set that half
    works."""
    if profile not in PROFILES:
        where = str(directory or SHIPPED)
        raise MappingProblems([Problem(where, 1, f"there is no profile {profile}", f"write {' or '.join(PROFILES)}")])
    rules, problems = load_rules(directory)
    if problems:
        raise MappingProblems(problems)
    return compile_profile(rules, profile)


def expanded_part(table: Table) -> dict[str, Any]:
    """What the document says of one table."""
    return {
        "axes": {axis: list(values) for axis, values in table.axes.items()},
        "rules": {rule: dict(then) for rule, then in table.rules.items()},
        "cells": [None if decision is None else decision.rule for decision in table.cells],
    }
