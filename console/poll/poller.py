"""Asks gateways while a page is open, and only then: one task a gateway, one request at a time, for all viewers
together.

    watch = Watch(gateways, clock); watch.start(); await watch.look(links=True); watch.version

A round reads /health, /metrics, the refusals that are new, and, where a page wants them and not more often than every
`LINKS_S`, connections and links. A gateway that is slow or silent is asked less often. Nothing here raises for what a
gateway answers: it is written into `Gateway.problem`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from console.facts.gateway import Gateway
from console.limits import FIRST_WAIT_S, LINKS_S, LOOKED_S, POLL_MAX_S, POLL_S, RETRY_MAX_S, SLOW_S
from console.poll.fetch import NoAnswer, fetch
from gateway.verdict.answers import Row, read_health, read_page
from gateway.verdict.limits import ERROR_PAGES, LINK_ROWS, ROWS
from gateway.verdict.samples import WrongAnswer, read_samples
from native_backend.clock import Clock

log = logging.getLogger("realmgate.console")


class Watch:
    """All gateways of a console. `version` rises with each round that ended; `changed` is set and replaced then."""

    def __init__(self, gateways: Sequence[Gateway], clock: Clock) -> None:
        self.gateways = gateways
        self.clock = clock
        self.version = 0
        self.changed = asyncio.Event()
        self.streams = 0  # viewers that stay
        self.link_streams = 0  # of these, who look at links
        self.links_wanted_s = float("-inf")
        self._looked_s = float("-inf")
        self._pollers = [_Poller(gateway, self) for gateway in gateways]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(poller.run()) for poller in self._pollers]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_looked_at(self) -> bool:
        return self.streams > 0 or self.clock.monotonic_s() - self._looked_s < LOOKED_S

    @contextmanager
    def viewer(self, links: bool) -> Iterator[None]:
        """A page stays open inside."""
        self.streams += 1
        self.link_streams += links
        self._wake_sleepers()
        try:
            yield
        finally:
            self.streams -= 1
            self.link_streams -= links

    async def look(self, links: bool) -> None:
        """A page is made. Returns when every gateway was asked lately, after `FIRST_WAIT_S` at the latest."""
        now_s = self.clock.monotonic_s()
        self._looked_s = now_s
        if links:
            self.links_wanted_s = now_s
        self._wake_sleepers()
        waiting = [poller.fresh(now_s, links) for poller in self._pollers]
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_WAIT_S):
                await asyncio.gather(*waiting)

    def _wake_sleepers(self) -> None:
        for poller in self._pollers:
            poller.wake_sleeper()

    def has_changed(self) -> None:
        self.version += 1
        self.changed.set()
        self.changed = asyncio.Event()


class _Poller:
    """One gateway's."""

    def __init__(self, gateway: Gateway, watch: Watch) -> None:
        self._gateway, self._watch = gateway, watch
        self._interval_s = POLL_S
        self._ended_s = float("-inf")  # the last round, well or not
        self._links_s = float("-inf")
        self._wake = asyncio.Event()
        self._sleeps = False  # until a page is looked at
        self._round = asyncio.Event()  # set and replaced when a round ends

    async def fresh(self, now_s: float, links: bool) -> None:
        """Until a round ended that is no older than its interval, with links where they are wanted."""
        lacks_links = links and now_s - self._links_s > LINKS_S + POLL_S and not self._gateway.failed_us
        if now_s - self._ended_s > self._interval_s + SLOW_S or lacks_links:
            ended = self._round
            self._wake.set()
            await ended.wait()

    def wake_sleeper(self) -> None:
        """A page is looked at. One that waits for its next round waits on."""
        if self._sleeps:
            self._wake.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            if self._watch.is_looked_at or self._wake.is_set():
                self._wake.clear()
                await self._once()
                self._watch.has_changed()
                ended, self._round = self._round, asyncio.Event()
                ended.set()
            self._sleeps = not self._watch.is_looked_at
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._sleeps else self._interval_s):
                    await self._wake.wait()

    async def _once(self) -> None:
        clock, gateway = self._watch.clock, self._gateway
        began_s = clock.monotonic_s()
        try:
            await self._read(began_s)
        except (NoAnswer, WrongAnswer) as error:
            gateway.failed(clock.epoch_us(), str(error))
            self._interval_s = min(RETRY_MAX_S, self._interval_s * 2)
        except Exception:  # we are wrong: that round is lost, the next ones go on
            log.exception("a round of %s", gateway.name)
            gateway.failed(clock.epoch_us(), "the console itself failed to read the answer; its log has more")
            self._interval_s = POLL_MAX_S
        else:
            slow = clock.monotonic_s() - began_s > SLOW_S
            self._interval_s = min(POLL_MAX_S, self._interval_s * 2) if slow else POLL_S
        self._ended_s = clock.monotonic_s()

    async def _read(self, began_s: float) -> None:
        gateway, clock = self._gateway, self._watch.clock
        _, body = await fetch(gateway.url, "/health")
        health = read_health(body)
        _, body = await fetch(gateway.url, "/metrics")
        samples = read_samples(body.decode("utf-8", "replace"))
        since_us = gateway.errors_since_us if health["run"] == gateway.run else 0
        errors, _ = await self._rows("errors", ERROR_PAGES, {"since": str(since_us)})
        wanted = self._watch.link_streams > 0 or began_s - self._watch.links_wanted_s < LOOKED_S
        if wanted and began_s - self._links_s >= LINKS_S:
            connections, _ = await self._rows("connections", LINK_ROWS // ROWS, {})
            links, is_cut = await self._rows("links", LINK_ROWS // ROWS, {})
            gateway.has_links(clock.epoch_us(), connections, links, is_cut)
            self._links_s = began_s
        gateway.answered(clock.epoch_us(), health, samples, errors, clock.monotonic_s() - began_s)

    async def _rows(self, what: str, pages: int, query: dict[str, str]) -> tuple[list[Row], bool]:
        """So many pages at most. True: there are more."""
        listed: list[Row] = []
        after = ""
        for _ in range(pages):
            _, body = await fetch(
                self._gateway.url, f"/api/{what}", {**query, "limit": str(ROWS), **({"after": after} if after else {})}
            )
            head, rows = read_page(body, what)
            listed += rows
            after = head["next"] or ""
            if not after:
                return listed, False
        return listed, True
