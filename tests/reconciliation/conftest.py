"""One Spark for the room: local[1], small data."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from reconciliation.cli import main as commands
from reconciliation.cli.judging import Task
from reconciliation.engine import connector, spark
from reconciliation.model.folder import Folder, LocalFolder
from reconciliation.model.settings import Realm
from reconciliation.model.window import Window
from reconciliation.read import landing


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    started = spark.start(tmp_path_factory.mktemp("spark"), offsets=0, jars=connector.jars_in(None), cores=1)
    yield started
    started.stop()


@dataclass(slots=True)
class Result:
    """What one reconciliation left."""

    code: int
    text: str
    manifest: dict[str, Any]
    out: Path

    def classes(self) -> dict[str, int]:
        return {entry["class"]: entry["count"] for entry in self.manifest["classes"]}

    def rows(self) -> list[dict[str, Any]]:
        """Every finding, as it is written; what only balances the books is none."""
        directory = self.out / "report" / f"window={self.manifest['window']['name']}"
        entries: list[dict[str, Any]] = []
        for part in sorted(directory.glob("class=*")):
            code = part.name.removeprefix("class=")
            if len(code) <= 3 and code[1:].isdigit():
                entries += [{**row, "class": code} for row in ds.dataset(part, format="parquet").to_table().to_pylist()]
        return entries

    def examples(self, code: str, node: str | None = None) -> list[dict[str, Any]]:
        entries = [entry for entry in self.manifest["classes"] if entry["class"] == code]
        return [row for entry in entries for row in entry["examples"] if node is None or row["node"] == node]


Reconcile = Callable[..., Result]


def reconciled(
    session: SparkSession,
    realm: Realm,
    out: Path,
    window: Window | None = None,
    now_us: int | None = None,
    state: Path | Folder | None = None,
    sums: bool = False,
    ledgers: Path | None = None,
) -> Result:
    """As the command does it, but for the session. `out`: an earlier one may have left its landing there; `state`: how
    far it came; `sums` and `ledgers`: as the options of these names."""
    kept, text = LocalFolder(state) if isinstance(state, Path) else state, io.StringIO()
    extent = landing.extent_of(realm)
    task = Task(session, realm, window or Window(), LocalFolder(out), kept, sums=sums)
    if ledgers is not None:
        task = replace(task, ledgers=LocalFolder(ledgers))
    code = commands.run(task, extent, text, now_us=now_us)
    session.catalog.clearCache()
    return Result(code, text.getvalue(), json.loads((out / "manifest.json").read_text()), out)


@pytest.fixture(scope="session")
def reconcile(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Reconcile:
    """Judge a realm with the shared session."""

    def run(realm: Realm, window: Window | None = None, out: Path | None = None, **more: Any) -> Result:
        return reconciled(session, realm, out or tmp_path_factory.mktemp("out"), window, **more)

    return run
