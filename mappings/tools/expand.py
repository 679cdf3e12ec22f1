"""Expanded tables: every combination on a line of its own, `expanded/PROFILE.TABLE.tsv`, kept beside the rules so
that a review shows what a change of rules changes. Combinations that are declared impossible are left out.

Columns, tab-separated: cell (its number in the full product), one per axis, rule, then (`key=value`, only what is not
null). `expanded/classify.tsv` has a line for each pattern of names: names, unless, rule, then. `PROFILE.error.tsv`, of
native errors: `mappings/tools/error_table.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mappings.compiler.classify_file import TABLE as CLASSIFY
from mappings.compiler.compile import Table
from mappings.compiler.errors import Errors
from mappings.compiler.table_set import TableSet
from mappings.language.classification import Classification
from mappings.language.reader import shown
from mappings.language.yaml_lines import Problem
from mappings.tools.error_table import TABLE as ERROR
from mappings.tools.error_table import error_text


def expanded_text(table: Table) -> str:
    """The file of one table in one profile."""
    lines = ["\t".join(("cell", *table.axes, "rule", "then"))]
    for decision in table.cells:
        if decision is not None:
            facts = table.facts(decision.cell).values()
            lines.append("\t".join((str(decision.cell), *facts, decision.rule, write_then(decision.then))))
    return "\n".join(lines) + "\n"


def classes_text(classification: Classification) -> str:
    """The file of the classes: all profiles have the same."""
    lines = ["\t".join(("names", "unless", "rule", "then"))]
    for rule in classification.rules:
        then = write_then({"node_class": rule.node_class, "transformer": rule.transformer})
        unless = json.dumps(rule.unless, ensure_ascii=False)
        lines += ["\t".join((pattern, unless, rule.id, then)) for pattern in rule.names]
    return "\n".join(lines) + "\n"


def write_then(then: Mapping[str, Any]) -> str:
    """`native=none outcome=accepted settle=true`: what is null is left out."""
    return " ".join(f"{key}={shown(value)}" for key, value in then.items() if value is not None)


def write_expanded(directory: Path, sets: Mapping[str, TableSet], errors: Errors) -> list[Path]:
    """Write the files that are out of date and remove those of no table; returns the ones that were touched."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = _wanted(directory, sets, errors)
    touched = [path for path in sorted(directory.glob("*.tsv")) if path not in wanted]
    for path in touched:
        path.unlink()
    for path, text in wanted.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            touched.append(path)
    return touched


def check_expanded(directory: Path, sets: Mapping[str, TableSet], errors: Errors) -> list[Problem]:
    """Where the files differ from what the rules say now: the first line of each."""
    wanted = _wanted(directory, sets, errors)
    problems = [
        Problem(str(path), 1, "is of no table and profile", "remove it")
        for path in sorted(directory.glob("*.tsv"))
        if path not in wanted
    ]
    for path, text in wanted.items():
        if not path.is_file():
            problems.append(Problem(str(path), 1, "the expanded table is missing", "run realmgate mappings expand"))
        elif (line := _first_difference(path.read_text(encoding="utf-8"), text)) is not None:
            message = "the expanded table is out of date from this line on"
            problems.append(Problem(str(path), line, message, "run realmgate mappings expand and review the change"))
    return problems


def _wanted(directory: Path, sets: Mapping[str, TableSet], errors: Errors) -> dict[Path, str]:
    texts = {
        directory / f"{profile}.{name}.tsv": expanded_text(tables[name])
        for profile, tables in sets.items()
        for name in tables
    }
    for profile, tables in sets.items():
        texts[directory / f"{profile}.{ERROR}.tsv"] = error_text(errors, tables)
        texts[directory / f"{CLASSIFY}.tsv"] = classes_text(tables.classify)
    return texts


def _first_difference(old: str, new: str) -> int | None:
    pairs = zip_longest(old.split("\n"), new.split("\n"))
    return next((number for number, (was, now) in enumerate(pairs, start=1) if was != now), None)
