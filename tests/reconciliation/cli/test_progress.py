"""What a reconciliation says while it goes on: which step of how many, and what remains of it."""

from __future__ import annotations

import io
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mappings import load_tables
from native_backend.log.open import open_embedded
from reconciliation.cli import main as commands
from reconciliation.cli import what_if
from reconciliation.cli.judging import STEPS, Task
from reconciliation.cli.progress import Progress, SparkWork, Work, Worker
from reconciliation.model.errors import SourceError
from reconciliation.model.folder import LocalFolder
from reconciliation.model.settings import Realm
from reconciliation.model.window import Window
from reconciliation.read import export, landing, record_file
from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.job import Question
from tests.kit.patience import until
from tests.reconciliation.world import World

OFTEN_S = 0.02
BUSY, WAITING = Work(1, 0, 4, 1, 1), Work(1, 0, 4, 0, 0)


def test_the_tasks_that_remain_are_shown_while_spark_works(session: SparkSession, tmp_path: Path) -> None:
    """Each task waits for a file, and a file comes when it was shown how many remain."""
    lines: list[str] = []
    (tmp_path / "0").touch()

    def waits(number: int, directory: str = str(tmp_path)) -> None:
        while not Path(directory, str(number)).exists():
            time.sleep(0.01)

    def hear(line: str) -> None:
        lines.append(line)
        if "3 of 4 tasks of this query remain" in line:
            (tmp_path / "1").touch()
        elif "2 of 4 tasks of this query remain" in line:
            (tmp_path / "2").touch()
            (tmp_path / "3").touch()

    with Progress(SparkWork(session), "reconcile", STEPS, hear, OFTEN_S) as progress:
        progress.begin("waiting")
        session.sparkContext.parallelize(range(4), 4).map(waits).collect()
        progress.end("done")
    assert re.fullmatch(rf"reconcile: +\d+\.\d s  1 of {STEPS}  waiting\n", lines[0])
    assert re.fullmatch(r"reconcile: +\d+\.\d s  done\n", lines[-1])
    remain = [int(match[1]) for line in lines if (match := re.search(r"s: (\d) of 4 tasks of this query remain", line))]
    assert remain == sorted(remain, reverse=True) and {3, 2} <= {*remain}, lines


@dataclass(slots=True)
class Told:
    """A worker of which the test tells what it does."""

    now: Work | None
    cancelled: int = 0

    def work(self) -> Work | None:
        return self.now

    def cancel(self) -> None:
        self.cancelled += 1


def test_what_a_step_notes_comes_before_what_spark_says() -> None:
    lines: list[str] = []
    with Progress(Told(BUSY), "reconcile", STEPS, lines.append, OFTEN_S) as progress:
        progress.begin("one")
        progress.note("7 remain")
        until(lambda: "7 remain" in lines[-1], "the note")
        progress.begin("two")
        until(lambda: BUSY.words in lines[-1], "Spark's words")
    assert not any(BUSY.words in line for line in lines[: [" two" in line for line in lines].index(True)])


def test_nothing_is_shown_once_it_has_ended() -> None:
    lines: list[str] = []
    with Progress(Told(None), "reconcile", STEPS, lines.append, OFTEN_S) as progress:
        progress.begin("one")
        until(lambda: len(lines) > 2, "two looks")
        progress.end("done")
        until(lambda: not progress._ticks.is_alive(), "the end")
    assert lines[-1].endswith("  done\n")


def test_a_query_that_no_executor_takes_is_ended() -> None:
    """Spark itself would wait for ever. One that gets on is not, however long it takes."""
    lines: list[str] = []
    worker = Told(BUSY)
    with Progress(worker, "what-if", 3, lines.append, OFTEN_S, 5 * OFTEN_S) as progress:
        progress.begin("one")
        until(lambda: len(lines) > 12, "more looks than are allowed without a task")
        assert not worker.cancelled
        worker.now = WAITING
        until(lambda: worker.cancelled, "the end of the query")
    assert any("4 of 4 tasks of this query remain; no task runs" in line for line in lines)
    assert any("Spark has no executor; look at the master" in line for line in lines)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (Work(1, 0, 40, 12, 2), "28 of 40 tasks of this query remain"),
        (Work(3, 1, 2000, 999, 2), "1,001 of 2,000 tasks of this query remain, in 2 of 3 stages"),
    ],
)
def test_what_remains_in_words(work: Work, words: str) -> None:
    assert work.words == words


def test_the_records_that_remain_are_noted_while_they_are_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_file, "BATCH_RECORDS", 2)
    with_records(tmp_path / "realm")
    noted: list[str] = []
    export.export(tmp_path / "realm", "um", tmp_path / "out", note=noted.append)
    counts = [tuple(map(int, re.findall(r"\d+", words))) for words in noted]
    assert counts == sorted(counts) and len({done + left for done, left in counts}) == 1, noted
    assert re.fullmatch(r"\d+ records are written, at most \d+ remain", noted[0])


def test_a_run_names_its_steps_in_order(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them, so that `6 of 6` is the last one."""
    with_records(tmp_path / "realm")
    realm = Realm("embedded", "um", path=tmp_path / "realm")
    folder = LocalFolder(tmp_path / "out")
    commands.run(Task(session, realm, Window(), folder), landing.extent_of(realm), io.StringIO())
    output = capsys.readouterr().err
    assert re.findall(rf"s  (\d) of {STEPS}  ", output) == [str(number) for number in range(1, STEPS + 1)]
    assert output.splitlines()[-1].endswith(" s  done")


def test_a_what_if_names_its_steps_in_order(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where there is nothing to name in the last one."""
    with_records(tmp_path / "realm")
    realm = Realm("embedded", "um", path=tmp_path / "realm")
    question = Question("the same", ExpandedTables(load_tables(profile="extended").expanded()))
    what_if.run(session, realm, landing.extent_of(realm).only("um", what_if.KINDS), question, tmp_path / "out")
    output = capsys.readouterr().err
    assert re.findall(rf"what-if: +\d+\.\d s  (\d) of {what_if.STEPS}  ", output) == ["1", "2", "3"]
    assert output.splitlines()[-1].endswith(" s  done")


def test_a_what_if_that_no_executor_takes_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any other command: it has no lines of its own."""
    begun: list[str] = []
    worker = Told(WAITING)

    def waiting(*arguments: Any) -> None:
        arguments[-1]("counting")
        begun.append("counting")
        until(lambda: worker.cancelled, "the end of the query")
        raise SourceError("ended")

    def often(work: Worker, command: str, steps: int) -> Progress:
        return Progress(work, command, steps, None, OFTEN_S, 5 * OFTEN_S)

    monkeypatch.setattr(what_if, "SparkWork", lambda _: worker)
    monkeypatch.setattr(what_if, "Progress", often)
    monkeypatch.setattr(what_if, "what_if", waiting)
    with_records(tmp_path / "realm")
    realm = Realm("embedded", "um", path=tmp_path / "realm")
    unused: Any = None
    with pytest.raises(SourceError, match="ended"):
        what_if.run(unused, realm, landing.extent_of(realm).only("um", what_if.KINDS), unused, tmp_path / "out")
    assert begun == ["counting"]


def with_records(directory: Path) -> None:
    log = open_embedded(directory)
    world = World(log, "um")
    run = world.run()
    run.publish(world.queue("orders"), 5)
    run.close()
    log.close()
