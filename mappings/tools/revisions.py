"""Where `diff` takes its two sides from: a folder with tables, a git revision of one, or a profile.

Errors: `NoSuchSide` in words.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from mappings.compiler.errors import Errors, errors_of
from mappings.compiler.table_set import TableSet, load_rules
from mappings.language.vocabulary import PROFILES
from mappings.language.yaml_lines import Problem
from mappings.tools.difference import CLASSES, Expanded, read_classes, read_expanded
from mappings.tools.error_table import TABLE as ERROR
from mappings.tools.error_table import error_text, read_errors
from mappings.tools.expand import classes_text, expanded_text
from mappings.tools.inspection import compile_all

Side = dict[tuple[str, str], Expanded]


class NoSuchSide(Exception):
    """It is neither a folder, nor a revision, nor a profile; or it cannot be read."""


def of_directory(directory: Path) -> tuple[Side, list[Problem]]:
    """What the rules of a folder say now, or what is wrong with them."""
    rules, problems = load_rules(directory)
    errors, wrong = errors_of(directory)
    problems += wrong
    return ({} if problems else of_sets(compile_all(rules), errors)), problems


def of_sets(sets: Mapping[str, TableSet], errors: Errors) -> Side:
    side = {
        (profile, name): read_expanded(expanded_text(tables[name]))
        for profile, tables in sets.items()
        for name in tables
    }
    for profile, tables in sets.items():
        side[profile, ERROR] = read_errors(error_text(errors, tables))
        side[CLASSES] = read_classes(classes_text(tables.classify))
    return side


def of_profile(side: Side, profile: str, title: str) -> Side:
    """One profile's tables, under another's name, so that two profiles can be compared."""
    return {(title, name): expanded for (owner, name), expanded in side.items() if owner == profile}


def of_revision(revision: str, directory: Path) -> Side:
    """The expanded tables as they were committed: they need no vocabulary to be read."""
    names = _git(directory, "ls-tree", "--full-tree", "--name-only", f"{revision}:./expanded").split("\n")
    side: Side = {}
    for profile in PROFILES:
        for name in names:
            if name.startswith(f"{profile}.") and name.endswith(".tsv"):
                text = _git(directory, "show", f"{revision}:./expanded/{name}")
                table = name.removeprefix(f"{profile}.").removesuffix(".tsv")
                side[(profile, table)] = read_errors(text) if table == ERROR else read_expanded(text)
    if "classify.tsv" in names:
        side[CLASSES] = read_classes(_git(directory, "show", f"{revision}:./expanded/classify.tsv"))
    if not side:
        raise NoSuchSide(f"revision {revision} has no expanded tables in {directory}/expanded")
    return side


def _git(directory: Path, *words: str) -> str:
    command = ["git", "-C", str(directory), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoSuchSide(f"git cannot be asked: {error}") from None
    if done.returncode:
        raise NoSuchSide(
            f"{words[-1].split(':')[0]} is no folder, no profile and no git revision: {done.stderr.strip()}"
        )
    return done.stdout
