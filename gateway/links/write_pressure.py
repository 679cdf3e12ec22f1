"""What one peer has not read yet, in octets: what its socket holds, what this turn has to write, and what proton keeps
because the peer's session has no room. At `limits.write_buffer_bytes` no more is delivered to it.

Its links that have something to send wait here, and are looked at again when something has moved: the peer sent
something, this turn's octets were written, the socket has room again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gateway.amqp.engine import Engine


class Blocked(Protocol):
    """A link that waits here."""

    def wake(self) -> None: ...


class WritePressure:
    """One connection's. `in_socket` gives the octets that the socket's owner still holds."""

    def __init__(self, engine: Engine, bytes_max: int) -> None:
        self.in_socket: Callable[[], int] = _nothing
        self._engine = engine
        self._bytes_max = bytes_max
        self._congested = False
        self._waiting: dict[Blocked, None] = {}

    @property
    def room(self) -> int:
        """Octets that it may be sent now."""
        if self._congested:
            return 0
        return self._bytes_max - self._engine.unsent - self.in_socket()

    @property
    def congested(self) -> bool:
        """Its socket holds more than it may."""
        return self._congested

    def set_congested(self, congested: bool) -> None:
        self._congested = congested
        if not congested:
            self.notify()

    def wait_for_room(self, link: Blocked) -> None:
        self._waiting[link] = None

    def drop(self, link: Blocked) -> None:
        self._waiting.pop(link, None)

    def close(self) -> None:
        """The socket has gone."""
        self.in_socket = _nothing
        self._waiting = {}

    def notify(self) -> None:
        """Something has moved."""
        if self._waiting:
            blocked, self._waiting = self._waiting, {}
            for link in blocked:
                link.wake()


def _nothing() -> int:
    return 0
