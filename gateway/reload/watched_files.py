"""Files of the configuration that are read again while serving: tables, users, certificates. One rule for all of them.

- About once a second the files are looked at. They are read when they have changed since they were last read and two
  looks in a row find them alike: a change may be of several files, written one after the other. On SIGHUP they are read
  at once.
- A change is whatever a look can tell: another time, size or inode, other rights, a file that goes or comes.
- What is read is used as a whole, or not at all: files with problems change nothing. The problems are logged once, and
  `/health` shows them until the files are right.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

from native_backend.clock import Clock

Signature = tuple[tuple[str, tuple[int, ...]], ...]


def signature_of(files: Iterable[Path]) -> Signature:
    """What tells that one of them has changed."""
    return tuple((str(path), _state_of(path)) for path in files)


def _state_of(path: Path) -> tuple[int, ...]:
    """Nothing of a file that is not there. The time of the last change of its state, so other rights are a change."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class WatchedFiles(ABC):
    """One kind of them. `done`, `refused`: how often they were read again; `problems`: of the last try, none when it
    went well. Times are microseconds of the epoch, 0: never in this run."""

    def __init__(self, log: logging.Logger, clock: Clock, seen: Signature | None) -> None:
        """`seen`: the signature of what is used now, taken before it was read. None: unknown, so they are read soon."""
        self.done = 0
        self.refused = 0
        self.problems: list[str] = []
        self.tried_us = 0
        self.done_us = 0
        self.refused_us = 0  # since when they have been refused
        self._log = log
        self._clock = clock
        self._tried = self._looked = seen
        self._asked = False
        self._task: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def kind(self) -> str:
        """One word."""

    @property
    @abstractmethod
    def kept(self) -> str:
        """What the log says of files with problems."""

    @abstractmethod
    def files(self) -> Iterable[Path]:
        """Those that count now, whether they are there or not."""

    @abstractmethod
    async def read(self) -> list[str]:
        """Read them and use them; gives what is wrong, and then nothing has changed."""

    def look(self) -> None:
        """Once in a while: have they changed?"""
        signature, before = signature_of(self.files()), self._looked
        self._looked = signature
        if self._tried is None or self._tried != signature == before:
            self.request()

    def request(self) -> None:
        """Read soon. Many requests while one is under way are one more."""
        self._asked = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._asked:
                self._asked = False
                self._tried = signature_of(self.files())
                try:
                    problems = await self.read()
                except Exception as error:
                    problems = [f"they could not be read: {error!r}"]
                self._note(problems)
        finally:
            self._task = None

    def _note(self, problems: list[str]) -> None:
        before, self.problems = self.problems, problems
        self.tried_us = self._clock.epoch_us()
        if not problems:
            self.done += 1
            self.done_us = self.tried_us
            return
        self.refused += 1
        if not before:
            self.refused_us = self.tried_us
        if problems != before:
            self._log.error("%s:\n  %s", self.kept, "\n  ".join(problems))
