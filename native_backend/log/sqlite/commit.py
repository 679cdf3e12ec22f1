"""Group commit: many jobs, one transaction, one fsync. For the writer thread, and for single records of control."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import cast

from mappings.compiler.errors import IN_FORCE, Errors
from mappings.language.causes import at_commit, in_transaction
from native_backend.log.port import Append, Appended, Cause, Completion, Failure, Transacted
from native_backend.log.sqlite.catalog import Catalog
from native_backend.log.sqlite.plan import Insert, Job, Plan
from native_backend.log.sqlite.schema import begin, connect

INSERT = "INSERT INTO batches (partition, first, count, at_ms, key, data) VALUES (?, ?, ?, ?, ?, ?)"


@lru_cache(maxsize=2)
def _codes(errors: Errors) -> frozenset[int]:
    return frozenset(
        int(getattr(sqlite3, name))
        for name, error in errors.codes["sqlite"].items()
        if at_commit(error.cause) != "indeterminate" and hasattr(sqlite3, name)
    )


def certainly_not_done(code: int) -> bool:
    """A COMMIT that failed so did nothing; any other is in doubt."""
    return code in _codes(IN_FORCE.errors)


class Committer:
    """One writing connection, and the octets of records that the last `commit` has stored. For one thread at a time."""

    def __init__(self, directory: Path, record_bytes_max: int, now_ms: Callable[[], int]) -> None:
        self.connection = connect(directory, busy_s=0.0)
        self._catalog = Catalog(self.connection)
        self._record_bytes_max = record_bytes_max
        self._now_ms = now_ms
        self.octets = 0

    def commit(self, jobs: Sequence[Job], deadline: float) -> list[Completion]:
        """Store what can be stored of `jobs` in one transaction; the completions, in the order of the jobs."""
        self.octets = 0
        try:
            plan = self._store(jobs, deadline)
        except sqlite3.Error as error:
            self._roll_back()
            return _failed(jobs, failure_of(error, "unavailable"))
        except BaseException:
            self._roll_back()  # it may have been planned inside the lock
            raise
        try:
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            certain = certainly_not_done(error.sqlite_errorcode)
            return _failed(jobs, failure_of(error, "unavailable" if certain else "indeterminate"))
        for partition, end in plan.ends.items():
            self._catalog.known[partition].next = end
        return plan.completions

    def _store(self, jobs: Sequence[Job], deadline: float) -> Plan:
        """Plan and encode outside the lock; and again inside it when another process has written meanwhile, which it
        could do each time."""
        self._catalog.refresh()
        plan, rows = self._planned(jobs)
        begin(self.connection, deadline)
        if self._catalog.refresh():
            plan, rows = self._planned(jobs)
        self.connection.executemany(INSERT, rows)
        self.octets = sum(len(data) for *_, data in rows)
        return plan

    def _planned(self, jobs: Sequence[Job]) -> tuple[Plan, list[Insert]]:
        plan = Plan(self._catalog, self._record_bytes_max)
        for job in jobs:
            plan.add(job)
        return plan, plan.inserts(self._now_ms())

    def _roll_back(self) -> None:
        self._catalog.forget()
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def forget(self) -> None:
        """Topics were changed over this very connection, which its catalog does not notice by itself."""
        self._catalog.forget()

    def close(self) -> None:
        self.connection.close()


def failure_of(error: sqlite3.Error, cause: Cause) -> Failure:
    """A failure with SQLite's own words."""
    return Failure(cause, str(error), getattr(error, "sqlite_errorname", ""))


def _failed(jobs: Sequence[Job], failure: Failure) -> list[Completion]:
    error = IN_FORCE.errors.named(failure.code)
    refused = failure
    if failure.cause == "unavailable" and error is not None:
        refused = replace(failure, cause=cast(Cause, in_transaction(error.cause, answered=True)))
    return [
        Appended(job, 0, [-1] * len(job.keys), failure if job.aside else refused)
        if isinstance(job, Append)
        else Transacted(job.owner, [-1] * len(job.writes), refused)
        for job in jobs
    ]
