"""Control work: calls to the log that may block, kept away from the gateway's one thread.

A job runs elsewhere and gives a value or a `LogError`; its `done` runs on the thread that calls `completed`. Jobs run
one at a time in the order they were submitted, so a later job sees what an earlier one wrote; one that was certainly
not done is asked again a few times, where that helps (`retrying`). An exception other than
`LogError` is a fault of ours. Its `done` gets an `unexpected` in its place, else the caller would wait for ever;
then it is raised again out of `completed`, not hidden.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from native_backend.log.port import Failure, LogError
from native_backend.log.retry import Retries

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Done = Callable[[T | LogError], None]


class Worker(Protocol):
    """Where blocking work goes."""

    retries: Retries

    def submit(self, job: Callable[[], T], done: Done[T]) -> None: ...

    def completed(self) -> int:
        """Run `done` of every job that has ended since; returns how many."""
        ...

    @property
    def pending(self) -> int:
        """Jobs whose `done` has not run yet."""
        ...

    def on_ready(self, wake: Callable[[], None]) -> None: ...

    def pause(self, seconds: float) -> None:
        """Let time pass while the realm closes; the only wait of the calling thread."""
        ...

    def repeated(self, job: Callable[[], T], done: Done[T], interval_s: float) -> AbstractContextManager[None]:
        """Job and `done` every `interval_s` on another thread while the calling one is busy inside."""
        ...

    def close(self, deadline_s: float) -> None:
        """No more jobs; wait for the running ones."""
        ...


def attempt(job: Callable[[], Any]) -> Any:
    try:
        return job()
    except LogError as error:
        return error


def mistaken(fault: BaseException) -> LogError:
    """What the caller of a job hears where the job ended by a mistake of ours."""
    return LogError(Failure("unexpected", f"{fault!r:.200}", type(fault).__name__))


class ThreadWorker:
    """One worker thread. It also wakes the gateway `tick_s` after the last sign of life, so that timers are seen to
    even over a log that has no poll interval."""

    def __init__(
        self, tick_s: float = 0.25, name: str = "realm-control", retries: Retries | None = None, *, once: bool = False
    ) -> None:
        """`once`: no job is asked again; the caller that submits it does that."""
        self.retries = retries or Retries()
        self._once = once
        self._tick_s = tick_s
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Done[Any]] | None] = queue.SimpleQueue()
        self._results: deque[tuple[Done[Any], Any, BaseException | None]] = deque()
        self._wake: Callable[[], None] | None = None
        self._pending = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T], done: Done[T]) -> None:
        self._pending += 1
        self._jobs.put((job, done))

    def completed(self) -> int:
        count = 0
        while self._results:
            done, value, fault = self._results.popleft()
            self._pending -= 1
            count += 1
            if fault is None:
                done(value)
                continue
            try:
                done(mistaken(fault))
            finally:
                raise fault
        return count

    @property
    def pending(self) -> int:
        return self._pending

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    @contextmanager
    def repeated(self, job: Callable[[], T], done: Done[T], interval_s: float) -> Iterator[None]:
        over = threading.Event()

        def repeat() -> None:
            while not over.wait(interval_s):
                try:
                    done(attempt(job))
                except Exception as fault:  # the next one may go well
                    _LOG.exception("a repeated job failed")
                    done(mistaken(fault))

        thread = threading.Thread(target=repeat, name="realm-meanwhile", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def close(self, deadline_s: float) -> None:
        self._wake = None
        self.retries.close()
        self._jobs.put(None)
        self._thread.join(deadline_s)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._tick_s)
            except queue.Empty:
                self._ring()
                continue
            if job is None:
                return
            self._run(*job)
            self._ring()

    def _run(self, job: Callable[[], Any], done: Done[Any]) -> None:
        try:
            value = attempt(job if self._once else lambda: self.retries.job(job))
            self._results.append((done, value, None))
        except BaseException as fault:  # carried to the thread that owns the realm, and raised there
            self._results.append((done, None, fault))

    def _ring(self) -> None:
        wake = self._wake
        if wake is not None:
            wake()


@dataclass(frozen=True, slots=True)
class Workers:
    """One for each kind of jobs that must not wait for another kind.

    `control`: what peers and operators wait for. `lease`: it must not lapse behind other jobs. `projections`: what no
    peer waits for: group offsets (a group coordinator may be away while the rest of the log is not), and trims of the
    lease's topic."""

    control: Worker
    lease: Worker
    projections: Worker

    @classmethod
    def threads(cls, retries: Retries | None = None) -> Workers:
        lease, projections = ThreadWorker(name="realm-lease", once=True), ThreadWorker(name="realm-projections")
        return cls(ThreadWorker(retries=retries), lease, projections)

    def each(self) -> list[Worker]:
        return [*dict.fromkeys((self.control, self.lease, self.projections))]

    @property
    def pending(self) -> bool:
        return any(worker.pending for worker in self.each())
