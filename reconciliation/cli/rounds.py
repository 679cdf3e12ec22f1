"""`reconcile --every SECONDS`: one reconciliation after another, each from the state that the one before has left.

All in one session of Spark, which takes longer to start than a small round takes. A round that cannot run, for whatever
reason, is said and counted, and the next one begins when it is due; what it has not read the next one reads. SIGTERM or
SIGINT ends the round under way: its state was not kept, so the next process reads it again. Errors: `SettingsError` of
the first round, and what ends Spark.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from reconciliation.cli.judging import Earlier, Task, judged
from reconciliation.cli.progress import Progress, SparkWork
from reconciliation.model.errors import SetupError, SourceError
from reconciliation.model.settings import SettingsError
from reconciliation.model.window import readable
from reconciliation.read import landing
from reconciliation.report import latest, summary
from reconciliation.report.latest import Failed, Latest
from reconciliation.report.result import Result

_FORESEEN = (SettingsError, SourceError, SetupError, OSError, PySparkException, Py4JError)


class Stopped(BaseException):
    """A signal has asked for the end."""


def _why(error: Exception) -> str:
    """In a line."""
    first = next(iter(str(error).strip().splitlines()), "")
    return first if first and isinstance(error, _FORESEEN) else f"{type(error).__name__}: {first}".removesuffix(": ")


class Rounds:
    """`earlier`: asked before each round, as operators acknowledge findings meanwhile. `say`: gets a line a round, and
    what is new where there is any. `now_us`: the time, in microseconds since 1970. `wait`: until the next
    one is due, in seconds."""

    def __init__(
        self,
        task: Task,
        every_s: float,
        earlier: Callable[[], Earlier],
        say: Callable[[str], object],
        now_us: Callable[[], int],
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._task, self._every_s, self._earlier, self._say, self._wait = task, every_s, earlier, say, wait
        self._now_us = now_us
        self._lock = threading.Lock()
        self._latest = Latest(None, task.realm.prefix, every_s)
        self._count = 0
        self._stopping = False

    def stop(self) -> None:
        """Raises `Stopped`, here and out of `go_on`: called by a signal's handler in the thread that goes on."""
        self._stopping = True
        raise Stopped

    def latest(self) -> Latest:
        """From any thread."""
        with self._lock:
            return self._latest

    def go_on(self) -> None:
        """Until `Stopped`, or Spark's end. Settings that make no sense end it in the first round only: later they are
        an operator's edit of a moment."""
        while True:
            began_s = time.monotonic()
            self._round()
            self._wait(max(0.0, self._every_s - (time.monotonic() - began_s)))

    def _round(self) -> None:
        self._count += 1
        began_s, now_us = time.monotonic(), self._now_us()
        try:
            extent = landing.extent_of(self._task.realm)
            with Progress(SparkWork(self._task.session), "reconcile", self._task.steps, steps_said=False) as progress:
                result = judged(self._task, extent, self._earlier(), now_us, progress)
            self._ended(result, time.monotonic() - began_s)
        except Exception as error:  # any: what a damaged record raises is not foreseen, and later rounds may do better
            if self._stopping:
                raise Stopped from error  # what breaks off may break something else
            if isinstance(error, SettingsError) and self._count == 1:
                raise
            self._check_spark(error)
            self._failed(error, now_us)
        self._task.session.catalog.clearCache()  # what a round has kept in memory is of no use to the next one

    def _check_spark(self, error: Exception) -> None:
        """Raises it where Spark is no more."""
        try:
            self._task.session.sparkContext.defaultParallelism  # noqa: B018  # asks the JVM
        except Exception:  # whatever the client of a JVM that is gone raises
            raise error from None

    def _ended(self, result: Result, took_s: float) -> None:
        self._set(Latest(result.record, self._task.realm.prefix, self._every_s))
        self._say(f"{readable(result.record.at_us)}  round {self._count}, {took_s:.1f} s: {result.verdict.words}\n")
        if result.since.is_news:
            self._say(summary.news(result))

    def _failed(self, error: Exception, now_us: int) -> None:
        if not isinstance(error, _FORESEEN):
            traceback.print_exception(error)  # ours to mend
        before, why = self._latest.failed, _why(error)
        failed = Failed(1, now_us, why) if before is None else Failed(before.rounds + 1, before.since_us, why)
        self._say(f"{readable(now_us)}  round {self._count} could not run, {failed.rounds} in a row: {why}\n")
        self._set(replace(self._latest, failed=failed))

    def _set(self, now: Latest) -> None:
        with self._lock:
            self._latest = now
        try:
            latest.write(self._task.directory, now)
        except (OSError, SetupError) as error:
            self._say(f"the verdict cannot be written to {self._task.directory}: {error}\n")


@contextmanager
def signals(stop: Callable[[], object]) -> Iterator[None]:
    """`stop` is called when the process is asked to end."""

    def called(number: int, frame: FrameType | None) -> None:
        for sign in before:
            signal.signal(sign, signal.SIG_IGN)  # the end is under way
        stop()

    before = {sign: signal.getsignal(sign) for sign in (signal.SIGTERM, signal.SIGINT)}
    for sign in before:
        signal.signal(sign, called)
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
