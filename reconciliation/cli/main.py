"""`realmgate reconcile --config FILE --out DIR [--from ISO --to ISO]`: the judgement over everything that happened;
`realmgate reconcile --fetch-jars [DIR]`: what that needs for a realm on Kafka.

Exit code: 0 clean, or clean but for what is acknowledged; 1 not clean or incomplete (`reconciliation.report.verdict`);
2 could not run. With `--since-last`: 0 nothing is new since the reconciliation before, 1 something is.
Progress goes to standard error, the summary to `out`. Runs beside a live gateway.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconciliation.cli import history
from reconciliation.cli.acknowledge import acknowledge, read_acknowledged
from reconciliation.cli.arguments import parsed, window_of
from reconciliation.cli.places import HISTORY, folder, history_of, scratch_of
from reconciliation.cli.progress import Progress, SparkWork
from reconciliation.history import kept
from reconciliation.history.acknowledged import NOTHING, Acknowledged
from reconciliation.jobs.reconcile import judge
from reconciliation.model import connector, spark
from reconciliation.model.errors import SetupError, SourceError
from reconciliation.model.folder import Folder, LocalFolder, named
from reconciliation.model.ranges import Extent
from reconciliation.model.settings import Realm, SettingsError, load_realm
from reconciliation.model.spark_settings import Asked
from reconciliation.model.window import Window
from reconciliation.read import increments, landing
from reconciliation.read.increments import Increment
from reconciliation.report import page, report, summary
from reconciliation.report.result import result_of

CLEAN, ANOMALIES, COULD_NOT_RUN = 0, 1, 2
STEPS = 6
"""Landing, four of `reconciliation.jobs.reconcile.judge`, and the report."""
_MAKING = "making"


def main(argv: Sequence[str], out: TextIO = sys.stdout) -> int:
    arguments = parsed(argv)
    try:
        if arguments.acknowledge:
            return acknowledge(arguments, out, time.time_ns() // 1000)
        if arguments.history:
            return history.show(arguments, out)
        if arguments.fetch_jars:
            return _fetch(arguments.fetch_jars, dict(arguments.conf), out)
        realm = load_realm(arguments.config)
        window = window_of(arguments)
        asked = Asked(arguments.master, dict(arguments.conf))
        spark.check(asked)
        jars = jars_of(realm, arguments.jars)
        place = named(arguments.out)
        file = arguments.acknowledged
        known = None if isinstance(place, str) else read_acknowledged(file, LocalFolder(place))  # before Spark starts
        extent = landing.extent_of(realm)
        with scratch_of(place) as scratch:
            session = spark.start(scratch, offsets=extent.offsets, jars=jars, asked=asked)
            try:
                directory = folder(place, session, scratch)
                state = None if arguments.state is None else folder(named(arguments.state), session, scratch)
                acknowledged = read_acknowledged(file, directory) if known is None else known
                earlier = Earlier(history_of(arguments, session, scratch), arguments.since_last, acknowledged)
                return run(session, realm, extent, window, directory, out, state=state, earlier=earlier)
            finally:
                session.stop()
    except (SettingsError, SourceError, SetupError, OSError) as error:
        sys.stderr.write(f"reconcile: {error}\n")
    except (PySparkException, Py4JError) as error:
        sys.stderr.write(f"reconcile: Spark failed: {error}\n")
    return COULD_NOT_RUN


def _fetch(directory: Path, conf: dict[str, str], out: TextIO) -> int:
    spark.check_java()
    for jar in connector.fetch(directory, conf):
        out.write(f"{jar}\n")
    return CLEAN


def jars_of(realm: Realm, directory: Path | None) -> list[Path]:
    """What is loaded besides Spark; nothing of what spark-submit has brought."""
    return [] if realm.kind != "kafka" or spark.is_loaded(connector.CLASS) else connector.jars_in(directory)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier reconciliations and operators have left. `history`: where records are; None: beside the report.
    `since_last`: only what is new since the last one is to be named."""

    history: Folder | None = None
    since_last: bool = False
    acknowledged: Acknowledged = NOTHING


def run(
    session: SparkSession,
    realm: Realm,
    extent: Extent,
    window: Window,
    directory: Folder,
    out: TextIO,
    now_us: int | None = None,
    state: Folder | None = None,
    earlier: Earlier = Earlier(),
) -> int:
    """With a session that is there: land, judge, report. `now_us`: another time than it is. `state`: where an earlier
    reconciliation has left how far it came, and this one does."""
    now = time.time_ns() // 1000 if now_us is None else now_us
    with Progress(SparkWork(session), "reconcile", STEPS) as progress:
        return _run(session, realm, extent, window, directory, out, now, progress, state, earlier)


def _run(
    session: SparkSession, realm: Realm, extent: Extent, window: Window, directory: Folder, out: TextIO, now_us: int,
    progress: Progress, state: Folder | None, earlier: Earlier,
) -> int:  # fmt: skip
    began_s = time.monotonic()
    directory.make()
    records = earlier.history or directory / HISTORY
    records.make()  # now: what keeps it from being written is known before an hour of judging
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
    findings = report.condense(making, window, judgement.catalog.parts)
    known, took_s = kept.read(records, kept.LOOKED_AT), time.monotonic() - began_s
    result = result_of(
        realm, window, landed, judgement, findings, known, earlier.acknowledged, versions(), now_us, took_s
    )
    text = summary.write(result)
    shown = page.render(result)
    report.publish(_MAKING, directory, window)
    directory.write("summary.txt", text.encode())
    directory.write("index.html", shown.encode())
    report.write_since(directory, result.since)
    verdict = result.verdict
    report.write_manifest(
        directory, window, landed, judgement, findings, result.sheet, verdict, versions(), result.known
    )
    try:
        increment.keep()  # after all of the report: what ends before has judged nothing
    except SetupError:
        directory.remove(report.MANIFEST)
        raise
    kept.keep(records, result.record)
    out.write(summary.since_last(result) if earlier.since_last else text)
    out.write(f"\nPage: {directory / 'index.html'}\n")
    progress.end("done")
    if earlier.since_last:
        return ANOMALIES if result.since.is_news else CLEAN
    return CLEAN if verdict.passes else ANOMALIES


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
