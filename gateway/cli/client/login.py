"""A socket to an AMQP peer, through TLS and a login: what comes before AMQP. The client's side of SASL, by hand: the
proton that is installed knows no SCRAM. Blocks. Seconds, octets. Errors: `ClientProblem`.

Of what the peer offers, the mechanism that shows the password least is taken: SCRAM, then PLAIN. Source: AMQP 1.0 part
5.3 (SASL), RFC 5802 and 7677 (SCRAM, through scramp), RFC 4616 (PLAIN), RFC 4505 (ANONYMOUS).
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any, Final
from urllib.parse import urlsplit

from scramp import ScramClient, ScramException

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.peer_address import PeerAddress
from transformers.codec import Array, DecodeError, Described, Symbol, decode, encode

_HEADER: Final = b"AMQP\x03\x01\x00\x00"
_MECHANISMS, _INIT, _CHALLENGE, _RESPONSE, _OUTCOME = 0x40, 0x41, 0x42, 0x43, 0x44
_OK, _REFUSED = 0, 1
_SCRAM: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_WITH_USER: Final = (*_SCRAM, "PLAIN")
_FRAME_MAX: Final = 65_536


def logged_in(address: PeerAddress, timeout_s: float) -> socket.socket:
    """Ready for the header of AMQP. `timeout_s`: for all of it."""
    until_s = time.monotonic() + timeout_s
    opened = _opened(address, timeout_s)
    try:
        _Login(opened, address, until_s).run()
    except TimeoutError:
        opened.close()
        raise ClientProblem(
            f"{address.url}: no answer to the login within {timeout_s:g} s; is it AMQP there?"
        ) from None
    except OSError as error:
        opened.close()
        raise ClientProblem(f"{address.url}: {error.strerror or error} during the login") from None
    except ClientProblem:
        opened.close()
        raise
    return opened


def _opened(address: PeerAddress, timeout_s: float) -> socket.socket:
    if address.ca is not None and not address.ca.is_file():
        raise ClientProblem(f"{address.ca_word}: there is no {address.ca}")
    parts = urlsplit(address.url)
    host = parts.hostname or ""
    try:
        opened = socket.create_connection((host, parts.port or 0), timeout=timeout_s)
    except OSError as error:
        words = "no answer" if isinstance(error, TimeoutError) else error.strerror or error
        raise ClientProblem(f"{address.url}: {words}; does a peer listen there?") from None
    if parts.scheme == "amqp":
        return opened
    try:
        return ssl.create_default_context(cafile=address.ca).wrap_socket(opened, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        opened.close()
        words = f"certificate verify failed: {error.verify_message}"
        raise ClientProblem(
            f"{address.url}: {words}; name whose certificates count with {address.ca_word} FILE"
        ) from None
    except (OSError, ValueError) as error:
        opened.close()
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ClientProblem(f"{address.url}: no TLS there ({why}); is it the port of amqps?") from None


class _Login:
    """One exchange."""

    def __init__(self, opened: socket.socket, address: PeerAddress, until_s: float) -> None:
        self._socket, self._address, self._until_s = opened, address, until_s

    def run(self) -> None:
        self._send(_HEADER)
        header = self._read(8)
        if header != _HEADER:
            raise self._problem(f"no login is possible there: it answers {header!r} instead of the header of SASL")
        offered = self._frame(_MECHANISMS)[1][0]
        mechanism = self._chosen(offered.items if isinstance(offered, Array) else [offered] if offered else [])
        if mechanism in _SCRAM:
            self._scram(mechanism)
            return
        user, password = self._address.user or "", self._address.password or ""
        response = f"\0{user}\0{password}" if mechanism == "PLAIN" else "realmgate"
        self._write(_INIT, Symbol(mechanism), response.encode(), self._host())
        self._outcome(self._frame(_OUTCOME)[1], mechanism)

    def _chosen(self, offered: list[str]) -> str:
        known = _WITH_USER if self._address.user is not None else ("ANONYMOUS",)
        for mechanism in known:
            if mechanism in offered:
                return mechanism
        if self._address.user is None and set(offered) & {*_WITH_USER}:
            user, password = self._address.variables
            name = f"name a user: {user} and {password} in the environment"
            raise self._problem(f"a login is needed ({', '.join(offered)}); {name}")
        raise self._problem(f"it offers {', '.join(offered) or 'no mechanism'}; this client knows {', '.join(known)}")

    def _scram(self, mechanism: str) -> None:
        try:
            client = ScramClient([mechanism], self._address.user, self._address.password)
            self._write(_INIT, Symbol(mechanism), client.get_client_first().encode(), self._host())
            client.set_server_first(self._word(mechanism)[0])
            self._write(_RESPONSE, client.get_client_final().encode())
            last, ended = self._word(mechanism)
            client.set_server_final(last)
            if not ended:
                self._write(_RESPONSE, b"")
                self._outcome(self._frame(_OUTCOME)[1], mechanism)
        except (ScramException, UnicodeDecodeError) as error:
            raise self._problem(f"{mechanism} fails: {error}; it may be another peer than the one meant") from None

    def _word(self, mechanism: str) -> tuple[str, bool]:
        """What the peer says next; true: with the outcome, which is good."""
        code, fields = self._frame(_CHALLENGE, _OUTCOME)
        if code == _OUTCOME:
            self._outcome(fields, mechanism)
        field = fields[code == _OUTCOME]
        return field.decode() if isinstance(field, bytes) else "", code == _OUTCOME

    def _outcome(self, fields: list[Any], mechanism: str) -> None:
        code = fields[0]
        if code == _OK:
            return
        if code == _REFUSED:
            user = f"user {self._address.user}, {mechanism}" if self._address.user is not None else mechanism
            raise self._problem(f"login refused ({user}); see whether user and password are those of the peer")
        raise self._problem(f"the peer cannot check a login now (outcome {code}); look at its log")

    def _host(self) -> str:
        return urlsplit(self._address.url).hostname or ""

    def _problem(self, words: str) -> ClientProblem:
        return ClientProblem(f"{self._address.url}: {words}")

    def _write(self, code: int, *fields: object) -> None:
        body = encode(Described(code, [*fields]))
        self._send((8 + len(body)).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body)

    def _frame(self, *codes: int) -> tuple[int, list[Any]]:
        """The next frame, which is one of these, and its fields; those that are left out are None."""
        start = self._read(8)
        size, offset = int.from_bytes(start[:4], "big"), 4 * start[4]
        if not 8 <= offset <= size <= _FRAME_MAX or start[5] != 1:
            raise self._problem("what it says is no login of AMQP")
        try:
            value, _ = decode(self._read(size - 8)[offset - 8 :])
        except DecodeError as error:
            raise self._problem(f"what it says is no login of AMQP: {error}") from None
        if not isinstance(value, Described) or value.descriptor not in codes or not isinstance(value.value, list):
            raise self._problem("it answers with another frame than a login has there")
        return int(value.descriptor), [*value.value, None, None]

    def _send(self, octets: bytes) -> None:
        self._socket.settimeout(self._left_s())
        self._socket.sendall(octets)

    def _read(self, count: int) -> bytes:
        octets = b""
        while len(octets) < count:
            self._socket.settimeout(self._left_s())
            piece = self._socket.recv(count - len(octets))
            if not piece:
                raise self._problem("it closed the connection before the login ended; look at its log")
            octets += piece
        return octets

    def _left_s(self) -> float:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s
