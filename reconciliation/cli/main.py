"""`realmgate reconcile --config FILE --out DIR [--from ISO --to ISO]`: the judgement over everything that happened;
`realmgate reconcile --fetch-jars [DIR]`: what that needs for a realm on Kafka.

Exit code: 0 clean, 1 not clean or incomplete (`reconciliation.report.verdict`), 2 could not run.
Progress goes to standard error, the summary to `out`. Runs beside a live gateway.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconciliation.cli.arguments import parsed, window_of
from reconciliation.jobs.reconcile import judge
from reconciliation.model import connector, spark
from reconciliation.model.errors import SetupError, SourceError
from reconciliation.model.ranges import Extent
from reconciliation.model.settings import Realm, SettingsError, load_realm
from reconciliation.model.spark_settings import Asked
from reconciliation.model.window import Window
from reconciliation.read import landing
from reconciliation.report import balance, page, report, summary
from reconciliation.report.verdict import verdict_of

CLEAN, ANOMALIES, COULD_NOT_RUN = 0, 1, 2


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
        extent = landing.extent_of(realm)
        arguments.out.mkdir(parents=True, exist_ok=True)
        session = spark.start(arguments.out / "scratch", offsets=extent.offsets, jars=jars, asked=asked)
        try:
            return run(session, realm, extent, window, arguments.out, out)
        finally:
            session.stop()
            shutil.rmtree(arguments.out / "scratch", ignore_errors=True)
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


def run(
    session: SparkSession,
    realm: Realm,
    extent: Extent,
    window: Window,
    directory: Path,
    out: TextIO,
    now_us: int | None = None,
) -> int:
    """With a session that is there: land, judge, report. `now_us`: another time than it is."""
    began = time.monotonic()

    def tell(step: str) -> None:
        sys.stderr.write(f"reconcile: {time.monotonic() - began:5.1f} s  {step}\n")
        sys.stderr.flush()

    (directory / report.MANIFEST).unlink(missing_ok=True)
    making = directory / "making"
    shutil.rmtree(making, ignore_errors=True)
    tell("landing the realm's records")
    landed = landing.land(realm, extent, session, directory / "landed")
    judgement = judge(
        session, landed, realm, window, making, tell, time.time_ns() // 1000 if now_us is None else now_us
    )
    report.add_findings(making, judgement.findings)
    findings = report.condense(making, window)
    sheet = balance.balance(judgement, findings.totals)
    report.publish(making, directory, window)
    text = summary.write(realm, window, landed, judgement, findings, sheet)
    (directory / "summary.txt").write_text(text)
    (directory / "index.html").write_text(page.render(realm, window, landed, judgement, findings, sheet))
    verdict = verdict_of(findings, sheet)
    report.write_manifest(directory, window, landed, judgement, findings, sheet, verdict, versions())
    out.write(text)
    out.write(f"\nPage: {directory / 'index.html'}\n")
    tell("done")
    return CLEAN if verdict.clean else ANOMALIES


def versions() -> dict[str, str]:
    return {name: _version(name) for name in ("realmgate", "pyspark")} | {"connector": connector.CONNECTOR}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"  # its files came in an archive, or with Spark itself
