"""The server: listening, signals, the clock and the turn. What one socket does is in `gateway.server.peer_socket`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from gateway.admin.http import HttpServer
from gateway.auth import mechanisms
from gateway.auth.authenticator import Authenticator
from gateway.config.settings import SettingsProblems
from gateway.evidence.log_events import about
from gateway.reload.tables import TableReload
from gateway.reload.users import UserFile
from gateway.reload.watched_files import WatchedFiles
from gateway.server.half_open import HalfOpenSockets
from gateway.server.listeners import Listeners
from gateway.server.peer_socket import TURN_BYTES_MIN, PeerSocket
from gateway.server.poll_interval import BUSY_INTERVAL_S, PollInterval
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from native_backend.state.mistakes import Step, Steps

log = logging.getLogger("realmgate.server")

TAKEN_OVER = 3  # the exit code
LOOK_INTERVAL_S = 1.0
DRAIN_DEADLINE_S = 2.0
CONSUMER_GRACE_S = 0.3
CLOSE_DEADLINE_S = 1.0
SHUT_DOWN_S = 4.5  # all of it: the realm gets what peers left of it, and never less than `CLOSE_DEADLINE_S`
SHARED_TURN_BYTES = TURN_BYTES_MIN  # read from many sockets: then their turn begins, though there may be more


class Server:
    """The loop around a gateway."""

    def __init__(self, gateway: Gateway, reload: TableReload, admin: socket.socket | None = None) -> None:
        """`admin`: where pages for those who watch are asked for."""
        self.gateway = gateway
        self._admin = admin
        self.sockets: dict[Connection, PeerSocket] = {}
        self.waiting: dict[PeerSocket, None] = {}  # those with less than a turn's worth, until the next tick
        self.half_open = HalfOpenSockets(gateway)
        self.loop: asyncio.AbstractEventLoop
        self._timer: asyncio.Handle | None = None  # uvloop gives one that tells no time when it is nearly due
        self._due = 0.0
        self._poll_interval = PollInterval(woken=gateway.realm.poll_interval_s == 0)
        self._stop, self._woken = asyncio.Event(), False
        self._heard = False  # since the last turn a peer has said more than a heartbeat
        self._received_bytes, self._turn_due = 0, False  # since the last turn
        self.authenticator: Authenticator
        self.watched: list[WatchedFiles] = []  # read again while serving
        self.password_checks = ThreadPoolExecutor(1, "passwords")  # its thread begins with the first
        self._beats = Steps(Step("heartbeats", self._beat))
        self.reload = reload
        self.listening: Listeners
        self.on_started: Callable[[list[str]], None] = lambda _: None  # where it listens
        self.on_stopping: Callable[[], None] = lambda: None
        gateway.on_broken = self._on_broken
        gateway.on_opened = self._on_opened

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stop.set)
        try:
            await self.open()
        except SettingsProblems:
            await self._give_up()
            raise
        pages = await self._open_pages()
        loop.add_signal_handler(signal.SIGHUP, self._read_again)
        looks = loop.create_task(self._every_second())
        for address in self.listening.addresses():
            sys.stdout.write(f"ready {address} realm={self.gateway.realm.kind}\n")
        sys.stdout.flush()
        self._note_started()
        self.on_started(self.listening.addresses())
        await self._stop.wait()
        self.on_stopping()
        self.listening.close()
        await self._shut_down()
        looks.cancel()
        for files in self.watched:
            await files.close()
        if pages is not None:
            await pages.close()
        code = TAKEN_OVER if self.gateway.realm.lost else 0
        log.info("stopped: exit code %d", code, extra=about("stopped", run=self.gateway.realm.run, code=code))
        return code

    def _note_started(self) -> None:
        realm, tables, where = self.gateway.realm, self.gateway.tables, self.listening.addresses()
        facts = {"run": realm.run, "realm": realm.kind, "listen": where}
        log.info(
            "started: run %s, realm %s, at %s", realm.run, realm.kind, ", ".join(where), extra=about("started", **facts)
        )
        facts = {"digest": tables.digest, "profile": tables.profile}
        log.info("tables %s are active", tables.digest, extra=about("tables active", **facts))

    async def open(self) -> list[asyncio.Server]:
        """Listen, and begin to take turns."""
        self.loop = loop = asyncio.get_running_loop()
        self.gateway.realm.on_ready(self._wake)
        self.gateway.arrivals.later = loop.call_later
        if self.gateway.realm.descriptor >= 0:
            loop.add_reader(self.gateway.realm.descriptor, self._on_readable)
        users, failures_kept = self.gateway.settings.security.users, self.gateway.limits.failed_logins
        mechanisms.make_ready(self.gateway.settings.security.sasl)
        tell = partial(self.gateway.turn_away, "login")
        self.authenticator = Authenticator(users, failures_kept, self.gateway.clock, tell, loop.call_later)
        self.listening = Listeners(self.gateway, self.password_checks, lambda: PeerSocket(self), self.half_open)
        self.watched = [*self._watched()]
        listeners = await self.listening.open(loop)
        self._tick()
        return listeners

    async def _open_pages(self) -> HttpServer | None:
        if self._admin is None:
            return None
        from gateway.admin.pages import commands, pages  # prometheus-client takes memory: only where it is asked for
        from gateway.admin.watched import Watched

        watched = Watched(
            self.gateway, self.reload, self.listening.certificates, self.watched, self.listening.addresses()
        )
        server = HttpServer(pages(watched), commands(watched))
        await server.open(self._admin)
        return server

    def _watched(self) -> Iterator[WatchedFiles]:
        yield self.reload
        file = self.gateway.settings.security.users_file
        if file is not None:
            yield UserFile(self.gateway, self.authenticator, self.password_checks, file)
        if self.listening.certificates is not None:
            yield self.listening.certificates

    def _read_again(self) -> None:
        """SIGHUP: all that is read while serving is read now."""
        for files in self.watched:
            files.request()

    # -- the turn

    def _tick(self) -> None:
        self._timer = None
        try:
            self._take_in()
        finally:  # whatever went wrong in one turn, there is a next one
            interval_s = self._poll_interval.interval_s(
                self.loop.time(), self.gateway.realm.busy, bool(self.gateway.ready)
            )
            due_s = self.gateway.heartbeats.due_s - self.gateway.clock.monotonic_s()
            self.schedule(min(interval_s, max(due_s, 0.0)))

    def schedule(self, interval_s: float) -> None:
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
            self.waiting.popitem()[0].resume()
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
        """One turn of the gateway, then write what it has to send."""
        began_s = self.gateway.clock.monotonic_s()
        if began_s >= self.gateway.heartbeats.due_s:
            self.gateway.realm.mistakes.take(self._beats)
        heard, self._heard = self._heard, False
        self._received_bytes, self._turn_due = 0, False
        self.gateway.poll()
        if self.flush() or heard:
            self._poll_interval.mark_active(self.loop.time())
        self.gateway.turned_s = began_s

    def _beat(self) -> None:
        """Heartbeats that are due, ahead of all else and without stirring the pace."""
        for connection in self.gateway.heartbeats.beat(self.gateway.clock.monotonic_s()):
            if (port := self.sockets.get(connection)) is not None:
                port.send()

    def flush(self) -> bool:
        """One write for each connection that has something to say. False: none had."""
        touched, sent = self.gateway.touched, False
        if self.gateway.departures or (touched and (self.gateway.ready or self.gateway.attach_share.is_due)):
            self.soon()
        while touched:
            port = self.sockets.get(touched.popitem()[0])
            sent |= port is not None and self._sent(port)
        return sent

    def _sent(self, port: PeerSocket) -> bool:
        try:
            return port.send()
        except Exception:
            self.gateway.report("sending failed; its connection is closed")
            port.abort()
            return False

    def soon(self) -> None:
        """Something was submitted: look for its answer at the busy pace."""
        self.schedule(BUSY_INTERVAL_S)

    def _on_opened(self, connection: Connection) -> None:
        """It has said who it is: it gives way to none any more."""
        port = self.sockets.get(connection)
        if port is not None:
            self.half_open.leave(port)
            self.gateway.waiting_bytes.join(connection.holder, port)

    def _on_broken(self, owner: Any) -> None:
        """An answer's owner failed: `owner` is an admission, or a batch of a link; or a connection could not go on."""
        connection = getattr(owner, "connection", None) or getattr(getattr(owner, "link", None), "connection", owner)
        port = self.sockets.get(connection) if isinstance(connection, Connection) else None
        if port is not None:
            port.abort()

    async def _every_second(self) -> None:
        looks = [Step("files that are read again", files.look) for files in self.watched]
        looks += [Step("notices and decisions", self.gateway.advance), Step("connections", self._tick_ports)]
        steps = Steps(*looks)
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            self.gateway.realm.mistakes.take(steps)
            if self.gateway.realm.lost and not self._stop.is_set():
                log.error("another gateway has taken over the realm: this one closes its links and stops")
                self._stop.set()

    def _tick_ports(self) -> None:
        for port in list(self.sockets.values()):
            port.tick(self.gateway.clock.monotonic_s())
        self.flush()

    # -- the end

    async def _give_up(self) -> None:
        """It cannot listen: close the realm at once."""
        await self.reload.close()
        self.gateway.close_evidence()
        self.gateway.realm.close(CLOSE_DEADLINE_S)

    async def _shut_down(self) -> None:
        """Drain, settle, close, free; inside five seconds whatever the peers do."""
        gateway, end_s = self.gateway, self.loop.time() + SHUT_DOWN_S
        gateway.stop()
        await self._until(lambda: gateway.drained, DRAIN_DEADLINE_S)
        await asyncio.sleep(CONSUMER_GRACE_S if self.sockets else 0)
        gateway.close_connections()
        self.flush()
        await self._until(lambda: not self.sockets and gateway.outcomes.open == 0, CLOSE_DEADLINE_S)
        for port in list(self.sockets.values()):
            port.abort()
        self.half_open.abort()
        self.password_checks.shutdown(wait=False, cancel_futures=True)
        gateway.close_evidence()
        gateway.notices.close()
        if gateway.realm.descriptor >= 0:
            self.loop.remove_reader(gateway.realm.descriptor)
        if self._timer is not None:
            self._timer.cancel()
        gateway.realm.close(max(CLOSE_DEADLINE_S, end_s - self.loop.time()))

    async def _until(self, reached: object, deadline_s: float) -> None:
        end = self.loop.time() + deadline_s
        while not reached() and self.loop.time() < end:  # type: ignore[operator]
            await asyncio.sleep(0.005)
