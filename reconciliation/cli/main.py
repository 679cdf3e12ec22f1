"""`realmgate reconcile --config FILE --out DIR [--from ISO --to ISO]`: the judgement over everything that happened;
`realmgate reconcile --fetch-jars [DIR]`: what that needs for a realm on Kafka.

Exit code: 0 clean, 1 not clean or incomplete (`reconciliation.report.verdict`), 2 could not run.
Progress goes to standard error, the summary to `out`. Runs beside a live gateway.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconciliation.cli.arguments import parsed, window_of
from reconciliation.cli.progress import Progress, SparkWork
from reconciliation.jobs.reconcile import judge
from reconciliation.model import connector, spark
from reconciliation.model.errors import SetupError, SourceError
from reconciliation.model.folder import Folder, LocalFolder, named
from reconciliation.model.hadoop_folder import HadoopFolder
from reconciliation.model.ranges import Extent
from reconciliation.model.settings import Realm, SettingsError, load_realm
from reconciliation.model.spark_settings import Asked
from reconciliation.model.window import Window
from reconciliation.read import increments, landing
from reconciliation.read.increments import Increment
from reconciliation.report import balance, page, report, summary
from reconciliation.report.verdict import verdict_of

CLEAN, ANOMALIES, COULD_NOT_RUN = 0, 1, 2
STEPS = 6
"""Landing, four of `reconciliation.jobs.reconcile.judge`, and the report."""
_MAKING = "making"


def main(argv: Sequence[str], out: TextIO = sys.stdout) -> int:
    arguments = parsed(argv)
    try:
        if arguments.fetch_jars:
            return _fetch(arguments.fetch_jars, dict(arguments.conf), out)
        realm = load_realm(arguments.config)
        window = window_of(arguments)
        asked = Asked(arguments.master, dict(arguments.conf))
        spark.check(asked)
        jars = jars_of(realm, arguments.jars)
        place = named(arguments.out)
        extent = landing.extent_of(realm)
        with scratch_of(place) as scratch:
            session = spark.start(scratch, offsets=extent.offsets, jars=jars, asked=asked)
            try:
                folder = _folder(place, session, scratch)
                state = None if arguments.state is None else _folder(named(arguments.state), session, scratch)
                return run(session, realm, extent, window, folder, out, state=state)
            finally:
                session.stop()
    except (SettingsError, SourceError, SetupError, OSError) as error:
        sys.stderr.write(f"reconcile: {error}\n")
    except (PySparkException, Py4JError) as error:
        sys.stderr.write(f"reconcile: Spark failed: {error}\n")
    return COULD_NOT_RUN


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


def _folder(place: Path | str, session: SparkSession, scratch: Path) -> Folder:
    return LocalFolder(place) if isinstance(place, Path) else HadoopFolder(session, place, scratch)


def _fetch(directory: Path, conf: dict[str, str], out: TextIO) -> int:
    spark.check_java()
    for jar in connector.fetch(directory, conf):
        out.write(f"{jar}\n")
    return CLEAN


def jars_of(realm: Realm, directory: Path | None) -> list[Path]:
    """What is loaded besides Spark; nothing of what spark-submit has brought."""
    return [] if realm.kind != "kafka" or spark.is_loaded(connector.CLASS) else connector.jars_in(directory)


def run(
    session: SparkSession,
    realm: Realm,
    extent: Extent,
    window: Window,
    directory: Folder,
    out: TextIO,
    now_us: int | None = None,
    state: Folder | None = None,
) -> int:
    """With a session that is there: land, judge, report. `now_us`: another time than it is. `state`: where an earlier
    reconciliation has left how far it came, and this one does."""
    now = time.time_ns() // 1000 if now_us is None else now_us
    with Progress(SparkWork(session), "reconcile", STEPS) as progress:
        return _run(session, realm, extent, window, directory, out, now, progress, state)


def _run(
    session: SparkSession, realm: Realm, extent: Extent, window: Window, directory: Folder, out: TextIO, now_us: int,
    progress: Progress, state: Folder | None,
) -> int:  # fmt: skip
    directory.make()
    directory.remove(report.MANIFEST)
    directory.remove(_MAKING)
    making = directory / _MAKING
    progress.begin("landing the realm's records")
    increment = _land(session, realm, extent, directory, now_us, progress, state)
    landed = increment.landed
    try:
        judgement = judge(session, landed, realm, window, making, progress.begin, now_us)
    finally:
        increment.check()  # before all that Spark says of records that were removed meanwhile
    progress.begin("writing the report")
    report.add_findings(making, judgement.findings)
    findings = report.condense(making, window)
    sheet = balance.balance(judgement, findings.totals)
    text = summary.write(realm, window, landed, judgement, findings, sheet)
    shown = page.render(realm, window, landed, judgement, findings, sheet)
    report.publish(_MAKING, directory, window)
    directory.write("summary.txt", text.encode())
    directory.write("index.html", shown.encode())
    verdict = verdict_of(findings, sheet)
    report.write_manifest(directory, window, landed, judgement, findings, sheet, verdict, versions())
    try:
        increment.keep()  # last of all: what ends before has judged nothing
    except SetupError:
        directory.remove(report.MANIFEST)
        raise
    out.write(text)
    out.write(f"\nPage: {directory / 'index.html'}\n")
    progress.end("done")
    return CLEAN if verdict.clean else ANOMALIES


def _land(
    session: SparkSession, realm: Realm, extent: Extent, directory: Folder, now_us: int, progress: Progress,
    state: Folder | None,
) -> Increment:  # fmt: skip
    """Without a state: all of it, and nothing is left for the next one."""
    if state is not None:
        return increments.land(realm, extent, session, state, now_us, progress.note)
    landed = landing.land(realm, extent, session, directory / "landed", note=progress.note)
    return Increment(landed)


def versions() -> dict[str, str]:
    return {name: _version(name) for name in ("realmgate", "pyspark")} | {"connector": connector.CONNECTOR}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"  # its files came in an archive, or with Spark itself
