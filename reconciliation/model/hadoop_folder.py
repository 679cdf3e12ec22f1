"""A directory that a URI names (`s3a:`, `hdfs:` and what else Hadoop knows), by the file system that Spark has for it.

Its settings are Spark's: `spark.hadoop.fs...`. What is read or written here passes through a scratch directory of this
machine; Spark's executors go there by themselves. Errors: `SetupError`, with the URI.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from reconciliation.model.errors import SetupError
from reconciliation.model.folder import Folder, passing

_NO_CLASS = ("No FileSystem for scheme", "ClassNotFoundException")
_LOAD = "Spark has no file system for it: name its jars by --conf spark.jars=FILE,FILE (docs/reconciliation.md)"
_REACH = "look at its address, your right to write there, and its settings (--conf spark.hadoop.fs...=VALUE)"


@dataclass(frozen=True, slots=True)
class HadoopFolder:
    """`scratch`: a directory of this machine, which is there."""

    session: SparkSession
    uri: str
    scratch: Path

    @property
    def url(self) -> str:
        return self.uri

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> HadoopFolder:
        return HadoopFolder(self.session, f"{self.uri}/{name}", self.scratch)

    def exists(self) -> bool:
        with self._reached() as system:
            return bool(system.exists(self._path()))

    def make(self) -> None:
        with self._reached() as system:
            system.mkdirs(self._path())

    def names(self) -> list[str]:
        with self._reached() as system:
            return sorted(status.getPath().getName() for status in system.listStatus(self._path()))

    def read(self, name: str) -> bytes | None:
        with self._reached() as system, self._passing() as local:
            if not system.exists(self._path(name)):
                return None
            system.copyToLocalFile(False, self._path(name), self._here(local / name), True)
            return (local / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        with self._reached() as system, self._passing() as local:
            (local / name).write_bytes(content)
            beside = self._path(passing(name))
            system.copyFromLocalFile(False, True, self._here(local / name), beside)
            system.delete(self._path(name), False)
            self._rename(system, beside, self._path(name))

    def create(self, name: str, content: bytes) -> bool:
        beside = passing(name)
        with self._reached() as system, self._passing() as local:
            (local / name).write_bytes(content)
            system.copyFromLocalFile(False, True, self._here(local / name), self._path(beside))
            if not system.exists(self._path(name)) and system.rename(self._path(beside), self._path(name)):
                return True
            system.delete(self._path(beside), False)
            if not system.exists(self._path(name)):
                raise self._error(f"{beside} could not be renamed to {name}")
            return False

    def remove(self, name: str) -> None:
        with self._reached() as system:
            system.delete(self._path(name), True)

    def move(self, name: str, to: Folder) -> None:
        assert isinstance(to, HadoopFolder)
        with self._reached() as system:
            system.mkdirs(to._path().getParent())
            self._rename(system, self._path(name), to._path())

    def fetched(self) -> Path:
        local = Path(tempfile.mkdtemp(dir=self.scratch)) / self.uri.rpartition("/")[2]
        with self._reached() as system:
            system.copyToLocalFile(False, self._path(), self._here(local), True)
        return local

    @contextmanager
    def filled(self) -> Iterator[Path]:
        with self._passing() as local:
            yield local
            self.make()
            with self._reached() as system:
                for file in sorted(local.iterdir()):
                    system.copyFromLocalFile(False, True, self._here(file), self._path(file.name))

    @contextmanager
    def _reached(self) -> Iterator[Any]:
        """The file system."""
        try:
            yield self._path().getFileSystem(self.session._jsc.hadoopConfiguration())
        except Py4JJavaError as error:
            raise self._error(str(error.java_exception.toString())) from error

    @contextmanager
    def _passing(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.scratch) as directory:
            yield Path(directory)

    def _error(self, message: str) -> SetupError:
        remedy = _LOAD if any(words in message for words in _NO_CLASS) else _REACH
        return SetupError(f"{self.uri}: {message.strip().splitlines()[0]}; {remedy}")

    def _rename(self, system: Any, source: Any, other: Any) -> None:
        if not system.rename(source, other):
            raise self._error(f"{source.toString()} could not be renamed to {other.toString()}")

    def _path(self, name: str = "") -> Any:
        return self._hadoop(f"{self.uri}/{name}" if name else self.uri)

    def _here(self, file: Path) -> Any:
        return self._hadoop(f"file://{file.absolute()}")

    def _hadoop(self, text: str) -> Any:
        jvm = self.session._jvm
        assert jvm is not None
        return jvm.org.apache.hadoop.fs.Path(text)
