"""The tables of the console, read once in a thread of its own, and again when a gateway goes by others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

from console.facts.gateway import Gateway
from console.facts.rules import Tables

log = logging.getLogger("realmgate.console")


class TablesOnDisk:
    """`current` is None until the first reading has come to its end."""

    def __init__(self, directory: Path | None) -> None:
        self.current: Tables | None = None
        self._directory = directory
        self._read_for: set[str] = set()  # digests that caused a reading
        self._reading: asyncio.Task[None] | None = None

    def want(self, gateways: Iterable[Gateway]) -> None:
        """Begin a reading if there was none, or a gateway has other tables than any that were read."""
        digests = {str(gateway.health["digest"]) for gateway in gateways if gateway.health.get("digest")}
        if self._reading is None or (self._reading.done() and digests - self._read_for):
            self._read_for |= digests
            self._reading = asyncio.create_task(self._read())

    async def wait(self) -> None:
        if self.current is None and self._reading is not None:
            await self._reading

    async def _read(self) -> None:
        try:
            self.current = await asyncio.to_thread(Tables.load, self._directory)
        except OSError:
            log.exception("the tables cannot be read")
