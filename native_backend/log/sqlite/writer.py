"""The one thread of a process that writes what the gateway appends. What waits goes into one transaction of a file."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from native_backend.log.port import Completion
from native_backend.log.sqlite.checkpoint import Checkpoints
from native_backend.log.sqlite.commit import Committer
from native_backend.log.sqlite.plan import Job
from native_backend.log.sqlite.waiting_jobs import WaitingJobs

LOCK_WAIT_S = 10.0


class Writer:
    """Jobs in, completions out. `_submitted` comes from the gateway's thread, `_waiting` is the writer's own."""

    def __init__(self, committer: Committer, checkpoints: Checkpoints) -> None:
        self._committer, self._checkpoints = committer, checkpoints
        self._submitted: deque[Job] = deque()
        self._waiting = WaitingJobs()
        self._work = threading.Event()
        self._closing = False
        self.completions: deque[Completion] = deque()
        self.wake: Callable[[], None] = _do_nothing
        self._thread = threading.Thread(target=self._run, name="realm-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        if not self._thread.is_alive():
            raise AssertionError("the writer thread has died, or the log is closed")
        self._submitted.append(job)
        self._work.set()

    def close(self, deadline_s: float) -> None:
        """Write what waits, then end. What is left at the deadline is written or not: the process ends soon."""
        self._closing = True
        self._work.set()
        self._thread.join(deadline_s)
        self._checkpoints.close(deadline_s)

    def _run(self) -> None:
        while True:
            self._work.wait()
            self._work.clear()
            while jobs := self._next():
                self.completions.extend(self._committer.commit(jobs, time.monotonic() + LOCK_WAIT_S))
                self.wake()
                self._checkpoints.stored(self._committer.octets)
            if self._closing and not self._submitted:
                self._committer.close()
                return

    def _next(self) -> list[Job]:
        while self._submitted:
            self._waiting.add(self._submitted.popleft())
        return self._waiting.take()


def _do_nothing() -> None:
    pass
