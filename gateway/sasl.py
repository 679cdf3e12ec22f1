"""The server's side of SASL, before AMQP begins: bytes in, bytes out, no sockets, no proton.

    sasl = SaslServer(("ANONYMOUS",), bare_amqp=True)
    to_send, rest, state = sasl.receive(data)      # until state is no longer "negotiating"

`rest` is what the peer sent for AMQP, its AMQP header included; it stays empty until authenticated. "refused": send
`to_send`, then close the socket. Source: AMQP 1.0 part 2 section 2.2 (header negotiation), part 5 section 5.3 (SASL).
Errors: none, whatever the bytes. May import: `transformers.amqp_types`, the standard library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Literal, Protocol

from transformers.amqp_types import Array, DecodeError, Described, Symbol, UByte, decode, encode

State = Literal["negotiating", "authenticated", "refused"]

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
FRAME_SIZE_MAX = 512  # part 5, 5.3.1: no SASL frame may be larger
ROUNDS_MAX = 16  # challenges of one exchange

_MECHANISMS, _INIT, _CHALLENGE, _RESPONSE, _OUTCOME = 0x40, 0x41, 0x42, 0x43, 0x44
_SYMBOLS = {"amqp:sasl-init:list": _INIT, "amqp:sasl-response:list": _RESPONSE}
_OK, _AUTH = UByte(0), UByte(1)
_FRAME = struct.Struct(">IBB")  # size, data offset, type; two more octets are ignored
_SASL_TYPE = 1


class Mechanism(Protocol):
    """One exchange. `step` is given the initial response, then each response: True authenticates, False refuses, octets
    are the next challenge."""

    def step(self, response: bytes) -> bool | bytes: ...


class Anonymous:
    """RFC 4505: whatever trace the peer leaves is taken and nothing is checked."""

    def step(self, response: bytes) -> bool | bytes:
        return True


MECHANISMS: dict[str, type[Mechanism]] = {"ANONYMOUS": Anonymous}


class SaslServer:
    """One connection's negotiation."""

    def __init__(self, offered: Iterable[str], bare_amqp: bool) -> None:
        """`offered`: names out of MECHANISMS, in order of preference; none means that only bare AMQP can pass."""
        self._offered = tuple(offered)
        self._bare_amqp = bare_amqp
        self._buffer = b""
        self._state: State = "negotiating"
        self._header_seen = False
        self._mechanism: Mechanism | None = None
        self._rounds = 0

    def receive(self, data: bytes) -> tuple[bytes, bytes, State]:
        """What to send now, what is left for AMQP, and how it stands. After a refusal further bytes are dropped."""
        if self._state == "refused":
            return b"", b"", self._state
        self._buffer += data
        to_send = b"" if self._header_seen or self._state == "authenticated" else self._header()
        while self._state == "negotiating" and self._header_seen and (body := self._next_frame()) is not None:
            to_send += self._answer(body)
        rest = b""
        if self._state == "authenticated":
            rest, self._buffer = self._buffer, b""
        return to_send, rest, self._state

    def _header(self) -> bytes:
        """Eight octets decide; the first wrong one already does."""
        head = self._buffer[:8]
        if head == SASL_HEADER and self._offered:
            self._header_seen = True
            self._buffer = self._buffer[8:]
            return SASL_HEADER + _frame(_MECHANISMS, [Array(0xA3, [Symbol(name) for name in self._offered])])
        if head == AMQP_HEADER and self._bare_amqp:
            self._state = "authenticated"
            return b""
        if len(head) < 8 and any(header.startswith(head) for header in self._accepted()):
            return b""
        return self._refuse(SASL_HEADER if self._offered else AMQP_HEADER)

    def _accepted(self) -> list[bytes]:
        return [SASL_HEADER] * bool(self._offered) + [AMQP_HEADER] * self._bare_amqp

    def _refuse(self, last_word: bytes) -> bytes:
        self._state = "refused"
        self._buffer = b""
        return last_word

    def _next_frame(self) -> bytes | None:
        """The body of the next whole frame; None when more must come, or when there is no sense in it."""
        if len(self._buffer) < 8:
            return None
        size, data_offset, kind = _FRAME.unpack_from(self._buffer)
        if not 8 <= size <= FRAME_SIZE_MAX or kind != _SASL_TYPE or not 8 <= 4 * data_offset <= size:
            self._refuse(b"")
            return None
        if len(self._buffer) < size:
            return None
        body, self._buffer = self._buffer[4 * data_offset : size], self._buffer[size:]
        return body

    def _answer(self, body: bytes) -> bytes:
        code, fields = _performative(body)
        if code == _INIT and self._mechanism is None and fields and isinstance(fields[0], Symbol):
            if fields[0] not in self._offered:
                return self._refuse(_frame(_OUTCOME, [_AUTH]))
            self._mechanism = MECHANISMS[fields[0]]()
            return self._step(fields[1] if len(fields) > 1 else None)
        if code == _RESPONSE and self._mechanism is not None and fields and isinstance(fields[0], bytes):
            return self._step(fields[0])
        return self._refuse(b"")  # out of turn, or nothing that SASL knows: the peer does not follow the protocol

    def _step(self, response: object) -> bytes:
        assert self._mechanism is not None
        self._rounds += 1
        if response is not None and not isinstance(response, bytes):
            return self._refuse(b"")
        said = self._mechanism.step(response or b"") if self._rounds <= ROUNDS_MAX else False
        if isinstance(said, bytes):
            return _frame(_CHALLENGE, [said])
        if not said:
            return self._refuse(_frame(_OUTCOME, [_AUTH]))
        self._state = "authenticated"
        return _frame(_OUTCOME, [_OK])


def _frame(code: int, fields: list[object]) -> bytes:
    body = encode(Described(code, fields))
    return _FRAME.pack(8 + len(body), 2, _SASL_TYPE) + b"\x00\x00" + body


def _performative(body: bytes) -> tuple[int, list[object]]:
    """Code and fields of a frame's one performative; code 0 for anything else."""
    try:
        value, end = decode(body)
    except DecodeError:
        return 0, []
    if end != len(body) or not isinstance(value, Described) or not isinstance(value.value, list):
        return 0, []
    code = value.descriptor
    return (_SYMBOLS.get(code, 0) if isinstance(code, Symbol) else int(code)), value.value
