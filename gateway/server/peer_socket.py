"""One socket of an AMQP peer: who it is first, then a connection of the gateway's; its octets in slices of a turn's
worth (ADR 0026), and no more of them than may wait here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Executor
from typing import Protocol, cast

from gateway.amqp.link_owner import UNOWNED
from gateway.attach.admission import Admission
from gateway.auth.authenticator import Authenticator
from gateway.server.half_open import HalfOpenSockets
from gateway.server.handshake import SaslHandshake, address_of, sasl_server
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from native_backend.nodes.grants import Subject

# Of one socket, about: few enough that reading, the log and writing overlap, enough to pay for a turn.
TURN_MESSAGES = 250
TURN_BYTES_MIN, TURN_BYTES_MAX = 16_384, 262_144
READ_AHEAD_BYTES = 524_288
TURN_EFFORT = 64  # of frames that are no plain deliveries, `gateway.frames.frame_reader`: some 2 ms
STREAM_MESSAGES = 32  # in a turn: then the peer streams, and what comes may wait for a turn's worth


class Turns(Protocol):
    """The server around all sockets: the loop, and the turn that they share."""

    loop: asyncio.AbstractEventLoop
    authenticator: Authenticator

    @property
    def gateway(self) -> Gateway: ...

    @property
    def password_checks(self) -> Executor: ...

    @property
    def sockets(self) -> dict[Connection, PeerSocket]: ...

    @property
    def waiting(self) -> dict[PeerSocket, None]:
        """Those with less than a turn's worth."""

    @property
    def half_open(self) -> HalfOpenSockets:
        """Those whose peers have not opened a connection."""

    def received(self, size_bytes: int, heard: bool) -> None:
        """A connection has taken what its peer sent. `heard`: it was more than a heartbeat."""

    def soon(self) -> None:
        """Something was submitted: look for its answer at the busy pace."""

    def turn(self) -> None: ...


class PeerSocket(asyncio.Protocol):
    """One socket: SASL first, then a connection of the gateway's."""

    def __init__(self, server: Turns) -> None:
        self._server = server
        self._gateway = server.gateway
        self._handshake: SaslHandshake | None = None
        self._connection: Connection | None = None
        self._transport: asyncio.Transport
        self._since = self._gateway.clock.monotonic_s()
        self._closing_since: float | None = None
        self._turn_bytes = TURN_BYTES_MIN
        self._ahead: deque[memoryview] = deque()  # read from the socket, for the turns to come
        self._ahead_bytes = 0
        self._scheduled = False  # the next turn
        self._held_up = False  # until the connection has what it waits for of the realm
        self._streams = False
        self._pressure = self._gate_closed = False
        self._lost = False  # the socket has gone
        self._heard = False  # its peer has said something
        self.at_fault = False  # what is below ended it for what its peer did

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=self._gateway.limits.write_buffer_bytes)
        if self._gateway.stopping or not self._server.half_open.enter(self, address_of(transport)):
            transport.abort()
            return
        security, server = self._gateway.settings.security, self._server
        login, checks = server.authenticator.login(address_of(transport)), server.password_checks
        sasl = sasl_server(security, login, transport)
        self._handshake = SaslHandshake(sasl, login, transport, server.loop, checks, self._enter, self._refuse)
        self._connection = self._gateway.connect()
        self._connection.address = address_of(transport)
        self._connection.write_pressure.in_socket = transport.get_write_buffer_size
        server.sockets[self._connection] = self

    @property
    def is_known(self) -> bool:
        """It has logged in."""
        return self._connection is not None and self._handshake is None

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        if connection is None:
            return
        if self._handshake is not None:
            self._heard = True
            self._handshake.receive(data)
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
            self.resume()

    def _soon(self) -> None:
        self._scheduled = True
        self._server.loop.call_soon(self._scheduled_turn)
        self._gate()

    def _scheduled_turn(self) -> None:
        self._scheduled = False
        self.resume()

    def resume(self) -> None:
        """One turn on what was read ahead. Between two turns the loop writes, and the log has begun with the first."""
        connection, room = self._connection, self._turn_bytes
        if connection is None or not self._ahead:
            return
        if connection.waiting and not self._lost:
            self._held_up = True
            return
        if self._is_unheard:
            self._leave()
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
        self._receive(connection, data)
        if self._lost and not self._ahead:
            self._leave()
        self._gate()

    def _receive(self, connection: Connection, data: list[memoryview]) -> None:
        messages, heard, effort = connection.messages, False, TURN_EFFORT
        try:
            for at, octets in enumerate(data):
                heard |= connection.receive(octets, effort)
                reader = connection.engine.frame_reader
                effort -= reader.effort
                if effort <= 0:
                    self._put_back([reader.unread, *data[at + 1 :]])
                    data = [*data[:at], octets[: max(0, len(octets) - len(reader.unread))]]
                    break
        except Exception:
            self._gateway.report("a turn failed; its connection is closed")  # we are wrong: every other goes on
            self._ahead.clear()
            self._ahead_bytes = 0
            self.abort()
            return
        messages, size_bytes = connection.messages - messages, sum(map(len, data))
        self._streams = messages >= STREAM_MESSAGES
        if messages:
            fitting = size_bytes * TURN_MESSAGES // messages
            self._turn_bytes = min(TURN_BYTES_MAX, max(TURN_BYTES_MIN, fitting))
        self._server.received(size_bytes, heard)

    def _put_back(self, octets: list[bytes | memoryview]) -> None:
        """They took no plain deliveries to read: others have their turn before the rest."""
        rest = [memoryview(chunk) for chunk in octets if chunk]
        self._ahead.extendleft(reversed(rest))
        self._ahead_bytes += sum(map(len, rest))
        if rest and not self._scheduled:
            self._soon()

    def _gate(self) -> None:
        """Read from the socket, or do not: too much waits here, for the realm, or for the peer to read it."""
        connection = self._connection
        held_up = self._pressure or (connection is not None and connection.waiting)
        closed = held_up or self._ahead_bytes > READ_AHEAD_BYTES or self._is_unread
        if closed != self._gate_closed and not self._transport.is_closing():
            self._gate_closed = closed
            if closed:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    @property
    def _is_unread(self) -> bool:
        """The peer gets no more events, and does not read our answers."""
        congested = self._connection is not None and self._connection.write_pressure.congested
        return congested and self._transport.get_write_buffer_size() > 2 * self._gateway.limits.write_buffer_bytes

    @property
    def _is_unheard(self) -> bool:
        """It waits for attaches, and has no other link. Where its peer has gone they come to nothing, and so does what
        was read ahead: after ten loops of attaches that was work for seconds."""
        connection = self._connection
        if connection is None or not connection.waiting:
            return False
        owners = [link.owner for link in connection.engine.links() if link.alive]
        return all(owner is UNOWNED or isinstance(owner, Admission) for owner in owners)

    def _enter(self, subject: Subject, data: bytes) -> None:
        self._handshake = None
        if self._connection is not None:
            self._connection.subject = subject
            if data:
                self.data_received(data)

    def _refuse(self, named: bool) -> None:
        """`named`: its user is known, so the peer has heard why."""
        address = address_of(self._transport)
        if named:
            self._gateway.count_fault("sasl", f"{address} was refused", address)
        else:
            words = f"{address} was refused: it offered no mechanism that the gateway has, or broke the protocol"
            self._gateway.turn_away("login", "sasl", words, address, "", address)

    def send(self) -> bool:
        """Write what the connection has to say; close the socket behind its last word. False: it had nothing."""
        connection = self._connection
        if connection is None:
            return False
        for piece in (pieces := connection.data_to_send()):
            if not self._transport.is_closing():
                self._transport.write(piece)
        if self._held_up and not connection.waiting:
            self._held_up = False
            if not self._scheduled:
                self._soon()
        self._gate()
        if connection.closing and connection.engine.finished:
            self._transport.close()
        return bool(pieces)

    def tick(self, now_s: float) -> None:
        """Peers that have fallen silent, and those that connected and said nothing."""
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
        connection.liveness.heard |= self._pressure or bool(self._ahead)  # it may have spoken: it is not read
        connection.tick(now_s)

    @property
    def _was_heard(self) -> bool:
        """Its peer has made work. One that only looks whether the port is open has not."""
        return self._heard or bool(self._transport.get_extra_info("heard"))

    def pause(self, pressure: bool) -> None:
        self._pressure = pressure
        self._gate()

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.write_pressure.set_congested(True)

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.write_pressure.set_congested(False)
            self._gate()
            self._server.soon()  # its links go on

    def abort(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._is_unheard:
            self._leave()
            return
        if self._connection is not None and self._ahead and not self._scheduled:
            data = [*self._ahead]
            self._ahead.clear()
            self._ahead_bytes = 0
            self._receive(self._connection, data)  # what came before the end still counts
            self._server.turn()
        if not self._ahead:
            self._leave()

    def _leave(self) -> None:
        self._server.waiting.pop(self, None)
        self._server.half_open.leave(self)
        if self._handshake is not None:
            self._handshake.hung_up()
        connection, self._connection, self._handshake = self._connection, None, None
        if connection is not None:
            self._server.sockets.pop(connection, None)
            self._gateway.waiting_bytes.leave(connection.holder, self)
            if self.at_fault or connection.at_fault or (not connection.opened and self._was_heard):
                self._gateway.arrivals.charge(connection.address)
            try:
                self._gateway.disconnect(connection)
            except Exception:
                self._gateway.report("closing a connection failed")
            self._server.soon()
