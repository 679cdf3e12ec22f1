"""What waits for the writer. Partitions take turns, so that no record waits behind the backlog of another partition.

One thread at a time. Jobs of one partition keep their order, and so do transactions; between these there is none, as
with Kafka.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final

from native_backend.log.port import Append
from native_backend.log.sqlite.plan import Job

GROUP_RECORDS: Final = 16_384  # a transaction takes no further job beyond this, so that its fsync stays short
GROUP_BYTES: Final = 8 << 20
SHARED_BYTES: Final = 2 << 20  # where several have jobs: a job waits for the transaction that is under way, too
_TRANSACTIONS: Final = "transactions"


class WaitingJobs:
    """Jobs by what they keep their order with. The first of `_turns` is next."""

    def __init__(self) -> None:
        self._jobs: dict[Hashable, deque[Job]] = {}
        self._turns: deque[Hashable] = deque()
        self._is_shared = False

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, job: Job) -> None:
        place: Hashable = (job.topic, job.partition) if isinstance(job, Append) else _TRANSACTIONS
        if place not in self._jobs:
            self._jobs[place] = deque()
            self._turns.append(place)
        self._jobs[place].append(job)

    def take(self) -> list[Job]:
        """The jobs of the next transaction of the file: one of each place in turn, until they are enough."""
        jobs: list[Job] = []
        records = size = 0
        limit = self._limit()
        while self._turns and records < GROUP_RECORDS and size < limit:
            job = self._next()
            jobs.append(job)
            if isinstance(job, Append):
                records += len(job.keys)
                size += sum(map(len, job.values))
            else:
                records += len(job.writes)
        return jobs

    def _limit(self) -> int:
        """In octets. One who is served alone now, and was not the time before, has others that will come again."""
        was_shared, self._is_shared = self._is_shared, self._callers() > 1
        return SHARED_BYTES if was_shared or self._is_shared else GROUP_BYTES

    def _callers(self) -> int:
        """Places with a job that a caller waits for."""
        heads = (jobs[0] for jobs in self._jobs.values())
        return sum(not (isinstance(job, Append) and job.aside) for job in heads)

    def _next(self) -> Job:
        place = self._turns.popleft()
        jobs = self._jobs[place]
        job = jobs.popleft()
        if jobs:
            self._turns.append(place)
        else:
            del self._jobs[place]
        return job
