"""The Python files of the tree, for rules that read code and do not import it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def source_files(trees: Iterable[str]) -> dict[str, str]:
    """The text of each file below these folders, by its path."""
    files = [file for tree in trees for file in sorted((ROOT / tree).rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}
