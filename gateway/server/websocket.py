"""WebSocket between a socket (or TLS) and a port: a handshake with the sub-protocol `amqp`, then AMQP in binary
messages, cut anywhere.

A browser sends an Origin. A page of a foreign site must not talk to a gateway that its reader can reach, so an Origin
is accepted only if it is the requested Host or in `origins`. Compression is not offered.

A frame costs some 30 us here, however few octets it has. So what was read is taken in slices, a few frames in a turn of
the loop, and nothing more is read meanwhile; and frames that bring nothing, or come before the login, are limited.
Source: RFC 6455 (by wsproto), AMQP WebSocket Binding 1.0. Errors: none; what cannot be read ends the connection, and
`failed` gets the reason.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from gateway.server.layer import Layer

SUBPROTOCOL = "amqp"
_FORBIDDEN, _BAD_REQUEST = 403, 400
SLICE_BYTES = 4_096  # given to wsproto at once: its buffer moves what it holds
TURN_FRAMES, TURN_BYTES = 32, 65_536  # then others have their turn: about a millisecond
UNKNOWN_FRAMES = 1_000  # of a peer that has not logged in; then it is closed
EMPTY_FRAMES_PER_S = 500  # pings and frames without octets; then it is closed


class WebSocketLayer(Layer):
    """See above."""

    def __init__(
        self,
        above: asyncio.Protocol,
        origins: Collection[str],
        failed: Callable[[str], None],
        is_known: Callable[[], bool],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """`is_known`: whether the peer has logged in. `loop`: the one that runs, if not given."""
        super().__init__(above)
        self._socket = WSConnection(ConnectionType.SERVER)
        self._origins = origins
        self._failed = failed
        self._is_known = is_known
        self._congested = False
        self._loop = loop or asyncio.get_running_loop()
        self._ahead: deque[memoryview] = deque()  # read from below, and not given to wsproto yet
        self._more = False  # wsproto has frames that were not looked at
        self._scheduled = False  # the next turn
        self._over = False  # nothing more of the peer is heard
        self._lost = False  # the socket has gone
        self._lost_by: Exception | None = None
        self._paused_above = self._paused = False
        self._frames = self._empty_frames = 0
        self._empty_since_s = 0.0

    def data_received(self, data: bytes) -> None:
        if self._over or self.below.is_closing():
            return
        self.heard = True
        self._ahead.append(memoryview(data))
        if not self._scheduled:
            self._turn()

    def connection_lost(self, exc: Exception | None) -> None:
        """What came before the end is heard first."""
        self._lost, self._lost_by = True, exc
        if not self._scheduled:
            self._turn()

    def _turn(self) -> None:
        self._scheduled = False
        if not self._paused_above or self._lost:
            octets = self._read()
            if octets:
                self.above.data_received(octets)
        if self._lost and (self._over or not self._has_more):
            self._ahead.clear()
            self._over = True
            super().connection_lost(self._lost_by)
            return
        if self._has_more and not self._over and (not self._paused_above or self._lost):
            self._scheduled = True
            self._loop.call_soon(self._turn)
        self._gate()

    @property
    def _has_more(self) -> bool:
        return self._more or bool(self._ahead)

    def _read(self) -> bytes:
        """A turn's worth of frames; what is in them for above."""
        octets: list[bytes] = []
        room = TURN_FRAMES
        try:
            while room > 0 and not self._over:
                if not self._more and not self._feed():
                    break
                room = self._take(octets, room)
                if sum(map(len, octets)) >= TURN_BYTES:
                    break
        except RemoteProtocolError as error:
            self._end(str(error), error.event_hint or CloseConnection(CloseReason.PROTOCOL_ERROR))
        except UnicodeError as error:  # of a header, by wsproto
            self._end(str(error), RejectConnection(status_code=_BAD_REQUEST))
        return b"".join(octets)

    def _feed(self) -> bool:
        """The next slice goes to wsproto. False: there is none."""
        if not self._ahead:
            return False
        data = self._ahead.popleft()
        if len(data) > SLICE_BYTES:
            self._ahead.appendleft(data[SLICE_BYTES:])
        self._socket.receive_data(bytes(data[:SLICE_BYTES]))
        self._more = True
        return True

    def _take(self, octets: list[bytes], room: int) -> int:
        """At most `room` frames; the room that is left."""
        for event in self._socket.events():
            room -= 1
            if isinstance(event, BytesMessage) and event.data:
                octets.append(bytes(event.data))
                flood = self._is_flood(False)
            else:
                flood = self._is_flood(isinstance(event, BytesMessage | Ping | Pong))
                if not flood and not isinstance(event, BytesMessage) and not self._heard(event):
                    return room
            if flood:
                self._end("a flood of frames", CloseConnection(CloseReason.POLICY_VIOLATION))
                return room
            if room <= 0:
                return room
        self._more = False
        return room

    def _is_flood(self, empty: bool) -> bool:
        self._frames += 1
        if self._frames % UNKNOWN_FRAMES == 0 and not self._is_known():
            return True
        self._empty_frames += empty
        if not empty or self._empty_frames % EMPTY_FRAMES_PER_S:
            return False
        since_s, self._empty_since_s = self._empty_since_s, self._loop.time()
        return self._empty_since_s - since_s < 1.0

    def _heard(self, event: Event) -> bool:
        """Whether more may come."""
        if isinstance(event, Request):
            return self._asked(event)
        if isinstance(event, Ping):
            if not self._congested and not self.below.is_closing():  # a peer that does not read gets no answers either
                self.below.write(self._socket.send(event.response()))
        elif isinstance(event, CloseConnection):
            self._say(event.response())
            self._over = True
            self.below.close()
            return False
        elif isinstance(event, TextMessage):
            self._end("a text message", CloseConnection(CloseReason.UNSUPPORTED_DATA))
            return False
        return True

    def _asked(self, request: Request) -> bool:
        origin = next((value.decode("latin-1") for name, value in request.extra_headers if name == b"origin"), None)
        if origin is not None and origin.partition("://")[2] != request.host and origin not in self._origins:
            self._end(f"a page of {origin[:100]!a}", RejectConnection(status_code=_FORBIDDEN))
            return False
        if SUBPROTOCOL not in request.subprotocols:
            self._end("no sub-protocol amqp", RejectConnection(status_code=_BAD_REQUEST))
            return False
        self.below.write(self._socket.send(AcceptConnection(subprotocol=SUBPROTOCOL)))
        return True

    def _end(self, reason: str, last_word: Event) -> None:
        self._failed(reason)
        self._say(last_word)
        self._over = True
        self.below.close()

    def _say(self, last_word: Event) -> None:
        try:
            self.below.write(self._socket.send(last_word))
        except LocalProtocolError:  # it is too late for that
            return

    def write(self, data: Any) -> None:
        if self._socket.state is ConnectionState.OPEN and not self.below.is_closing():
            self.below.write(self._socket.send(BytesMessage(bytes(data))))

    def close(self) -> None:
        if self._socket.state is ConnectionState.OPEN and not self.below.is_closing():
            self._say(CloseConnection(CloseReason.NORMAL_CLOSURE))
        self.below.close()

    def abort(self) -> None:
        self._over = True
        super().abort()

    def pause_reading(self) -> None:
        self._paused_above = True
        self._gate()

    def resume_reading(self) -> None:
        self._paused_above = False
        if self._has_more and not self._scheduled and not self._over:
            self._scheduled = True
            self._loop.call_soon(self._turn)
        self._gate()

    def _gate(self) -> None:
        """Nothing is read while something waits here."""
        paused = self._paused_above or self._has_more
        if paused != self._paused and not self.below.is_closing():
            self._paused = paused
            if paused:
                self.below.pause_reading()
            else:
                self.below.resume_reading()

    def pause_writing(self) -> None:
        self._congested = True
        super().pause_writing()

    def resume_writing(self) -> None:
        self._congested = False
        super().resume_writing()
