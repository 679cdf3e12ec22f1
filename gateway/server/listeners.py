"""Listening: the gateway's addresses, and what is between a socket that was accepted there and its port.

    amqp   Port
    amqps  TlsLayer(Port)
    ws     WebSocketLayer(Port)
    wss    TlsLayer(WebSocketLayer(Port))

Errors: `OSError` when an address cannot be listened at. May import: `gateway`, asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from gateway.certificates import Certificates
from gateway.gateway import Gateway
from gateway.reload import Reload
from gateway.settings import Listen
from gateway.tls_layer import TlsLayer

BACKLOG = 1_024  # connections that wait to be accepted: after a restart all clients come at once


class Listening:
    """One gateway's. `certificates`: None where no listener speaks TLS."""

    def __init__(self, gateway: Gateway, workers: Executor, port: Callable[[], asyncio.Protocol]) -> None:
        """`port` makes what talks AMQP on one socket."""
        self._gateway = gateway
        self._port = port
        self._servers: list[asyncio.Server] = []
        tls = gateway.settings.tls
        self.certificates = Certificates(tls, workers) if tls is not None else None

    async def open(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Server]:
        for listen in self._gateway.settings.listen:
            where = listen.host, listen.port
            self._servers.append(await loop.create_server(self._stack(listen), *where, backlog=BACKLOG))
        return self._servers

    def addresses(self) -> list[str]:
        """Where it listens really: free ports were picked."""
        found = []
        for listen, server in zip(self._gateway.settings.listen, self._servers, strict=True):
            host, port = server.sockets[0].getsockname()[:2]
            found.append(f"{listen.scheme}://{host}:{port}")
        return found

    def close(self) -> None:
        """Accept nobody any more."""
        for server in self._servers:
            server.close()

    def look(self) -> None:
        """Once in a while."""
        if self.certificates is not None:
            self.certificates.look()

    def hung_up(self, reload: Reload) -> None:
        """SIGHUP: whatever is read while serving is read now."""
        reload.request()
        if self.certificates is not None:
            self.certificates.request()

    def _stack(self, listen: Listen) -> Callable[[], asyncio.Protocol]:
        port = self._web if listen.web else self._port
        return (lambda: self._secured(port())) if listen.secure else port

    def _web(self) -> asyncio.Protocol:
        # wsproto takes some memory: only where it is asked for
        from gateway.websocket_layer import WebSocketLayer

        return WebSocketLayer(self._port(), self._gateway.settings.security.websocket_origins, self._web_failed)

    def _secured(self, port: asyncio.Protocol) -> asyncio.Protocol:
        assert self.certificates is not None, "settings.py lets no secure listener pass without certificates"
        return TlsLayer(port, self.certificates.context, self._failed)

    def _failed(self, reason: str) -> None:
        self._gateway.count_fault("tls", reason)

    def _web_failed(self, reason: str) -> None:
        self._gateway.count_fault("websocket", reason)
