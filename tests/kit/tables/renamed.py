"""The tables of a gateway that is reloaded, in a folder of its own: shipped ones, but for the name of one rule, which
is another one each time, or a file that is not sound. Behaviour stays, so every guarantee holds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from mappings import load_tables
from mappings.compiler.table_set import SHIPPED

RULE = "id: stored-accepted"


class Tables:
    """`directory` is what `mappings.dir` names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not directory.exists():
            shutil.copytree(SHIPPED / "tables", directory / "tables")
        self._text = (SHIPPED / "tables" / "published.yaml").read_text()
        assert self._text.count(f"{RULE}\n") == 1

    def rename(self, number: int) -> str:
        """A sound set that was not there before; its digest."""
        self._write(self._text.replace(f"{RULE}\n", f"{RULE}-{number}\n"))
        return load_tables(self.directory).digest

    def spoil(self) -> None:
        self._write(self._text.replace(RULE, "id: [no, name]"))

    def _write(self, text: str) -> None:
        (self.directory / "tables" / "published.yaml").write_text(text)
