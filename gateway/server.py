"""The server: sockets, signals and the clock, and nothing else. The only place with asyncio.

May import: `gateway`, `native_backend.access`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

from gateway.admin.http import HttpServer
from gateway.connection import Connection
from gateway.doorkeeper import Doorkeeper
from gateway.entrance import Entrance, sasl_server
from gateway.gateway import Gateway
from gateway.listening import Listening
from gateway.pace import BUSY_INTERVAL_S, Pace
from gateway.reload import Reload
from gateway.roster import Roster
from native_backend.access import Subject

log = logging.getLogger("realmgate.server")

TAKEN_OVER = 3  # the exit code
HOUSEKEEPING_INTERVAL_S = 1.0
DRAIN_DEADLINE_S = 2.0
CONSUMER_GRACE_S = 0.3
CLOSE_DEADLINE_S = 1.0
# Of one socket, about: few enough that reading, the log and writing overlap, enough to pay for a turn.
TURN_MESSAGES = 250
TURN_BYTES_MIN, TURN_BYTES_MAX = 16_384, 262_144
READ_AHEAD_BYTES = 524_288
STREAM_MESSAGES = 32  # in a turn: then the peer streams, and what comes may wait for a turn's worth


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

    def turn(self, heard: bool = False) -> None:
        """One turn of the gateway, and what is to be said after it. `heard`: a peer has said more than a heartbeat."""
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


class Port(asyncio.Protocol):
    """One socket: SASL first, then a connection of the gateway's."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._gateway = server.gateway
        self._entrance: Entrance | None = None
        self._connection: Connection | None = None
        self._transport: asyncio.Transport
        self._since = self._gateway.clock.monotonic_s()
        self._closing_since: float | None = None
        self._turn_bytes = TURN_BYTES_MIN
        self._ahead: deque[memoryview] = deque()  # read from the socket, for the turns to come
        self._ahead_bytes = 0
        self._scheduled = False  # the next turn
        self._streams = False
        self._pressure = self._gate_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=self._gateway.limits.write_buffer_bytes)
        if self._gateway.is_full or self._gateway.stopping:
            transport.abort()
            return
        security, server = self._gateway.settings.security, self._server
        sasl = sasl_server(security, server.doorkeeper, transport)
        checks = server.password_checks
        self._entrance = Entrance(sasl, transport, server.loop, checks, self._enter, self._refuse)
        self._connection = self._gateway.connect()
        self._connection.unread.in_socket = transport.get_write_buffer_size
        server.ports[self._connection] = self

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        if connection is None:
            return
        if self._entrance is not None:
            self._entrance.receive(data)
            return
        self._ahead.append(memoryview(data))
        self._ahead_bytes += len(data)
        if self._scheduled:
            self._gate()
        elif self._ahead_bytes > self._turn_bytes:
            self._soon()
        elif self._streams:
            self._server.waiting[self] = None
            self._server.soon()
        else:
            self.go_on()

    def _soon(self) -> None:
        self._scheduled = True
        self._server.loop.call_soon(self._scheduled_turn)
        self._gate()

    def _scheduled_turn(self) -> None:
        self._scheduled = False
        self.go_on()

    def go_on(self) -> None:
        """One turn on what was read ahead. Between two turns the loop writes, and the log has begun with the first."""
        connection, room = self._connection, self._turn_bytes
        if connection is None or not self._ahead:
            return
        data = []
        while room and self._ahead:
            octets = self._ahead.popleft()
            if len(octets) > room:
                self._ahead.appendleft(octets[room:])
                octets = octets[:room]
            data.append(octets)
            room -= len(octets)
        self._ahead_bytes -= self._turn_bytes - room
        if self._ahead and not self._scheduled:
            self._soon()
        self._turn(connection, data)
        self._gate()

    def _turn(self, connection: Connection, data: list[memoryview]) -> None:
        messages, heard = connection.messages, False
        try:
            for octets in data:
                heard |= connection.receive(octets)
        except Exception:
            self._gateway.report("a turn failed; its connection is closed")  # we are wrong: every other goes on
            self._ahead.clear()
            self._ahead_bytes = 0
            self.abort()
            return
        messages = connection.messages - messages
        self._streams = messages >= STREAM_MESSAGES
        if messages:
            fitting = sum(map(len, data)) * TURN_MESSAGES // messages
            self._turn_bytes = min(TURN_BYTES_MAX, max(TURN_BYTES_MIN, fitting))
        self._server.turn(heard)
        self._server.soon()

    def _gate(self) -> None:
        """Read from the socket, or do not: too much waits here, for the realm, or for the peer to read it."""
        closed = self._pressure or self._ahead_bytes > READ_AHEAD_BYTES or self._is_unread
        if closed != self._gate_closed and not self._transport.is_closing():
            self._gate_closed = closed
            if closed:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    @property
    def _is_unread(self) -> bool:
        """It gets no more events, nor does it read the answers that it asks for."""
        congested = self._connection is not None and self._connection.unread.congested
        return congested and self._transport.get_write_buffer_size() > 2 * self._gateway.limits.write_buffer_bytes

    def _enter(self, subject: Subject, data: bytes) -> None:
        self._entrance = None
        if self._connection is not None:
            self._connection.subject = subject
            if data:
                self.data_received(data)

    def _refuse(self) -> None:
        self._gateway.count_fault("sasl", "refused")

    def send(self) -> bool:
        """Write what the connection has to say; close the socket behind its last word. False: it had nothing."""
        connection = self._connection
        if connection is None:
            return False
        for piece in (pieces := connection.data_to_send()):
            self._transport.write(piece)
        if connection.closing and connection.engine.finished:
            self._transport.close()
        return bool(pieces)

    def tick(self, now_s: float) -> None:
        """Heartbeats; and peers that connected and said nothing."""
        connection, limits = self._connection, self._gateway.limits
        if connection is None:
            return
        if not connection.opened and now_s - self._since > limits.open_timeout_ms / 1000:
            self.abort()
            return
        if connection.closing:
            self._closing_since = self._closing_since or now_s
            if now_s - self._closing_since > limits.close_timeout_ms / 1000:
                self.abort()
                return
        connection.tick(now_s)

    def pause(self, pressure: bool) -> None:
        self._pressure = pressure
        self._gate()

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.unread.congest(True)

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.unread.congest(False)
            self._gate()
            self._server.soon()  # its links go on

    def abort(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None and self._ahead:
            data = [*self._ahead]
            self._ahead.clear()
            self._turn(self._connection, data)  # what came before the end still counts
        self._server.waiting.pop(self, None)
        connection, self._connection, self._entrance = self._connection, None, None
        if connection is not None:
            self._server.ports.pop(connection, None)
            try:
                self._gateway.disconnect(connection)
            except Exception:
                self._gateway.report("a connection could not be taken leave of")
            self._server.soon()
