"""Loading again and again, for a process that a gateway asks (`gateway/reload/table_checker_main.py`): files that have
not changed since they were found sound are not read into rules again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mappings.compiler.check import check_table
from mappings.compiler.classify_file import TABLE as CLASSIFY
from mappings.compiler.classify_file import Complain, load_classification, nothing_to_say, unusable_transformers
from mappings.compiler.compile import compile_table
from mappings.compiler.errors import FILE as ERRORS
from mappings.compiler.errors import Errors, shipped_errors, usable_errors_of
from mappings.compiler.load import load_table
from mappings.compiler.table_set import (
    SHIPPED,
    MappingProblems,
    because_of,
    digest_of,
    document_of,
    expanded_part,
    load_tables,
)
from mappings.language.vocabulary import TABLES
from mappings.language.yaml_lines import FILE_BYTES_MAX, Problem


class Loader:
    """Remembers, of each file, the octets that it held, the classes that it could name, what they expanded to, and the
    reasons of its rules."""

    def __init__(self, complain: Complain = nothing_to_say) -> None:
        """`complain`: of transformers."""
        self._complain = complain
        self._errors: tuple[bytes | None, Errors] = None, shipped_errors()
        self._known: dict[tuple[Path, str], tuple[tuple[object, ...], dict[str, Any], dict[str, str]]] = {}

    def answer(self, directory: Path | None, profile: str) -> dict[str, Any]:
        """The document and the native errors, or the problems, as `load_tables` and `usable_errors_of` have them."""
        folder = (directory or SHIPPED) / "tables"
        try:
            if {path.stem for path in folder.glob("*.yaml")} - {CLASSIFY} != TABLES.keys():
                tables = load_tables(directory, profile)
                return {"document": tables.expanded(), "because": tables.because, "errors": None}
            errors, problems = self._read_errors(directory)
            classification, faults = load_classification(folder)
            problems += faults + unusable_transformers(classification, self._complain)
            classes = classification.node_classes
            for name in TABLES:
                problems += self._read(folder / f"{name}.yaml", profile, classes)
        except MappingProblems as error:
            problems = error.problems
        except OSError as error:  # it went this moment, or the disk fails: the world's fault
            return {"problems": [f"{folder}: cannot be read: {error.strerror}"]}
        if problems:
            return {"problems": [f"{problem.place}: {problem.sentence}" for problem in problems]}
        known = {name: self._known[folder / f"{name}.yaml", profile] for name in TABLES}
        document = document_of(profile, classification, {name: part for name, (_, part, _) in known.items()})
        because = {name: reasons for name, (_, _, reasons) in known.items()}
        own = None if errors is shipped_errors() else errors.document()
        return {"document": {"digest": digest_of(document), **document}, "because": because, "errors": own}

    def _read_errors(self, directory: Path | None) -> tuple[Errors, list[Problem]]:
        path = (directory or SHIPPED) / ERRORS
        is_there = directory is not None and path.is_file()
        before = _octets(path) if is_there else None
        if self._errors[0] == before and (before is not None or not is_there):
            return self._errors[1], []
        errors, problems = usable_errors_of(directory)
        if not problems and before is not None and _octets(path) == before:
            self._errors = before, errors
        return errors, problems

    def _read(self, path: Path, profile: str, classes: tuple[str, ...]) -> list[Problem]:
        before = _octets(path)
        known = self._known.get((path, profile))
        if known is not None and known[0] == (before, classes):
            return []
        problems: list[Problem] = []
        table = load_table(path, TABLES[path.stem], problems, classes)
        if table is None:
            return problems
        problems += check_table(table)
        if not problems:
            read = (before, classes) if _octets(path) == before else ()  # changed under us: not to be remembered
            part = expanded_part(compile_table(table, table.profiles[profile]))
            self._known[path, profile] = read, part, because_of(table, profile)
        return problems


def _octets(path: Path) -> bytes | None:
    """What a file holds; None where `load_document` says why it does not read it."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= FILE_BYTES_MAX else None
    except OSError:
        return None
