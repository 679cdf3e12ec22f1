"""The server: listening, signals, the clock and the turn, and nothing else. What one socket does is in `gateway.port`.

May import: `gateway`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from gateway.admin.http import HttpServer
from gateway.connection import Connection
from gateway.doorkeeper import Doorkeeper
from gateway.gateway import Gateway
from gateway.listening import Listening
from gateway.pace import BUSY_INTERVAL_S, Pace
from gateway.port import TURN_BYTES_MIN, Port
from gateway.reload import Reload
from gateway.roster import Roster

log = logging.getLogger("realmgate.server")

TAKEN_OVER = 3  # the exit code
HOUSEKEEPING_INTERVAL_S = 1.0
DRAIN_DEADLINE_S = 2.0
CONSUMER_GRACE_S = 0.3
CLOSE_DEADLINE_S = 1.0
SHARED_TURN_BYTES = TURN_BYTES_MIN  # read from many sockets: then their turn begins, though there may be more


class Server:
    """The loop around a gateway."""

    def __init__(self, gateway: Gateway, reload: Reload, admin: socket.socket | None = None) -> None:
        """`admin`: where pages for those who watch are asked for."""
        self.gateway = gateway
        self._admin = admin
        self.ports: dict[Connection, Port] = {}
        self.waiting: dict[Port, None] = {}  # those with less than a turn's worth, until the next tick
        self.loop: asyncio.AbstractEventLoop
        self._timer: asyncio.Handle | None = None  # uvloop gives one that tells no time when it is nearly due
        self._due = 0.0
        self._pace = Pace(woken=gateway.realm.poll_interval_s == 0)
        self._stop, self._woken = asyncio.Event(), False
        self._heard = False  # since the last turn a peer has said more than a heartbeat
        self._received_bytes, self._turn_due = 0, False  # since the last turn
        self.doorkeeper: Doorkeeper
        self.roster: Roster
        self.password_checks = ThreadPoolExecutor(1, "passwords")  # its thread begins with the first
        self.reload = reload
        self.listening: Listening
        gateway.on_pressure = self._on_pressure
        gateway.on_broken = self._on_broken

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stop.set)
        await self.open()
        pages = await self._open_pages()
        loop.add_signal_handler(signal.SIGHUP, self.listening.hung_up, self.reload)
        housekeeping = loop.create_task(self._keep_house())
        for address in self.listening.addresses():
            sys.stdout.write(f"ready {address} realm={self.gateway.realm.kind}\n")
        sys.stdout.flush()
        await self._stop.wait()
        self.listening.close()
        await self._shut_down()
        housekeeping.cancel()
        await self.reload.close()
        if pages is not None:
            await pages.close()
        return TAKEN_OVER if self.gateway.realm.lost else 0

    async def open(self) -> list[asyncio.Server]:
        """Listen, and begin to take turns."""
        self.loop = loop = asyncio.get_running_loop()
        self.gateway.realm.on_ready(self._wake)
        if self.gateway.realm.descriptor >= 0:
            loop.add_reader(self.gateway.realm.descriptor, self._on_readable)
        users, failures_kept = self.gateway.settings.security.users, self.gateway.limits.failed_logins
        self.doorkeeper = Doorkeeper(users, failures_kept, self.gateway.clock)
        self.roster = Roster(self.gateway, self.doorkeeper, self.password_checks)
        self.listening = Listening(self.gateway, self.password_checks, lambda: Port(self))
        listeners = await self.listening.open(loop)
        self._tick()
        return listeners

    async def _open_pages(self) -> HttpServer | None:
        if self._admin is None:
            return None
        from gateway.admin.station import pages  # prometheus-client takes memory: only where it is asked for

        server = HttpServer(pages(self.gateway, self.reload, self.listening.certificates))
        await server.open(self._admin)
        return server

    # -- the turn

    def _tick(self) -> None:
        self._timer = None
        try:
            self._take_in()
        finally:  # whatever went wrong in one turn, there is a next one
            self._schedule(self._pace.interval_s(self.loop.time(), self.gateway.realm.busy, bool(self.gateway.ready)))

    def _schedule(self, interval_s: float) -> None:
        due = self.loop.time() + interval_s
        if self._timer is not None:
            if self._due <= due + BUSY_INTERVAL_S:
                return
            self._timer.cancel()
        self._due = due
        self._timer = self.loop.call_later(interval_s, self._tick)

    def _wake(self) -> None:
        """From any thread: the realm has something. Many calls before the turn begins are one."""
        if not self._woken:
            self._woken = True
            self.loop.call_soon_threadsafe(self._on_woken)

    def _on_woken(self) -> None:
        self._woken = False
        self.turn()

    def _on_readable(self) -> None:
        """Something of the log has landed, so what waits for a turn's worth may go."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.gateway.realm.descriptor)
        self._take_in()

    def _take_in(self) -> None:
        """What waited for a turn's worth, and a turn."""
        while self.waiting:
            self.waiting.popitem()[0].go_on()
        self.turn()

    def received(self, size_bytes: int, heard: bool) -> None:
        """A connection has taken what its peer sent, so a turn is due: behind whatever else can be read now, as a turn
        for each of many sockets costs more than what they say. `heard`: it was more than a heartbeat."""
        self._heard |= heard
        self._received_bytes += size_bytes
        if self._received_bytes >= SHARED_TURN_BYTES:
            self.turn()
        elif not self._turn_due:
            self._turn_due = True
            self.loop.call_soon(self._due_turn)
        self.soon()

    def _due_turn(self) -> None:
        if self._turn_due:
            self.turn()

    def turn(self) -> None:
        """One turn of the gateway, and what is to be said after it."""
        heard, self._heard = self._heard, False
        self._received_bytes, self._turn_due = 0, False
        self.gateway.poll()
        if self.flush() or heard:
            self._pace.stir(self.loop.time())

    def flush(self) -> bool:
        """One write for each connection that has something to say. False: none had."""
        touched, said = self.gateway.touched, False
        if touched and self.gateway.ready:
            self.soon()
        while touched:
            port = self.ports.get(touched.popitem()[0])
            said |= port is not None and port.send()
        return said

    def soon(self) -> None:
        """Something was submitted: look for its answer at the busy pace."""
        self._schedule(BUSY_INTERVAL_S)

    def _on_pressure(self, pressure: bool) -> None:
        for port in self.ports.values():
            port.pause(pressure)

    def _on_broken(self, owner: Any) -> None:
        """An answer's owner failed: `owner` is an admission, or a batch of a link."""
        connection = getattr(owner, "connection", None) or getattr(getattr(owner, "link", None), "connection", None)
        port = self.ports.get(connection) if connection is not None else None
        if port is not None:
            port.abort()

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_INTERVAL_S)
            self.reload.look()
            self.listening.look()
            self.roster.look()
            for port in list(self.ports.values()):
                port.tick(self.gateway.clock.monotonic_s())
            self.flush()  # heartbeats, mostly: they do not stir the pace
            if self.gateway.realm.lost and not self._stop.is_set():
                log.error("another gateway has taken the realm over: this one closes its links and ends")
                self._stop.set()

    # -- the end

    async def _shut_down(self) -> None:
        """Drain, settle, close, free; inside five seconds whatever the peers do."""
        gateway = self.gateway
        gateway.stop()
        await self._until(lambda: gateway.drained, DRAIN_DEADLINE_S)
        await asyncio.sleep(CONSUMER_GRACE_S if self.ports else 0)
        gateway.close_connections()
        self.flush()
        await self._until(lambda: not self.ports and gateway.outcomes.open == 0, CLOSE_DEADLINE_S)
        for port in list(self.ports.values()):
            port.abort()
        self.password_checks.shutdown(wait=False, cancel_futures=True)
        gateway.close_evidence()
        if gateway.realm.descriptor >= 0:
            self.loop.remove_reader(gateway.realm.descriptor)
        if self._timer is not None:
            self._timer.cancel()
        gateway.realm.close(CLOSE_DEADLINE_S)

    async def _until(self, reached: object, deadline_s: float) -> None:
        end = self.loop.time() + deadline_s
        while not reached() and self.loop.time() < end:  # type: ignore[operator]
            await asyncio.sleep(0.005)
