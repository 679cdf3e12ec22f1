"""Listening: the gateway's addresses, and what is between a socket that was accepted there and its port.

    amqp   Port
    amqps  TlsLayer(Port)
    ws     WebSocketLayer(Port)
    wss    TlsLayer(WebSocketLayer(Port))

and below all of it ProxyLayer, where the listener has `proxies`. Each is made when Entrance says that it is its turn.

Errors: `SettingsProblems` with every address that cannot be listened at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from gateway.config.listen_faults import bind_problem
from gateway.config.settings import Listen, SettingsProblems
from gateway.reload.certificates import Certificates
from gateway.server.entrance import Entrance
from gateway.server.half_open import HalfOpenSockets
from gateway.server.peer_socket import PeerSocket
from gateway.server.proxy_protocol import ProxyLayer
from gateway.server.tls import TlsLayer
from gateway.session.gateway import Gateway

BACKLOG = 1_024  # connections that wait to be accepted: after a restart all clients come at once


class Listeners:
    """One gateway's. `certificates`: None where no listener speaks TLS."""

    def __init__(
        self, gateway: Gateway, workers: Executor, port: Callable[[], PeerSocket], half_open: HalfOpenSockets
    ) -> None:
        """`port` makes what talks AMQP on one socket."""
        self._gateway = gateway
        self._half_open = half_open
        self._port = port
        self._servers: list[asyncio.Server] = []
        tls = gateway.settings.tls
        self.certificates = Certificates(tls, workers, gateway.clock) if tls is not None else None

    async def open(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Server]:
        problems = []
        for listen in self._gateway.settings.listen:
            where = listen.host, listen.port
            try:
                self._servers.append(await loop.create_server(self._stack(listen), *where, backlog=BACKLOG))
            except OSError as error:
                problems.append(bind_problem(listen, "listen", error))
        if problems:
            self.close()
            raise SettingsProblems(problems)
        return self._servers

    def addresses(self) -> list[str]:
        """Where it listens really: free ports were picked."""
        bound = []
        for listen, server in zip(self._gateway.settings.listen, self._servers, strict=True):
            host, port = server.sockets[0].getsockname()[:2]
            bound.append(f"{listen.scheme}://{host}:{port}")
        return bound

    def close(self) -> None:
        """Accept no more connections."""
        for server in self._servers:
            server.close()

    def _stack(self, listen: Listen) -> Callable[[], asyncio.Protocol]:
        port: Callable[[], asyncio.Protocol] = self._web if listen.web else self._port
        stack: Callable[[], asyncio.Protocol] = (lambda: self._secured(port())) if listen.secure else port

        def entrance() -> asyncio.Protocol:
            return Entrance(stack, self._gateway, self._half_open)

        return (lambda: self._proxied(entrance(), listen)) if listen.proxies else entrance

    def _web(self) -> asyncio.Protocol:
        # wsproto takes some memory: only where it is asked for
        from gateway.server.websocket import WebSocketLayer

        port, origins = self._port(), self._gateway.settings.security.websocket_origins
        return WebSocketLayer(port, origins, lambda reason: self._web_failed(port, reason), lambda: port.is_known)

    def _secured(self, port: asyncio.Protocol) -> asyncio.Protocol:
        assert self.certificates is not None, "settings.py lets no secure listener pass without certificates"
        return TlsLayer(port, self.certificates.context, self._failed)

    def _proxied(self, above: asyncio.Protocol, listen: Listen) -> asyncio.Protocol:
        return ProxyLayer(above, listen.proxies, self._half_open, self._proxy_failed)

    def _proxy_failed(self, address: str, reason: str) -> None:
        words = f"a connection of {address} was closed: {reason}"
        self._gateway.turn_away("fault", "proxy-header", words, (address, reason), "", address)

    def _failed(self, reason: str) -> None:
        self._gateway.turn_away("fault", "tls", reason, reason, "", "")

    def _web_failed(self, port: PeerSocket, reason: str) -> None:
        port.at_fault = True
        self._gateway.turn_away("fault", "websocket", reason, reason, "", "")
