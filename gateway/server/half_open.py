"""Sockets whose peers have not opened a connection yet, and which of them is closed where one more comes and there is
no place left.

A silent socket keeps its place for `limits.open_timeout_ms`, so a door that refuses the newest is shut by some thousand
of them. Here the oldest goes. Of one address `limits.half_open_per_address` of them are safe from all other addresses:
beyond these, the address that has most loses its own oldest first. As long as there are places, an address may have
more: clients behind one proxy come from one address, and all at once after a restart.

Addresses are counted as the login throttle counts them: of IPv6 the /64 network. Source: ADR 0116.
"""

from __future__ import annotations

from typing import Protocol

from gateway.auth.login_throttle import network
from gateway.links.shared import Shared

HALF_OPEN, TOO_MANY = "half-open", "too-many-connections"  # faults


class Abortable(Protocol):
    """A socket that can be closed at once."""

    def abort(self) -> None: ...


class HalfOpenSockets:
    """One gateway's."""

    def __init__(self, gateway: Shared) -> None:
        self._gateway = gateway
        self._addresses: dict[Abortable, str] = {}  # the oldest first, here and below
        self._sockets: dict[str, dict[Abortable, None]] = {}
        self._crowded: dict[str, None] = {}  # addresses with more than are safe

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, socket: Abortable, address: str) -> bool:
        """A socket has been accepted; another one may be closed for it. False: there is no place for it."""
        while self._is_full:
            oldest = self._next_to_go()
            if oldest is None:
                self._tell(TOO_MANY, address, f"{address} was refused: limits.connections is reached")
                return False
            gone = self._addresses[oldest]
            self.leave(oldest)
            oldest.abort()
            self._tell(HALF_OPEN, gone, f"a connection of {gone} was closed before its open frame: a newer one came")
        where = network(address)
        self._addresses[socket] = where
        mine = self._sockets.setdefault(where, {})
        mine[socket] = None
        if len(mine) > self._gateway.limits.half_open_per_address:
            self._crowded[where] = None
        return True

    def leave(self, socket: Abortable) -> None:
        """Its peer has opened a connection, or it has gone. Once more changes nothing."""
        where = self._addresses.pop(socket, None)
        if where is None:
            return
        mine = self._sockets[where]
        del mine[socket]
        if len(mine) <= self._gateway.limits.half_open_per_address:
            self._crowded.pop(where, None)
        if not mine:
            del self._sockets[where]

    def abort(self) -> None:
        """Close all: the gateway ends."""
        for socket in [*self._addresses]:
            self.leave(socket)
            socket.abort()

    @property
    def _is_full(self) -> bool:
        count, limits = len(self._addresses), self._gateway.limits
        return count >= limits.half_open_connections or count + self._gateway.opened >= limits.connections

    def _next_to_go(self) -> Abortable | None:
        if not self._crowded:
            return next(iter(self._addresses), None)
        most = max((self._sockets[where] for where in self._crowded), key=len)
        return next(iter(most))

    def _tell(self, fault: str, address: str, words: str) -> None:
        self._gateway.turn_away("fault", fault, words, address, "", address)
