"""TLS on a socket that asyncio accepted: the server's side, through memory, so that the handshake is ours to count, to
time and to give up, and new certificates are a new context for the next socket.

Source: RFC 8446, RFC 5246 (by OpenSSL). Errors: none; a handshake or a record that cannot be read ends the connection,
and `failed` gets the reason.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gateway.server.layer import Layer

RECORD_BYTES = 16_384  # of plain text, at most
WITHOUT_TEXT_MAX = 32_768
"""Octets that a peer sends after the handshake beyond what its plain text explains. A key update is 27 octets, and some
10 us of work before any login; no peer needs one in less than gigabytes. A record that is here in part has none yet."""
_OF_TEXT = 16  # octets on the wire that an octet of plain text explains: a heartbeat of 8 may come as 85


class TlsLayer(Layer):
    """`get_extra_info` knows "ssl_object" and, once it was verified, "peercert" (as `ssl` describes it)."""

    def __init__(self, above: asyncio.Protocol, context: ssl.SSLContext, failed: Callable[[str], None]) -> None:
        super().__init__(above)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._failed = failed
        self._shaken = False  # hands
        self._without_text = 0  # octets, after the handshake

    def data_received(self, data: bytes) -> None:
        if self.below.is_closing():
            return
        self.heard = True
        try:
            plain, ended = self._taken(data)
        except ssl.SSLError as error:
            self._flush()  # the alert, if there is one
            self._failed(str(getattr(error, "verify_message", "") or error.reason or error))
            self.below.close()
            return
        self._flush()
        if self._without_text > WITHOUT_TEXT_MAX:
            self._failed("records without data, one after another")
            self.below.close()
            return
        if plain:
            self.above.data_received(plain)
        if ended:
            self.close()

    def _taken(self, data: bytes) -> tuple[bytes, bool]:
        """The plain text of it, and whether the peer has said that no more comes. The rest is not read where too much
        is no text."""
        pieces: list[bytes] = []
        ended, at = False, 0
        while at < len(data) and not ended and self._without_text <= WITHOUT_TEXT_MAX:
            part = data[at : at + RECORD_BYTES]
            at += len(part)
            self._incoming.write(part)
            if self._shakes():
                plain, ended = self._read()
                pieces.append(plain)
                self._without_text = max(0, self._without_text + len(part) - _OF_TEXT * len(plain))
        return b"".join(pieces), ended

    def _shakes(self) -> bool:
        """Whether the handshake is over."""
        if not self._shaken:
            with suppress(ssl.SSLWantReadError):
                self._tls.do_handshake()
                self._shaken = True
        return self._shaken

    def _read(self) -> tuple[bytes, bool]:
        """What is there, and whether the peer has said that no more comes."""
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._tls.read(RECORD_BYTES)
            except ssl.SSLWantReadError:
                return b"".join(pieces), False
            except ssl.SSLZeroReturnError:
                piece = b""
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)

    def _flush(self) -> None:
        if self._outgoing.pending:
            self.below.write(self._outgoing.read())

    def write(self, data: Any) -> None:
        if self._shaken and not self.below.is_closing():
            self._tls.write(data)
            self.below.write(self._outgoing.read())

    def close(self) -> None:
        """Sends close_notify first: else the peer cannot distinguish an end from a cut."""
        if self._shaken and not self.below.is_closing():
            with suppress(ssl.SSLError):  # it wants to read the peer's close_notify: we do not wait for it
                self._tls.unwrap()
            self._flush()
        self.below.close()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls
        if name == "peercert":
            return (self._tls.getpeercert() if self._shaken else None) or default
        return super().get_extra_info(name, default)
