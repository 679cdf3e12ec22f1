"""Other tables while serving: tables and native errors are read again (`gateway/reload/watched_files.py`) and checked
in a process of their own (`gateway/reload/table_checker.py`), and made active between two turns.

Links and what is in flight live on. A delivery is decided by the active tables when its fact came: its transfer, its
disposition. The loop is held up by no more than reading a piece of a table at a time, and starts no process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gateway.config.limits import TABLES_CHECK_TIMEOUT_S
from gateway.evidence.log_events import about
from gateway.reload.table_checker import TableChecker
from gateway.reload.watched_files import Signature, WatchedFiles, signature_of
from gateway.session.gateway import Gateway
from mappings import TableSet
from mappings.compiler.errors import FILE as ERRORS
from mappings.compiler.errors import IN_FORCE, Errors
from mappings.compiler.table_set import Because
from transformers import TransformerError, event_transformer
from transformers.events.installed import is_loaded

log = logging.getLogger("realmgate.reload")


def files_of(directory: Path | None) -> list[Path]:
    """Of tables and native errors. The shipped ones change with the program."""
    return [] if directory is None else [*sorted((directory / "tables").glob("*.yaml")), directory / ERRORS]


class TableReload(WatchedFiles):
    """One gateway's."""

    kind = "tables"

    def __init__(self, gateway: Gateway, seen: Signature | None = None, checker: TableChecker | None = None) -> None:
        """`seen`: the signature before the active tables were read; a change since then is noticed. `checker`: one
        that was started before there was a loop to be held up."""
        self._gateway = gateway
        self._settings = gateway.settings.mappings
        self.checker = checker or TableChecker()
        self._errors: Any = self  # the native errors that were made active last, as they came; so far none were
        super().__init__(log, gateway.clock, signature_of(self.files()) if seen is None else seen)

    @property
    def kept(self) -> str:
        return f"these tables are not used; tables {self._gateway.tables.digest} stay active"

    def files(self) -> Iterable[Path]:
        return files_of(self._settings.directory)

    async def close(self) -> None:
        await super().close()
        self.checker.stop()

    async def read(self) -> list[str]:
        directory = self._settings.directory
        question = {"directory": str(directory) if directory else None, "profile": self._settings.profile}
        try:
            answer = await asyncio.wait_for(self.checker.ask(question), TABLES_CHECK_TIMEOUT_S)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            self.checker.stop()
            return [f"the tables could not be checked: {error!r}"]
        if "problems" in answer:
            return list(answer["problems"])
        return await self._put_in_force(answer["document"], answer["because"], answer["errors"])

    async def _put_in_force(
        self, document: dict[str, Any], because: Because, errors: dict[str, Any] | None
    ) -> list[str]:
        if document["digest"] != self._gateway.tables.digest:
            steps = TableSet.read_in_steps(document, because)
            while (tables := next(steps)) is None:
                await asyncio.sleep(0)
            try:
                await self._load_transformers(tables)
            except TransformerError as error:
                return str(error).splitlines()
            for node_class in tables.classify.node_classes:
                tables.for_class(node_class)
                await asyncio.sleep(0)
            for _ in self._gateway.use(tables):
                await asyncio.sleep(0)
            facts = {"digest": tables.digest, "profile": tables.profile}
            log.info("tables %s are active", tables.digest, extra=about("tables active", **facts))
        elif because != self._gateway.tables.because:
            self._gateway.tables.because = because
            self._gateway.store_tables()
        if errors != self._errors:
            IN_FORCE.use(Errors.read(errors) if errors is not None else None)
            self._errors = errors
            path = str(self._settings.directory / ERRORS) if errors is not None and self._settings.directory else None
            words = f"native errors of {path} are active" if path else "the shipped native errors are active"
            log.info("%s", words, extra=about("native errors active", path=path))
        return []

    async def _load_transformers(self, tables: TableSet) -> None:
        """The process beside has found them sound; what has to be imported here is imported by a thread."""
        names = [name for rule in tables.classify.rules if (name := rule.transformer) and not is_loaded(name)]
        if names:
            await asyncio.get_running_loop().run_in_executor(None, lambda: [event_transformer(name) for name in names])
