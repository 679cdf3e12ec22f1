"""Other tables while serving: on SIGHUP, or when a file of `mappings.dir` changes, they are read and checked in a
process of their own and put in force between two turns. Tables with problems change nothing; they are logged once.

Links and what is in flight live on. A delivery is decided by the tables in force when its fact came: its transfer, its
disposition. The loop is held up by no more than reading one table of the answer at a time.

May import: `gateway`, `mappings`, `transformers`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import orjson

from gateway.conversion import check_transformers
from gateway.gateway import Gateway
from gateway.limits import TABLES_ANSWER_BYTES, TABLES_CHECK_TIMEOUT_S
from mappings import TableSet
from transformers import TransformerError

log = logging.getLogger("realmgate.reload")

Signature = tuple[tuple[str, int, int], ...]


def signature_of(directory: Path | None) -> Signature:
    """What tells that a file of tables has changed. The shipped tables change with the program."""
    found = []
    for path in sorted((directory / "tables").glob("*.yaml")) if directory is not None else ():
        try:
            status = path.stat()
        except OSError:
            continue  # it went between the two; the next look sees it
        found.append((path.name, status.st_mtime_ns, status.st_size))
    return tuple(found)


class Reload:
    """One gateway's. `done`, `refused`: how often; `problems`: of the last try, none when it went well."""

    def __init__(self, gateway: Gateway, seen: Signature | None = None) -> None:
        """`seen`: the signature before the tables in force were read; a change since then is noticed."""
        self._gateway = gateway
        self._settings = gateway.settings.mappings
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._asked = False
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
        await self._stop_process()

    async def _run(self) -> None:
        try:
            while self._asked:
                self._asked = False
                try:
                    answer = await asyncio.wait_for(self._ask(), TABLES_CHECK_TIMEOUT_S)
                except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError) as error:
                    await self._stop_process()
                    self._refuse([f"the tables could not be checked: {error!r}"])
                    continue
                if "problems" in answer:
                    self._refuse(answer["problems"])
                else:
                    await self._put_in_force(answer["document"])
        finally:
            self._task = None

    async def _ask(self) -> dict[str, Any]:
        process = self._process
        if process is None or process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            command = (sys.executable, "-P", "-m", "mappings.loading")
            process = self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, limit=TABLES_ANSWER_BYTES
            )
        assert process.stdin is not None and process.stdout is not None
        directory: Path | None = self._settings.directory
        question = {"directory": str(directory) if directory else None, "profile": self._settings.profile}
        process.stdin.write(json.dumps(question).encode() + b"\n")
        line = await process.stdout.readuntil(b"\n")
        return dict(orjson.loads(line))

    async def _put_in_force(self, document: dict[str, Any]) -> None:
        if document["digest"] != self._gateway.tables.digest:
            steps = TableSet.read_in_steps(document)
            while (tables := next(steps)) is None:
                await asyncio.sleep(0)
            try:
                check_transformers(tables)
            except TransformerError as error:
                self._refuse(str(error).splitlines())
                return
            for _ in self._gateway.use(tables):
                await asyncio.sleep(0)
            log.info("tables %s are in force", tables.digest)
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

    async def _stop_process(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
