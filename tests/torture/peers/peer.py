"""One AMQP peer on a non-blocking socket that comes back whenever it has lost its connection.

Its subclasses say the rest. Seconds are monotonic.
"""

from __future__ import annotations

import itertools
import socket
from abc import ABC, abstractmethod
from random import Random
from typing import Any

from tests.torture.history import History
from tests.torture.peers import frames
from tests.torture.peers.frames import ATTACH, BEGIN, CLOSE, DETACH, DISPOSITION, END, FLOW, OPEN, TRANSFER

IDLE_MS = 4000  # what the gateway is told; it must say something twice as often
SILENCE_S = 4.0  # without a word from the gateway the connection is given up
HEARTBEAT_S = 0.8
RETRY_S = 0.15
LINKS = itertools.count(1)


class Peer(ABC):
    """A connection with one session, and what became of it."""

    def __init__(self, name: str, number: int, port: int, history: History, random: Random) -> None:
        self.name = name
        self.number = number
        self.history = history
        self.random = random
        self.port = port
        self.is_pushing = False  # fill every window, and hold what comes
        self.is_ending = False  # nothing new is begun
        self.socket: socket.socket | None = None
        self.is_open = False  # the session stands
        self.transfers_in = self.transfers_out = 0  # of this session
        self.links: dict[int, int] = {}  # our handle -> number of the link
        self._theirs: dict[int, int] = {}  # the gateway's handle -> ours
        self._in = b""
        self._out = bytearray()
        self._retry_s = self._heard_s = self._spoke_s = 0.0

    # -- to be said by subclasses

    @abstractmethod
    def attach(self) -> None:
        """The session stands: attach."""

    @abstractmethod
    def attached(self, handle: int, fields: list[Any]) -> None:
        """The gateway confirmed a link."""

    def credited(self, handle: int, credit: int) -> None:
        """The gateway's flow."""
        return  # only a publisher minds

    def message(self, fields: list[Any], payload: bytes) -> None:
        """A transfer has come."""
        raise AssertionError(f"{self.name} does not consume")

    def stated(self, first: int, last: int, settled: bool, state: Any) -> None:
        """The gateway's disposition of what we sent."""
        raise AssertionError(f"{self.name} does not publish")

    def echoed(self, first: int, last: int, settled: bool, state: Any) -> None:
        """The gateway's disposition of what we were given."""
        raise AssertionError(f"{self.name} does not consume")

    @abstractmethod
    def advance(self, now: float) -> None:
        """A moment with the session open."""

    @abstractmethod
    def gone(self) -> None:
        """The connection is no more; nothing that was on its way is known."""

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """Deliveries that have no outcome yet."""

    @property
    def is_done(self) -> bool:
        """Everything that it had to say is said."""
        return True

    # -- the connection

    def tick(self, now: float) -> None:
        if self.socket is None:
            if now >= self._retry_s:
                self._connect(now)
            return
        if now - self._heard_s > SILENCE_S:
            self.drop("silent", now)
            return
        if self.is_open:
            self.advance(now)
        if now - self._spoke_s > HEARTBEAT_S:
            self.send(frames.HEARTBEAT)
            self._spoke_s = now
        self.write(now)

    def _connect(self, now: float) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(("127.0.0.1", self.port))
        self._in, self._out = b"", bytearray(frames.opening(self.name, IDLE_MS))
        self.transfers_in = self.transfers_out = 0
        self._heard_s = self._spoke_s = now

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._out += piece

    def write(self, now: float) -> None:
        if self.socket is None or not self._out:
            return
        try:
            del self._out[: self.socket.send(self._out)]
            self._spoke_s = now
        except BlockingIOError:
            return
        except OSError as error:
            self.drop(f"write: {error.strerror}", now)

    @property
    def wants_to_write(self) -> bool:
        return bool(self._out)

    def readable(self, now: float) -> None:
        assert self.socket is not None
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError as error:
            self.drop(f"read: {error.strerror}", now)
            return
        if not data:
            self.drop("ended", now)
            return
        self._heard_s = now
        self._in += data
        at = 0
        for code, fields, payload, following in frames.received(self._in):
            at = following
            self._frame(code, fields, payload)
            if code in (DETACH, END, CLOSE):
                self.drop(f"{code:#x} {_condition(fields)}", now)
                return
        self._in = self._in[at:]

    def _frame(self, code: int, fields: list[Any], payload: bytes) -> None:
        if code == TRANSFER:
            self.transfers_in += 1
            self.message(fields, payload)
        elif code == DISPOSITION:
            first = fields[1]
            heard = self.stated if fields[0] else self.echoed
            heard(first, first if fields[2] is None else fields[2], bool(fields[3]), fields[4])
        elif code == FLOW:
            if fields[4] is not None and fields[4] in self._theirs:
                handle = self._theirs[fields[4]]
                self.credited(handle, (fields[5] or 0) + (fields[6] or 0))
        elif code == BEGIN:
            self.is_open = True
            self.attach()
        elif code == ATTACH:
            self._attached(fields)
        else:
            assert code in (OPEN, DETACH, END, CLOSE), code

    def _attached(self, fields: list[Any]) -> None:
        terminus = fields[5] if fields[2] is False else fields[6]
        if terminus is None:
            return  # refused: the detach follows
        handle = int(fields[0].rpartition("/")[2])  # our link names end with our handle
        self._theirs[fields[1]] = handle
        self.attached(handle, fields)

    def begin_link(self, handle: int, role: str, node: str, durable: str, kind: str) -> None:
        self.links[handle] = next(LINKS)
        self.history.note("link", self.links[handle], role, node, durable, self.number, kind)

    def drop(self, why: str, now: float) -> None:
        """The connection is over; come back a little later."""
        if self.socket is None:
            return
        self.socket.close()
        self.socket, self.is_open = None, False
        self._out.clear()
        self._retry_s = now + RETRY_S * (1 + self.random.random())
        for link in self.links.values():
            self.history.note("end", link, why)
        self.links.clear()
        self._theirs.clear()
        self.gone()


def _condition(fields: list[Any]) -> str:
    """Of a detach, end or close: the error's words."""
    for field in fields:
        if isinstance(field, tuple) and len(field) == 2 and isinstance(field[1], list):
            return f"{field[1][0]}: {field[1][1] if len(field[1]) > 1 else ''}"
    return ""
