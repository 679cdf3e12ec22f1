"""Where records are landed and reports are kept: a directory of this machine, or one that a URI names.

A plain path and a `file:` URI are directories of this machine. Any other URI is one of a Hadoop file system
(`reconciliation.model.hadoop_folder`). Errors: `SettingsError` for a URI that makes no sense, `OSError`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from reconciliation.model.settings import SettingsError

_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")


class Folder(Protocol):
    """`str()` of it is what an operator named."""

    @property
    def url(self) -> str:
        """As Spark takes it."""

    def __truediv__(self, name: str) -> Folder: ...

    def exists(self) -> bool: ...

    def make(self) -> None:
        """It is there, with all above it."""

    def names(self) -> list[str]:
        """What is in it; it is there."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None: there is none of that name."""

    def write(self, name: str, content: bytes) -> None:
        """A file that is there as a whole or not at all."""

    def create(self, name: str, content: bytes) -> bool:
        """As `write`, and False where there is a file of that name: it stays. Of several at once one gets True, as far
        as the file system can tell."""

    def remove(self, name: str) -> None:
        """A file, or a folder with all that is in it, if it is there."""

    def move(self, name: str, to: Folder) -> None:
        """What has that name here becomes `to`, which is of the same kind and is not there."""

    def fetched(self) -> Path:
        """All of it on this machine, to read."""

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """A directory of this machine, to write to; what is written there is here at the end."""


def passing(name: str) -> str:
    """What a file is called until it is whole and gets its name: no other process writes by it."""
    return f".{name}.{uuid4().hex}"


@dataclass(frozen=True, slots=True)
class LocalFolder:
    path: Path

    @property
    def url(self) -> str:
        return f"file://{self.path.absolute()}"  # not where the default of Hadoop's configuration is

    def __str__(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str) -> LocalFolder:
        return LocalFolder(self.path / name)

    def exists(self) -> bool:
        return self.path.exists()

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        return sorted(file.name for file in self.path.iterdir())

    def read(self, name: str) -> bytes | None:
        file = self.path / name
        return file.read_bytes() if file.exists() else None

    def write(self, name: str, content: bytes) -> None:
        beside = self.path / passing(name)
        beside.write_bytes(content)
        beside.replace(self.path / name)

    def create(self, name: str, content: bytes) -> bool:
        beside = self.path / passing(name)
        try:
            with beside.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(beside, self.path / name)
            except FileExistsError:
                return False
            except OSError:  # a file system without links, as SMB is
                if (self.path / name).exists():
                    return False
                beside.rename(self.path / name)
            return True
        finally:
            beside.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        gone = self.path / name
        if gone.is_dir() and not gone.is_symlink():
            shutil.rmtree(gone)
        else:
            gone.unlink(missing_ok=True)

    def move(self, name: str, to: Folder) -> None:
        assert isinstance(to, LocalFolder)
        to.path.parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).rename(to.path)

    def fetched(self) -> Path:
        return self.path

    @contextmanager
    def filled(self) -> Iterator[Path]:
        self.make()
        yield self.path


def named(text: str) -> Path | str:
    """What the command line names: a directory of this machine, or a URI without a slash at its end."""
    if not _URI.match(text):
        return Path(text)
    parts = urlsplit(text)
    if parts.query or parts.fragment:
        raise SettingsError(f"{text}: a URI of a directory has no ? and no #")
    if parts.scheme.lower() != "file":
        return text.rstrip("/")
    if parts.netloc not in ("", "localhost"):
        raise SettingsError(f"{text}: a file: URI names a directory of this machine; write file:///DIR")
    return Path(unquote(parts.path))
