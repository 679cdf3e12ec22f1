"""One reconciliation with a session that is there: land, judge, and leave the report.

The manifest is written last of a report: where it is, the report is whole. Errors: those of landing and judging.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

from pyspark.sql import SparkSession

from reconciliation.cli.places import HISTORY
from reconciliation.cli.progress import Progress
from reconciliation.engine import connector
from reconciliation.engine.spark import plan_for
from reconciliation.engine.spark_settings import plans_for
from reconciliation.history import kept
from reconciliation.history.acknowledged import NOTHING, Acknowledged
from reconciliation.jobs.reconcile import Judgement, judge
from reconciliation.ledgers.compared import Compared, Request, compare
from reconciliation.model.classes import INCOMPLETE
from reconciliation.model.errors import SetupError
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import Extent
from reconciliation.model.settings import Realm
from reconciliation.model.window import Window
from reconciliation.read import increments, landing
from reconciliation.read.increments import Increment
from reconciliation.read.landing import Landed
from reconciliation.report import page, report, summary
from reconciliation.report.result import Result, result_of

STEPS = 6
"""Landing, four of `reconciliation.jobs.reconcile.judge`, and the report."""
_MAKING = "making"
ROWS_NEEDED = "rows-needed.txt"
"""In the directory of a state: why the last reconciliation could not be judged by sums."""
_MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier reconciliations and operators have left. `history`: where records are; None: beside the report.
    `since_last`: only what is new since the last one is to be named."""

    history: Folder | None = None
    since_last: bool = False
    acknowledged: Acknowledged = NOTHING


ALONE = Earlier()


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be judged, and where the report goes: `directory`. `state`: where an earlier reconciliation has left
    how far it came, and this one does; None: all is read. `repeated`: it is one of a row (`--every`): the report of
    the one before stays until this one is written, and the history gets a record only of what is new. `sums`: the
    increments of the state keep partial aggregates, and these are judged where they can tell. `ledgers`: what clients
    have noted, to be held against all of it."""

    session: SparkSession
    realm: Realm
    window: Window
    directory: Folder
    state: Folder | None = None
    repeated: bool = False
    sums: bool = False
    ledgers: Folder | None = None

    @property
    def steps(self) -> int:
        return STEPS + (self.ledgers is not None)


def judged(task: Task, extent: Extent, earlier: Earlier, now_us: int, progress: Progress) -> Result:
    """Land, judge, report. `extent`: how far the realm went when it was asked; `now_us`: the time, in microseconds
    since 1970."""
    began_s, directory = time.monotonic(), task.directory
    directory.make()
    records = earlier.history or directory / HISTORY
    records.make()  # now: what keeps it from being written is known before an hour of judging
    if not task.repeated:
        directory.remove(report.MANIFEST)
    directory.remove(_MAKING)
    making = directory / _MAKING
    progress.begin("landing the realm's records")
    plan_for(task.session, plans_for(extent.offsets))
    increment = _land(task, extent, now_us, progress)
    landed = increment.landed
    try:
        judgement = judge(task.session, landed, task.realm, task.window, making, progress.begin, now_us, task.sums)
    finally:
        increment.check()  # before all that Spark says of records that were removed meanwhile
    if task.sums and task.state is not None:
        _note(task.state, judgement.by_rows)
        landed = replace(landed, said=f"{landed.said} {_words_of_sums(judgement.by_rows)}")
    compared = None if task.ledgers is None else _compared(task, task.ledgers, landed, judgement, now_us, progress)
    progress.begin("writing the report")
    report.add_findings(making, judgement.findings)
    findings = report.condense(making, task.window, judgement.catalog.parts)
    known, took_s = kept.read(records, kept.LOOKED_AT), time.monotonic() - began_s
    result = result_of(
        task.realm, task.window, landed, judgement, findings, known, earlier.acknowledged, versions(), now_us, took_s,
        compared,
    )  # fmt: skip
    _publish(directory, result)
    try:
        increment.keep()  # after all of the report: what ends before has judged nothing
    except SetupError:
        directory.remove(report.MANIFEST)
        raise
    if not task.repeated or result.is_for_history:
        kept.keep(records, result.record)
    return result


def _compared(
    task: Task, ledgers: Folder, landed: Landed, judgement: Judgement, now_us: int, progress: Progress
) -> Compared:
    """Adds what it finds to the findings."""
    progress.begin("comparing what clients noted with messages and outcomes")
    try:
        compared, findings = compare(
            Request(
                task.session, task.realm, landed, judgement.catalog, judgement.runs, ledgers,
                task.directory / _MESSAGES, judgement.written, now_us,
                None if judgement.base is None else judgement.base.since,
                not any(finding["class"] == INCOMPLETE for finding in judgement.findings),
            )
        )  # fmt: skip
    finally:
        task.directory.remove(_MESSAGES)
    judgement.findings += findings
    return compared


def _note(state: Folder, why_not: str) -> None:
    if why_not:
        state.write(ROWS_NEEDED, why_not.encode())
    elif ROWS_NEEDED in state.names():
        state.remove(ROWS_NEEDED)


def _words_of_sums(why_not: str) -> str:
    return f"Judged from all rows, not from sums: {why_not}." if why_not else "Judged from the sums of its increments."


def _publish(directory: Folder, result: Result) -> None:
    text, shown = summary.write(result), page.render(result)
    directory.remove(report.MANIFEST)
    report.publish(_MAKING, directory, result.window)
    directory.write("summary.txt", text.encode())
    directory.write("index.html", shown.encode())
    report.write_since(directory, result.since)
    report.write_manifest(directory, result)


def _land(task: Task, extent: Extent, now_us: int, progress: Progress) -> Increment:
    """Without a state: all of it, and nothing is left for the next one."""
    if task.state is not None:
        return increments.land(task.realm, extent, task.session, task.state, now_us, progress.note)
    landed = landing.land(task.realm, extent, task.session, task.directory / "landed", note=progress.note)
    return Increment(landed)


def versions() -> dict[str, str]:
    return {name: _version(name) for name in ("realmgate", "pyspark")} | {"connector": connector.CONNECTOR}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"  # its files came in an archive, or with Spark itself
