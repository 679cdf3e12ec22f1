"""WebSocket between a socket (or TLS) and a port: a handshake with the sub-protocol `amqp`, then AMQP in binary
messages, cut anywhere.

A browser sends an Origin. A page of a foreign site must not talk to a gateway that its reader can reach, so an Origin
is accepted only if it is the requested Host or in `origins`. Compression is not offered.
Source: RFC 6455 (by wsproto), AMQP WebSocket Binding 1.0. Errors: none; what cannot be read ends the connection, and
`failed` gets the reason.
"""

from __future__ import annotations

import asyncio
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
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from gateway.server.layer import Layer

SUBPROTOCOL = "amqp"
_FORBIDDEN, _BAD_REQUEST = 403, 400


class WebSocketLayer(Layer):
    """See above."""

    def __init__(self, above: asyncio.Protocol, origins: Collection[str], failed: Callable[[str], None]) -> None:
        super().__init__(above)
        self._socket = WSConnection(ConnectionType.SERVER)
        self._origins = origins
        self._failed = failed
        self._congested = False

    def data_received(self, data: bytes) -> None:
        if self.below.is_closing():
            return
        octets: list[bytes] = []
        try:
            self._socket.receive_data(data)
            for event in self._socket.events():
                if isinstance(event, BytesMessage):
                    octets.append(bytes(event.data))
                elif not self._heard(event):
                    break
        except RemoteProtocolError as error:
            self._end(str(error), error.event_hint or CloseConnection(CloseReason.PROTOCOL_ERROR))
        except UnicodeError as error:  # of a header, by wsproto
            self._end(str(error), RejectConnection(status_code=_BAD_REQUEST))
        if octets:
            self.above.data_received(b"".join(octets))

    def _heard(self, event: Event) -> bool:
        """Whether more may come."""
        if isinstance(event, Request):
            return self._asked(event)
        if isinstance(event, Ping):
            if not self._congested:  # a peer that does not read gets no answers either
                self.below.write(self._socket.send(event.response()))
        elif isinstance(event, CloseConnection):
            self._say(event.response())
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

    def pause_writing(self) -> None:
        self._congested = True
        super().pause_writing()

    def resume_writing(self) -> None:
        self._congested = False
        super().resume_writing()
