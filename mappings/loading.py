"""Loading in a process of its own: `python -m mappings.loading` reads a line of JSON, `{"directory", "profile"}`, and
answers with one, `{"document": {...}}` (the expanded tables) or `{"problems": [...]}`; until its input ends.

A gateway asks it to read and check tables while it serves: beside its loop, and beside its interpreter. Files that have
not changed since they were found sound are not read into rules again.
May import: the standard library, `mappings`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mappings.check import check_table
from mappings.classify_file import TABLE as CLASSIFY
from mappings.classify_file import load_classification
from mappings.compile import compile_table
from mappings.load import load_table
from mappings.table_set import SHIPPED, MappingProblems, digest_of, document_of, expanded_part, load_tables
from mappings.vocabulary import TABLES
from mappings.yaml_lines import Problem


class Loader:
    """Remembers, of each file, the octets that it held, the classes that it could name, and what they expanded to."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str], tuple[tuple[object, ...], dict[str, Any]]] = {}

    def answer(self, directory: Path | None, profile: str) -> dict[str, Any]:
        """The document or the problems, as `load_tables` would have them."""
        folder = (directory or SHIPPED) / "tables"
        try:
            if {path.stem for path in folder.glob("*.yaml")} - {CLASSIFY} != TABLES.keys():
                return {"document": load_tables(directory, profile).expanded()}
            classification, problems = load_classification(folder)
            classes = classification.node_classes
            for name in TABLES:
                problems += self._read(folder / f"{name}.yaml", profile, classes)
        except MappingProblems as error:
            problems = error.problems
        except OSError as error:  # it went this moment, or the disk fails: the world's fault
            return {"problems": [f"{folder}: cannot be read: {error.strerror}"]}
        if problems:
            return {"problems": [f"{problem.place}: {problem.said}" for problem in problems]}
        parts = {name: self._known[folder / f"{name}.yaml", profile][1] for name in TABLES}
        document = document_of(profile, classification, parts)
        return {"document": {"digest": digest_of(document), **document}}

    def _read(self, path: Path, profile: str, classes: tuple[str, ...]) -> list[Problem]:
        before = path.read_bytes()
        known = self._known.get((path, profile))
        if known is not None and known[0] == (before, classes):
            return []
        problems: list[Problem] = []
        table = load_table(path, TABLES[path.stem], problems, classes)
        if table is None:
            return problems
        problems += check_table(table)
        if not problems:
            read = (before, classes) if path.read_bytes() == before else ()  # changed under us: not to be remembered
            self._known[path, profile] = read, expanded_part(compile_table(table, table.profiles[profile]))
        return problems


def main() -> None:
    loader = Loader()
    for line in sys.stdin:
        question = json.loads(line)
        directory = Path(question["directory"]) if question["directory"] else None
        said = loader.answer(directory, question["profile"])
        sys.stdout.write(json.dumps(said, separators=(",", ":")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
