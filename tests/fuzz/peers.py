"""Peers over sockets: one that does what a case says, the same by TLS, and one that opens slowly.

Errors: `AssertionError` where the gateway keeps a slow one.
"""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress
from random import Random

from gateway.auth.sasl import SASL_HEADER
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames

OPEN_TIMEOUT_MS = 2_000
LATE_S = HANG_S  # beyond the time-out; the machine may be busy
_SHAKE_S = 5.0
_SLOWNESS_S = 0.1  # from one octet to the next


class Fuzzed:
    """A connection that does what a case says, without waiting for anything."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
        self._socket.setblocking(False)

    def send(self, data: bytes) -> None:
        with suppress(OSError):
            self._socket.send(data)

    def read(self) -> None:
        with suppress(OSError):
            self._socket.recv(1 << 16)

    def close(self) -> None:
        self._socket.close()


class Secured(Fuzzed):
    """By TLS: some never shake hands, or break off; what others send has its records changed now and then."""

    def __init__(self, port: int, random: Random) -> None:
        super().__init__(port)
        self._random = random
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = random.choice((ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3))
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._shaken = False
        if random.random() < 0.8:
            self._shake()

    def _shake(self) -> None:
        self._socket.settimeout(_SHAKE_S)
        with suppress(OSError):  # ssl's errors are such, too
            while not self._shaken:
                try:
                    self._tls.do_handshake()
                    self._shaken = True
                except ssl.SSLWantReadError:
                    self._put(self._outgoing.read())
                    received = self._socket.recv(1 << 16)
                    if not received:
                        break
                    self._incoming.write(received)
            self._put(self._outgoing.read())
        self._socket.setblocking(False)

    def _put(self, records: bytes) -> None:
        """Now and then changed, cut, doubled, or with something behind them."""
        if records and self._random.random() < 0.04:
            octets, at = bytearray(records), self._random.randrange(len(records))
            kind = self._random.randrange(4)
            if kind == 0:
                octets[at] ^= 1 << self._random.randrange(8)
            elif kind == 1:
                del octets[at:]
            elif kind == 2:
                octets += bytes(octets)
            else:
                octets[at:at] = bytes((self._random.randrange(20, 25), 3, 3, 0xFF, 0xFF)) + b"x" * 40
            records = bytes(octets)
        self._socket.send(records)

    def send(self, data: bytes) -> None:
        with suppress(OSError):
            if not self._shaken:
                self._socket.send(data)
                return
            self._tls.write(data)
            self._put(self._outgoing.read())

    def read(self) -> None:
        with suppress(OSError):
            self._incoming.write(self._socket.recv(1 << 16))
            if self._shaken:
                self._tls.read(1 << 16)


class Slow:
    """Begins what every peer begins, an octet at a time, and never gets to its end."""

    def __init__(self, gateway: GatewayProcess, random: Random) -> None:
        scheme = random.choice(("amqp", "amqps", "ws", "wss"))
        self._socket = socket.create_connection(("127.0.0.1", gateway.ports.get(scheme, gateway.port)), timeout=HANG_S)
        self._socket.setblocking(False)
        hello = (
            b"GET /amqp HTTP/1.1\r\nHost: a\r\n" if scheme == "ws" else b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        )
        opening = (
            hello
            if scheme != "amqp"
            else random.choice((frames.AMQP_HEADER + frames.open_(), SASL_HEADER + b"\0\0\0\x40"))
        )
        self._left = opening[: random.randrange(len(opening))]
        self._about = f"{scheme}, {len(self._left)} octets"
        self._since = self._last = time.monotonic()

    def goes_on(self) -> bool:
        """The next octet, where it is time; False when the gateway has closed it."""
        now = time.monotonic()
        assert now - self._since < OPEN_TIMEOUT_MS / 1000 + LATE_S, f"a slow peer is kept: {self._about}"
        try:
            if self._left and now - self._last > _SLOWNESS_S:
                self._last = now
                self._socket.send(self._left[:1])
                self._left = self._left[1:]
            gone = not self._socket.recv(1 << 16) and True
        except BlockingIOError:
            return True
        except OSError:
            gone = True
        if gone:
            self.close()
        return not gone

    def close(self) -> None:
        self._socket.close()
