"""What a command is doing, line by line on standard error: each step when it begins, and, while it goes on, every 10 s
what remains of it. So it is in a log, too, where there is no terminal.

    with Progress(SparkWork(session), "reconcile", 6) as progress: progress.begin("landing"); progress.note("7 remain")

Where a cluster has no executor left, Spark waits for one for ever: after 15 minutes the query is ended.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

EVERY_S = 10.0
IDLE_S = 900.0
"""So long Spark may wait for an executor."""
_NO_EXECUTOR = "Spark has no executor; look at the master, and whether its workers have free cores and memory"


@dataclass(frozen=True, slots=True)
class Work:
    """Tasks of the queries that Spark is at, by stages."""

    stages: int
    stages_done: int
    tasks: int
    done: int
    running: int

    @property
    def waits(self) -> bool:
        return self.tasks > self.done and not self.running

    @property
    def words(self) -> str:
        text = f"{self.tasks - self.done:,} of {self.tasks:,} tasks of this query remain"
        if self.stages > 1:
            text += f", in {self.stages - self.stages_done} of {self.stages} stages"
        return text


class Worker(Protocol):
    """Who does the work of a step."""

    def work(self) -> Work | None:
        """None: nothing is asked of it."""

    def cancel(self) -> None:
        """End what is asked of it, with an error."""


class SparkWork:
    """By Spark's own account of its jobs."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._tracker = self._context.statusTracker()

    def work(self) -> Work | None:
        jobs = [self._tracker.getJobInfo(job) for job in self._tracker.getActiveJobsIds()]
        stages = [self._tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        known = [stage for stage in stages if stage is not None]
        if not known:
            return None
        return Work(
            len(known),
            sum(stage.numCompletedTasks >= stage.numTasks for stage in known),
            sum(stage.numTasks for stage in known),
            sum(stage.numCompletedTasks for stage in known),
            sum(stage.numActiveTasks for stage in known),
        )

    def cancel(self) -> None:
        self._context.cancelAllJobs()


def _to_stderr(line: str) -> None:
    sys.stderr.write(line)
    sys.stderr.flush()


class Progress:
    """`worker`: asked each `every_s` seconds. `command`: begins each line. `steps`: how many it has. `say`: gets each
    line; None: standard error. `idle_s`: so long nothing may run though there is work. `steps_said`: each step is said,
    not only one that takes `every_s`."""

    def __init__(
        self,
        worker: Worker,
        command: str,
        steps: int,
        say: Callable[[str], object] | None = None,
        every_s: float = EVERY_S,
        idle_s: float = IDLE_S,
        steps_said: bool = True,
    ) -> None:
        self._worker, self._command, self._steps = worker, command, steps
        self._say, self._every_s, self._idle_s = say or _to_stderr, every_s, idle_s
        self._steps_said = steps_said
        self._began = time.monotonic()
        self._step, self._step_began, self._noted = 0, self._began, ""
        self._busy_at = self._began
        self._ended = threading.Event()
        self._ticks = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._ticks.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._ticks.join()

    def begin(self, step: str) -> None:
        self._step, self._step_began, self._noted = self._step + 1, time.monotonic(), ""
        if self._steps_said:
            self._write(f"{self._step} of {self._steps}  {step}")

    def note(self, words: str) -> None:
        """What remains of this step, by who does it without Spark; it is said when it is due."""
        self._noted = words

    def end(self, words: str) -> None:
        self._ended.set()
        self._write(words)

    def _write(self, words: str) -> None:
        self._say(f"{self._command}: {time.monotonic() - self._began:5.1f} s  {words}\n")

    def _tick(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                work = self._worker.work()
                self._look(work, time.monotonic())
            except Py4JError:
                return  # Spark has ended, or ends: the step that waits for its work raises the error

    def _look(self, work: Work | None, now: float) -> None:
        if work is None or not work.waits:
            self._busy_at = now
        since = now - self._step_began
        if since >= self._every_s and not self._ended.is_set():
            words = self._noted or (work.words if work else "this machine is at it, Spark has nothing to do")
            if now - self._busy_at >= self._every_s:
                words += "; no task runs"
            self._write(f"{self._step} of {self._steps}, for {since:.0f} s: {words}")
        if now - self._busy_at >= self._idle_s:
            self._busy_at = now
            self._write(f"no task has run for {self._idle_s:.0f} s: {_NO_EXECUTOR}")
            self._worker.cancel()
