"""`realmgate reconcile --config FILE --out DIR [--from ISO --to ISO]`: the judgement over everything that happened;
`realmgate reconcile --fetch-jars [DIR]`: what that needs for a realm on Kafka.

Exit code: 0 clean, or clean but for what is acknowledged; 1 not clean or incomplete (`reconciliation.report.verdict`);
2 could not run. With `--since-last`: 0 nothing is new since the reconciliation before, 1 something is. With `--every`:
0 it was stopped.
Progress goes to standard error, the summary to `out`. Runs beside a live gateway.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from reconciliation.cli import history
from reconciliation.cli.acknowledge import acknowledge, read_acknowledged
from reconciliation.cli.arguments import parsed, window_of
from reconciliation.cli.judging import ALONE, ROWS_NEEDED, Earlier, Task, judged
from reconciliation.cli.listening import listening
from reconciliation.cli.places import folder, history_of, scratch_of
from reconciliation.cli.progress import Progress, SparkWork
from reconciliation.cli.rounds import Rounds, Stopped, signals
from reconciliation.engine import class_archive, connector, java, spark
from reconciliation.engine.spark_settings import Asked
from reconciliation.ledgers import lines
from reconciliation.model.errors import SetupError, SourceError
from reconciliation.model.folder import LocalFolder, named
from reconciliation.model.ranges import Extent
from reconciliation.model.settings import Realm, SettingsError, load_realm
from reconciliation.model.window import Window
from reconciliation.read import landing
from reconciliation.report import latest, summary
from reconciliation.report.latest import Latest

CLEAN, ANOMALIES, COULD_NOT_RUN = 0, 1, 2


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
        options = Asked(arguments.master, dict(arguments.conf))
        spark.check(options)
        jars = jars_of(realm, arguments.jars)
        place = named(arguments.out)
        file = arguments.acknowledged
        known = None if isinstance(place, str) else read_acknowledged(file, LocalFolder(place))  # before Spark starts
        if arguments.ledgers is not None and isinstance(noted := named(arguments.ledgers), Path):
            lines.check(LocalFolder(noted))
        extent = landing.extent_of(realm)
        sums = _by_sums(arguments, window)
        few = sums and not _needed_rows(arguments.state)
        with scratch_of(place) as scratch:
            session = spark.start(scratch, offsets=extent.offsets, jars=jars, options=options, of_sums=few)
            try:
                directory = folder(place, session, scratch)
                state = None if arguments.state is None else folder(named(arguments.state), session, scratch)
                records = history_of(arguments, session, scratch)
                repeated = arguments.every is not None
                ledgers = None if arguments.ledgers is None else folder(named(arguments.ledgers), session, scratch)
                task = Task(session, realm, window, directory, state, repeated, sums, ledgers)
                if repeated:
                    return _go_on(
                        task, arguments, lambda: Earlier(records, True, read_acknowledged(file, directory)), out
                    )
                acknowledged = read_acknowledged(file, directory) if known is None else known
                return run(task, extent, out, Earlier(records, arguments.since_last, acknowledged))
            finally:
                spark.stop(session)
    except (SettingsError, SourceError, SetupError, OSError) as error:
        sys.stderr.write(f"reconcile: {error}\n")
    except (PySparkException, Py4JError) as error:
        sys.stderr.write(f"reconcile: Spark failed: {error}\n")
    return COULD_NOT_RUN


def _by_sums(arguments: argparse.Namespace, window: Window) -> bool:
    """Where nothing is said of sums: they tell of all the time, and a state keeps them."""
    return arguments.state is not None and window == Window() if arguments.sums is None else bool(arguments.sums)


def _needed_rows(state: str) -> bool:
    """The reconciliation before had to read all rows: this one may have to. Not known of a state at a URI."""
    place = named(state)
    return isinstance(place, Path) and LocalFolder(place).read(ROWS_NEEDED) is not None


def _go_on(task: Task, arguments: argparse.Namespace, earlier: Callable[[], Earlier], out: TextIO) -> int:
    """`--every`: until a signal ends it."""

    def say(text: str) -> None:
        out.write(text)
        out.flush()

    def now_us() -> int:
        return time.time_ns() // 1000

    rounds = Rounds(task, arguments.every, earlier, say, now_us)
    with listening(arguments.listen, rounds.latest, now_us) as port:
        if port:
            say(f"reconcile: GET /metrics and GET /verdict on port {port}\n")
        try:
            with signals(rounds.stop):
                rounds.go_on()
        except Stopped:
            say("reconcile: stopped\n")
    return CLEAN


def _fetch(directory: Path, conf: dict[str, str], out: TextIO) -> int:
    java.check()
    for jar in connector.fetch(directory, conf):
        out.write(f"{jar}\n")
    try:
        out.write(f"{class_archive.make(directory)}\n")
    except SetupError as error:
        sys.stderr.write(f"reconcile: no archive of Spark's classes: {error}. Spark starts without it, and slower\n")
    return CLEAN


def jars_of(realm: Realm, directory: Path | None) -> list[Path]:
    """What is loaded besides Spark; nothing of what spark-submit has brought."""
    return [] if realm.kind != "kafka" or spark.is_loaded(connector.CLASS) else connector.jars_in(directory)


def run(task: Task, extent: Extent, out: TextIO, earlier: Earlier = ALONE, now_us: int | None = None) -> int:
    """With a session that is there: land, judge, report. `now_us`: another time than it is."""
    now = time.time_ns() // 1000 if now_us is None else now_us
    with Progress(SparkWork(task.session), "reconcile", task.steps) as progress:
        result = judged(task, extent, earlier, now, progress)
        latest.write(task.directory, Latest(result.record, task.realm.prefix))
        out.write(summary.since_last(result) if earlier.since_last else summary.write(result))
        out.write(f"\nPage: {task.directory / 'index.html'}\n")
        progress.end("done")
    if earlier.since_last:
        return ANOMALIES if result.since.is_news else CLEAN
    return CLEAN if result.verdict.passes else ANOMALIES
