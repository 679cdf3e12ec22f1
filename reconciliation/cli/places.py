"""The folders that a command line names: on this machine, or at a URI, which Spark reaches."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from reconciliation.engine import spark
from reconciliation.engine.spark_settings import Asked
from reconciliation.model.folder import Folder, LocalFolder, named
from reconciliation.model.hadoop_folder import HadoopFolder

HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Places:
    """`history`: where records of reconciliations are. `out`: where the report is; None: it was not named."""

    history: Folder
    out: Folder | None


@contextmanager
def scratch_of(place: Path | str) -> Iterator[Path]:
    """A directory of this machine, for as long as Spark runs. Beside it is what Spark says when it starts."""
    base = place if isinstance(place, Path) else Path(tempfile.mkdtemp(prefix="realmgate-reconcile-"))
    scratch = base / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if not isinstance(place, Path):
        shutil.rmtree(base, ignore_errors=True)  # where Spark did not start, an error names a file in it


def folder(place: Path | str, session: SparkSession, scratch: Path) -> Folder:
    return LocalFolder(place) if isinstance(place, Path) else HadoopFolder(session, place, scratch)


def history_of(arguments: argparse.Namespace, session: SparkSession, scratch: Path) -> Folder:
    """Where `--history-in` says, else beside the report."""
    if arguments.history_in is not None:
        return folder(named(arguments.history_in), session, scratch)
    return folder(named(arguments.out), session, scratch) / HISTORY


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[Places]:
    """To look at what earlier reconciliations have left. Spark is started for a URI only."""
    out, history = (None if text is None else named(text) for text in (arguments.out, arguments.history_in))
    if not isinstance(out, str) and not isinstance(history, str):
        local = None if out is None else LocalFolder(out)
        if history is not None:
            yield Places(LocalFolder(history), local)
        else:
            assert local is not None
            yield Places(local / HISTORY, local)
        return
    options = Asked(arguments.master, dict(arguments.conf))
    spark.check(options)
    with scratch_of("") as scratch:
        session = spark.start(scratch, offsets=0, jars=[], options=options)
        try:
            at = None if out is None else folder(out, session, scratch)
            yield Places(history_of(arguments, session, scratch), at)
        finally:
            session.stop()
