"""Other tables while serving: on SIGHUP, or when a file of `mappings.dir` changes, they are read and checked in a
process of their own (`gateway/checker.py`) and put in force between two turns; native errors, too. Tables with problems
change nothing; they are logged once.

Links and what is in flight live on. A delivery is decided by the tables in force when its fact came: its transfer, its
disposition. The loop is held up by no more than reading a piece of a table at a time, and starts no process.

May import: `gateway`, `mappings`, `transformers`.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from gateway.checker import Checker
from gateway.gateway import Gateway
from gateway.limits import TABLES_CHECK_TIMEOUT_S
from mappings import TableSet
from mappings.errors import FILE as ERRORS
from mappings.errors import IN_FORCE, Errors
from transformers import TransformerError, event_transformer
from transformers.installed import is_loaded

log = logging.getLogger("realmgate.reload")

Signature = tuple[tuple[str, int, int], ...]


def signature_of(directory: Path | None) -> Signature:
    """What tells that a file of tables or native errors has changed. The shipped tables change with the program."""
    found = []
    for path in [*sorted((directory / "tables").glob("*.yaml")), directory / ERRORS] if directory is not None else ():
        try:
            status = path.stat()
        except OSError:
            continue  # it went between the two; the next look sees it
        found.append((path.name, status.st_mtime_ns, status.st_size))
    return tuple(found)


class Reload:
    """One gateway's. `done`, `refused`: how often; `problems`: of the last try, none when it went well."""

    def __init__(self, gateway: Gateway, seen: Signature | None = None, checker: Checker | None = None) -> None:
        """`seen`: the signature before the tables in force were read; a change since then is noticed. `checker`: one
        that was started before there was a loop to be held up."""
        self._gateway = gateway
        self._settings = gateway.settings.mappings
        self.checker = checker or Checker()
        self._task: asyncio.Task[None] | None = None
        self._asked = False
        self._errors: Any = self  # the native errors that were put in force last, as they came; so far none were
        self._seen = signature_of(self._settings.directory) if seen is None else seen
        self.done = 0
        self.refused = 0
        self.problems: list[str] = []
        self.tried_us = self.done_us = 0  # when last, in microseconds of the epoch; 0: never in this run

    def request(self) -> None:
        """Load soon. Many requests while one is under way are one more."""
        self._asked = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def look(self) -> None:
        """Once in a while: has a file changed?"""
        signature = signature_of(self._settings.directory)
        if signature != self._seen:
            self._seen = signature
            self.request()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self.checker.stop()

    async def _run(self) -> None:
        try:
            while self._asked:
                self._asked = False
                try:
                    directory = self._settings.directory
                    question = {"directory": str(directory) if directory else None, "profile": self._settings.profile}
                    answer = await asyncio.wait_for(self.checker.ask(question), TABLES_CHECK_TIMEOUT_S)
                except (
                    OSError,
                    ValueError,
                    TimeoutError,
                    asyncio.IncompleteReadError,
                    asyncio.LimitOverrunError,
                ) as error:
                    self.checker.stop()
                    self._refuse([f"the tables could not be checked: {error!r}"])
                    continue
                if "problems" in answer:
                    self._refuse(answer["problems"])
                else:
                    await self._put_in_force(answer["document"], answer["errors"])
        finally:
            self._task = None

    async def _put_in_force(self, document: dict[str, Any], errors: dict[str, Any] | None) -> None:
        if document["digest"] != self._gateway.tables.digest:
            steps = TableSet.read_in_steps(document)
            while (tables := next(steps)) is None:
                await asyncio.sleep(0)
            try:
                await self._load_transformers(tables)
            except TransformerError as error:
                self._refuse(str(error).splitlines())
                return
            for node_class in tables.classify.node_classes:
                tables.for_class(node_class)
                await asyncio.sleep(0)
            for _ in self._gateway.use(tables):
                await asyncio.sleep(0)
            log.info("tables %s are in force", tables.digest)
        if errors != self._errors:
            IN_FORCE.use(Errors.read(errors) if errors is not None else None)
            self._errors = errors
        self.problems = []
        self.done += 1
        self.tried_us = self.done_us = self._gateway.clock.epoch_us()

    def _refuse(self, problems: list[str]) -> None:
        self.refused += 1
        self.tried_us = self._gateway.clock.epoch_us()
        if problems != self.problems:
            said = "\n  ".join(problems)
            log.error("these tables are not used, tables %s stay in force:\n  %s", self._gateway.tables.digest, said)
        self.problems = problems

    async def _load_transformers(self, tables: TableSet) -> None:
        """The process beside has found them sound; what has to be imported here is imported by a thread."""
        names = [name for rule in tables.classify.rules if (name := rule.transformer) and not is_loaded(name)]
        if names:
            await asyncio.get_running_loop().run_in_executor(None, lambda: [event_transformer(name) for name in names])
