"""The one thread of a process that writes what the gateway appends: everything waiting goes into one transaction."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from native_backend.log.port import Append, Completion
from native_backend.log.sqlite.commit import Committer
from native_backend.log.sqlite.plan import Job

GROUP_RECORDS = 16_384  # a transaction takes no further job beyond this, so that its fsync stays short
GROUP_BYTES = 8 << 20
LOCK_WAIT_S = 10.0


class Writer:
    """Jobs in, completions out, in the order of the jobs."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._waiting: deque[Job] = deque()
        self._work = threading.Event()
        self._closing = False
        self.completions: deque[Completion] = deque()
        self.wake: Callable[[], None] = _do_nothing
        self._thread = threading.Thread(target=self._run, name="realm-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        if not self._thread.is_alive():
            raise AssertionError("the writer thread has died, or the log is closed")
        self._waiting.append(job)
        self._work.set()

    def close(self, deadline_s: float) -> None:
        """Write what waits, then end. What is left at the deadline is written or not: the process ends soon."""
        self._closing = True
        self._work.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while True:
            self._work.wait()
            self._work.clear()
            while jobs := self._take():
                self.completions.extend(self._committer.commit(jobs, time.monotonic() + LOCK_WAIT_S))
                self.wake()
            if self._closing and not self._waiting:
                self._committer.close()
                return

    def _take(self) -> list[Job]:
        jobs: list[Job] = []
        records = size = 0
        while self._waiting and records < GROUP_RECORDS and size < GROUP_BYTES:
            job = self._waiting.popleft()
            jobs.append(job)
            if isinstance(job, Append):
                records += len(job.keys)
                size += sum(map(len, job.values))
            else:
                records += len(job.writes)
        return jobs


def _do_nothing() -> None:
    pass
