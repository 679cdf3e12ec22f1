"""The shipped tables, read, checked and compiled once a process: `load_tables` would do it again for each gateway and
each module of tests.

Tables of other directories are read as ever: tests of reading itself give a directory.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mappings.compiler import table_set
from mappings.compiler.table_set import TableSet
from mappings.language.rules import RuleBook
from mappings.language.vocabulary import PROFILES
from mappings.language.yaml_lines import Problem

_read, _compile = table_set.load_rules, table_set.compile_profile


def keep() -> None:
    """From now on."""
    table_set.load_rules, table_set.compile_profile = _load_rules, _compile_profile


def keep_for_forks() -> None:
    """A process that is forked has them."""
    keep()
    for profile in PROFILES:
        _compiled(profile)


def _load_rules(directory: Path | None = None) -> tuple[RuleBook, list[Problem]]:
    """Each caller gets a rule book of its own; the tables in it cannot be changed."""
    if directory is not None:
        return _read(directory)
    rules, problems = _shipped()
    return RuleBook(rules.classification, rules), list(problems)


def _compile_profile(rules: RuleBook, profile: str) -> TableSet:
    shipped, _ = _shipped()
    is_shipped = rules == shipped and rules.classification is shipped.classification
    return _compiled(profile) if is_shipped else _compile(rules, profile)


@cache
def _shipped() -> tuple[RuleBook, list[Problem]]:
    return _read(None)


@cache
def _compiled(profile: str) -> TableSet:
    return _compile(_shipped()[0], profile)
