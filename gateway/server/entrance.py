"""Where a socket waits for its turn, where its address opens connections too fast (`gateway.quotas.arrivals`): below
TLS, WebSocket and SASL, so that a connection that waits has cost next to nothing, and above the PROXY protocol, which
says whose it is.

When its turn comes the others are made, and this one steps aside: a connection that has begun costs nothing here.
Octets. Errors: none; one that is refused is closed without a word, since what it speaks is not known yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from gateway.links.shared import Shared
from gateway.server.half_open import HalfOpenSockets
from gateway.server.handshake import address_of

READ_BYTES: Final = 16_384  # of one that waits; then it is not read any more
FAULT: Final = "connection-rate"


class Entrance(asyncio.Protocol):
    """Of one socket."""

    def __init__(self, above: Callable[[], asyncio.Protocol], gateway: Shared, half_open: HalfOpenSockets) -> None:
        """`above` makes what talks through the socket."""
        self._above = above
        self._gateway = gateway
        self._half_open = half_open
        self._transport: asyncio.Transport
        self._held: list[bytes] = []  # sent before its turn
        self._held_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        address = address_of(transport)
        if self._gateway.arrivals.enter(self, address) or transport.is_closing():
            return
        if not self._half_open.enter(self, address):
            self.abort()

    def begin(self) -> None:
        """Its turn has come."""
        held, transport = self._let_go(), self._transport
        if transport.is_closing():
            return
        above = self._above()
        transport.set_protocol(above)
        above.connection_made(transport)
        if held and not transport.is_closing():
            transport.resume_reading()
            above.data_received(held)

    def refuse(self, reason: str) -> None:
        """Its turn does not come."""
        address = address_of(self._transport)
        self._gateway.turn_away("fault", FAULT, f"{address} was refused: {reason}", address, "", address)
        self.abort()

    def data_received(self, data: bytes) -> None:
        self._held.append(data)
        self._held_bytes += len(data)
        if not self._gateway.arrivals.hold(len(data)):
            self._gateway.arrivals.leave(self)
            self.refuse("what waits has sent too much already")
        elif self._held_bytes >= READ_BYTES:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gateway.arrivals.leave(self)
        self._let_go()

    def abort(self) -> None:
        self._transport.abort()

    def _let_go(self) -> bytes:
        """What it has sent; it does not wait any more."""
        self._half_open.leave(self)
        held, self._held = b"".join(self._held), []
        self._gateway.arrivals.hold(-self._held_bytes)
        self._held_bytes = 0
        return held
