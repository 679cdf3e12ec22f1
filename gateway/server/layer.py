"""A layer between a socket and who talks through it: a protocol to what is below, a transport to what is above.

Layers are stacked (`gateway.server.listeners`): `TlsLayer(WebSocketLayer(PeerSocket))`. What is above has its
connection when the socket is there, before any handshake: a peer that does not end one is half open, and counted and
timed as such.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

NO_PROTOCOL = asyncio.Protocol()  # above a layer that has lost its socket


class Layer(asyncio.Transport, asyncio.Protocol):
    """Passes everything on. `above` gets what came for it; it calls this transport for what it wants."""

    def __init__(self, above: asyncio.Protocol) -> None:
        super().__init__()
        self.above = above
        self.below: asyncio.Transport

    heard = False  # octets of the peer have come

    # -- from below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.below = cast(asyncio.Transport, transport)
        self.above.connection_made(self)

    def data_received(self, data: bytes) -> None:
        self.heard = True
        self.above.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        above, self.above = self.above, NO_PROTOCOL
        above.connection_lost(exc)

    def pause_writing(self) -> None:
        self.above.pause_writing()

    def resume_writing(self) -> None:
        self.above.resume_writing()

    # -- from above

    def write(self, data: Any) -> None:
        self.below.write(data)

    def close(self) -> None:
        self.below.close()

    def abort(self) -> None:
        self.below.abort()

    def is_closing(self) -> bool:
        return self.below.is_closing()

    def pause_reading(self) -> None:
        self.below.pause_reading()

    def resume_reading(self) -> None:
        self.below.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self.below.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Besides what a socket knows "heard": whether its peer has said anything."""
        if name == "heard" and self.heard:
            return True
        return self.below.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.above = cast(asyncio.Protocol, protocol)
