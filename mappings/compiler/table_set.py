"""The tables of one profile, loaded, checked and compiled, under a digest that says exactly which they are.

Errors: `MappingProblems` with every problem of every file; a table set that exists is sound.
Source: docs/records.md, *Expanded tables*.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mappings.compiler.check import check_table
from mappings.compiler.compile import Origin, Slice, Table, compile_table, table_in_steps
from mappings.compiler.load import load_directory
from mappings.language.classification import Classification
from mappings.language.rules import RuleBook, TableRules
from mappings.language.vocabulary import DEFAULT_PROFILE, NODE_CLASS, PROFILES
from mappings.language.yaml_lines import Problem

SHIPPED = Path(__file__).parent.parent  # holds tables/, scenarios/, expanded/
FORMAT = 2  # of the expanded document; 1 had no `classify`

BECAUSE_CHARACTERS_MAX = 400  # of a rule, as it is stored

NodeTables = Mapping[str, Slice]  # every table, as it decides about one node
Because = Mapping[str, Mapping[str, str]]  # why each rule is as it is: by table and rule


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
        classification: Classification | None = None,
        because: Because | None = None,
    ) -> None:
        """`origin`: that of the tables' decisions. `document`: what was expanded already, with its digest."""
        self.because: Because = because or {}
        self.profile = profile
        self._tables = dict(tables)
        self.origin = origin or Origin(profile)
        self.classify = classification or Classification()  # name of a node -> Classified
        self._by_class: dict[str, NodeTables] = {}
        if document is None:
            self._document = document_of(profile, self.classify, {name: expanded_part(self[name]) for name in self})
            self.origin.digest = digest_of(self._document)
        else:
            self._document = {key: value for key, value in document.items() if key not in ("digest", "stored_us")}
        self.digest = self.origin.digest

    @classmethod
    def read(cls, document: Mapping[str, Any], because: Because | None = None) -> TableSet:
        """The tables that an expanded document holds, whatever the vocabulary is by now. Its digest is believed: it was
        made by us, or the caller has compared it (`digest_of`)."""
        return next(whole for whole in cls.read_in_steps(document, because) if whole is not None)

    @classmethod
    def read_in_steps(cls, document: Mapping[str, Any], because: Because | None = None) -> Iterator[TableSet | None]:
        """The same, some cells at a time, so that others may have their turn in between: None until it is whole."""
        origin = Origin(document["profile"], document["digest"])
        tables: dict[str, Table] = {}
        for name, part in document["tables"].items():
            for table in table_in_steps(name, part, origin):
                if table is not None:
                    tables[name] = table
                yield None
        classification = Classification.read(document.get("classify"))
        yield cls(document["profile"], tables, origin, document, classification, because)

    def for_node(self, name: str) -> NodeTables:
        """The tables as they decide about the node of this name."""
        return self.for_class(self.classify(name).node_class)

    def for_class(self, node_class: str) -> NodeTables:
        """The tables as they decide about nodes of a class. Those whose rules do not speak of classes are as they
        are."""
        tables = self._by_class.get(node_class)
        if tables is None:
            tables = self._by_class[node_class] = {
                name: table.slice(node_class=node_class) if NODE_CLASS in table.axes else table
                for name, table in self._tables.items()
            }
        return tables

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

    def because_to_store(self, stored_us: int) -> Mapping[str, Any]:
        """Why their rules are as they are, in a document of its own with a digest of its own: reasons change no
        decision, so they are not in that of the tables. It has no tables. An earlier release takes it for a set that
        decided nothing."""
        document = {**document_of(self.profile, Classification(), {}), "of": self.digest, "because": self.because}
        return {"digest": digest_of(document), **document, "stored_us": stored_us}


def document_of(profile: str, classification: Classification, parts: Mapping[str, Any]) -> dict[str, Any]:
    """The expanded document, without its digest."""
    return {"v": FORMAT, "profile": profile, "classify": classification.document(), "tables": parts}


def digest_of(document: Mapping[str, Any]) -> str:
    """blake2b-128, in hex, of the document as canonical JSON: keys sorted, no spaces, UTF-8, without `digest` and
    `stored_us` themselves."""
    content = {key: value for key, value in document.items() if key not in ("digest", "stored_us")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def load_rules(directory: Path | None = None) -> tuple[RuleBook, list[Problem]]:
    """The rules of every table under DIRECTORY/tables, checked; None means the shipped ones. Tables with problems of
    their own are left out, so that every problem is reported once."""
    tables, problems = load_directory((directory or SHIPPED) / "tables")
    for table in tables.values():
        problems.extend(check_table(table))
    return tables, problems


def compile_profile(rules: RuleBook, profile: str) -> TableSet:
    """Checked rules of every table, compiled for one profile."""
    origin = Origin(profile)
    tables = {name: compile_table(table, table.profiles[profile], origin) for name, table in rules.items()}
    because = {name: because_of(table, profile) for name, table in rules.items()}
    return TableSet(profile, tables, origin, classification=rules.classification, because=because)


def because_of(table: TableRules, profile: str) -> dict[str, str]:
    """By rule."""
    return {rule.id: rule.because[:BECAUSE_CHARACTERS_MAX] for rule in table.profiles[profile].rules}


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
