"""Reads the history of the gateways while a page asks for it, and keeps it for a moment, for all viewers together.

A gateway has one request for its history under way at most. One that is slow or silent delays no other, and no page by
more than `FIRST_WAIT_S`. Where none answers, the history is read out of the realm itself, by a command, if the console
has its configuration. Nothing here raises for what is answered: it is written into `Reading.problem`, and what
was read before stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from console.facts.gateway import Gateway
from console.facts.history import NEVER, Asked, History, Reading, asked_of, written
from console.limits import FIRST_WAIT_S, HISTORY_KEPT, HISTORY_PAGES, HISTORY_S
from console.poll.commands import Commands
from console.poll.fetch import NoAnswer, fetch
from gateway.verdict.history import MINUTE_US, HistoryRow, read_history
from gateway.verdict.limits import ROWS
from gateway.verdict.samples import WrongAnswer
from native_backend.clock import Clock

log = logging.getLogger("realmgate.console")
HISTORY: Final = "/history"
"""The page that asks for it."""


@dataclass(slots=True)
class _Kept:
    history: History
    began_s: float = float("-inf")
    under_way: set[asyncio.Task[None]] = field(default_factory=set)
    stored: asyncio.Task[None] | None = None  # it reads the realm itself: slower, and on its own

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        stored = {self.stored} if self.stored is not None and not self.stored.done() else set()
        return self.under_way | stored


class HistoryReader:
    """See the module's docstring."""

    def __init__(self, gateways: Sequence[Gateway], clock: Clock, commands: Commands | None = None) -> None:
        self._gateways, self._clock, self._commands = gateways, clock, commands
        self._kept: OrderedDict[Asked, _Kept] = OrderedDict()
        self._turns = {gateway.name: asyncio.Lock() for gateway in gateways}

    def known(self, query: Mapping[str, str]) -> History:
        """What was read last of that time."""
        request = asked_of(query, self._clock.epoch_us())
        kept = self._kept.get(request)
        return kept.history if kept is not None else History(request)

    def want(self, query: Mapping[str, str]) -> set[asyncio.Task[None]]:
        """Begin to read, unless it is under way or was begun a moment ago. What is under way."""
        request, now_s = asked_of(query, self._clock.epoch_us()), self._clock.monotonic_s()
        kept = self._kept.setdefault(request, _Kept(History(request)))
        self._kept.move_to_end(request)
        if not kept.under_way and now_s - kept.began_s >= HISTORY_S:
            kept.began_s = now_s
            requests = [self._begin(kept, self._read(gateway, kept)) for gateway in self._gateways]
            if self._commands is not None and (kept.stored is None or kept.stored.done()):
                kept.stored = asyncio.create_task(self._read_stored(self._commands, kept, requests))
        spare = max(0, len(self._kept) - HISTORY_KEPT)
        for old in [key for key in self._kept if not self._kept[key].tasks][:spare]:
            del self._kept[old]
        return kept.tasks

    def _begin(self, kept: _Kept, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        kept.under_way.add(task)
        task.add_done_callback(kept.under_way.discard)
        return task

    async def read(self, query: Mapping[str, str]) -> None:
        """The same, and wait for it, `FIRST_WAIT_S` at most."""
        if under_way := self.want(query):
            await asyncio.wait(under_way, timeout=FIRST_WAIT_S)

    async def stop(self) -> None:
        under_way = [task for kept in self._kept.values() for task in kept.tasks]
        for task in under_way:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _read(self, gateway: Gateway, kept: _Kept) -> None:
        try:
            async with self._turns[gateway.name]:
                reading = await self._pages(gateway, kept.history.asked)
        except (NoAnswer, WrongAnswer) as error:
            reading = replace(kept.history.of(gateway.name), problem=str(error))
        except Exception:  # we are wrong: what was read before stays
            log.exception("the history of %s", gateway.name)
            reading = replace(kept.history.of(gateway.name), problem="the console itself failed to read the answer")
        kept.history = replace(kept.history, readings={**kept.history.readings, gateway.name: reading})

    async def _read_stored(self, commands: Commands, kept: _Kept, requests: Sequence[asyncio.Task[None]]) -> None:
        """Out of the realm itself, once the gateways have been asked and none has answered."""
        await asyncio.wait(requests)
        if not kept.history.is_missed:
            kept.history = replace(kept.history, stored=None)
            return
        begin_us, end_us = kept.history.asked.window(self._clock.epoch_us())
        times = f"--since={written(begin_us)}", f"--until={written(end_us)}"
        try:
            body = await commands.run("history", "--stored", "--json", *times, f"--by={kept.history.asked.step}")
            head, rows = read_history(body, HISTORY_PAGES * ROWS)
        except (NoAnswer, WrongAnswer) as error:
            stored = replace(kept.history.stored or NEVER, problem=str(error))
        except Exception:  # as above
            log.exception("the history in the realm")
            stored = replace(kept.history.stored or NEVER, problem="the console itself failed to read the answer")
        else:
            now_us, is_cut = self._clock.epoch_us(), head["next"] is not None
            stored = Reading(tuple(rows), head["known_us"], int(head["at_us"]), now_us, head["state"] or "", is_cut)
        kept.history = replace(kept.history, stored=stored)

    async def _pages(self, gateway: Gateway, request: Asked) -> Reading:
        """Raises NoAnswer, WrongAnswer."""
        begin_us, end_us = request.window(self._clock.epoch_us())
        minutes = str((end_us - begin_us) // MINUTE_US)
        query = {"since": str(begin_us), "minutes": minutes, "step": request.step, "limit": str(ROWS)}
        rows: list[HistoryRow] = []
        reading = NEVER
        for number in range(HISTORY_PAGES):
            _, body = await fetch(gateway.url, "/api/history", query)
            head, page = read_history(body)
            rows += page
            known_us = head["known_us"] if number == 0 else reading.known_us
            reading = Reading(tuple(rows), known_us, int(head["at_us"]), self._clock.epoch_us(), head["state"] or "")
            if not head["next"]:
                return reading
            query["after"] = head["next"]
        return replace(reading, is_cut=True)
