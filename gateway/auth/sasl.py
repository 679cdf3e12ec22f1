"""The server's side of SASL, before AMQP begins: bytes in, bytes out, no sockets, no proton, no clock of its own.

    sasl = SaslServer(("ANONYMOUS",), bare_amqp=True)
    to_send, rest, state = sasl.receive(data)      # until state is no longer "negotiating"

`rest` is what the peer sent for AMQP, its AMQP header included; it stays empty until authenticated, and then `subject`
is who the peer is. "refused": send `to_send`, then close the socket. "held": the peer has said all that decides about
`pending.user`. Wait for that user's turn, call `pending.job` (on another thread, if there is one), then `proceed` with
what it gave, or `turn_away`; what arrives meanwhile may be given to `receive`.
Source: AMQP 1.0 part 2 section 2.2 (header negotiation), part 5 section 5.3 (SASL). Errors: none, whatever the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from gateway.auth.mechanisms import MECHANISMS, External
from gateway.auth.step import Check, Denied, Granted, Mechanism, Step
from gateway.auth.users import NO_USERS, Users
from gateway.frames.field_faults import invalid_field
from gateway.frames.performatives import SASL_INIT, SASL_RESPONSE
from native_backend.nodes.grants import ANONYMOUS, Subject
from transformers.codec import Array, DecodeError, Described, Symbol, UByte, decode, encode

State = Literal["negotiating", "held", "authenticated", "refused"]

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
FRAME_SIZE_MAX = 512  # part 5, 5.3.1: no SASL frame may be larger
ROUNDS_MAX = 16  # challenges of one exchange
AHEAD_MAX = 65_536  # octets that a peer may send while it is held

_MECHANISMS, _CHALLENGE, _OUTCOME = 0x40, 0x42, 0x44
_SYMBOLS = {composite.symbol: composite.code for composite in (SASL_INIT, SASL_RESPONSE)}
_OK, _AUTH, _LATER = UByte(0), UByte(1), UByte(4)  # "sys-temp"
_FRAME = struct.Struct(">IBB")  # size, data offset, type; two more octets are ignored
_SASL_TYPE = 1


@dataclass(frozen=True, slots=True)
class PendingStep:
    """What stands between a peer's words and the answer to them. The job takes milliseconds of a processor."""

    user: str
    job: Callable[[], Granted | Denied] | None = None


class LoginPolicy:
    """Who may come in."""

    def __init__(self, users: Users) -> None:
        self._users = users

    @property
    def users(self) -> Users:
        """Those of now: other ones once the users file was read again."""
        return self._users

    def decided(self, user: str, granted: bool) -> None:
        """How the attempt ended."""


class SaslServer:
    """One connection's negotiation."""

    def __init__(
        self,
        offered: Iterable[str],
        bare_amqp: bool,
        policy: LoginPolicy | None = None,
        certificate: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """`offered`: names of `gateway.auth.mechanisms`, in order of preference; none means that only bare AMQP can
        pass. `certificate`: the names in the peer's, asked when it speaks; who shows none is not offered EXTERNAL."""
        self.subject: Subject = ANONYMOUS
        self.pending: PendingStep | None = None
        self._offered = tuple(offered)
        self._bare_amqp = bare_amqp
        self._policy = policy or LoginPolicy(NO_USERS)
        self._certificate = certificate
        self._held: Step = b""
        self.entered = False  # the peer has said who it is
        self._buffer = b""
        self._state: State = "negotiating"
        self._header_seen = False
        self._mechanism: Mechanism | None = None
        self._users = NO_USERS  # whom the mechanism knows
        self._rounds = 0

    def receive(self, data: bytes) -> tuple[bytes, bytes, State]:
        """What to send now, what is left for AMQP, and how it stands. After a refusal further bytes are dropped."""
        if self._state == "refused":
            return b"", b"", self._state
        self._buffer += data
        if self._state == "held" and len(self._buffer) > AHEAD_MAX:
            self.pending = None
            self._policy.decided(self._user or "", False)  # it may be heard already, and is not answered
            self._refuse(b"")
        to_send = b"" if self._header_seen or self._state != "negotiating" else self._header()
        return self._resume(to_send)

    def proceed(self, outcome: Granted | Denied | None) -> tuple[bytes, bytes, State]:
        """Its turn has come; `outcome` is what the hold's job gave."""
        assert self._state == "held"
        self._state, self.pending = "negotiating", None
        return self._resume(self._conclude(outcome or self._held))

    def turn_away(self) -> tuple[bytes, bytes, State]:
        """Its turn does not come: the peer may try again later. No failure of the user's."""
        self.pending = None
        return self._refuse(_frame(_OUTCOME, [_LATER])), b"", self._state

    def _resume(self, to_send: bytes) -> tuple[bytes, bytes, State]:
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
            if not self._certificate():
                self._offered = tuple(name for name in self._offered if name != External.name) or self._offered
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
        due = SASL_INIT if self._mechanism is None else SASL_RESPONSE
        if code != due.code or invalid_field(due, fields):
            return self._refuse(b"")  # out of turn, or nothing that SASL knows: the peer does not follow the protocol
        if due is SASL_RESPONSE:
            return self._step(fields[0])
        users, name = self._policy.users, fields[0]
        self._users = users
        if name not in self._offered:
            return self._refuse(_frame(_OUTCOME, [_AUTH]))
        self._mechanism = External(users, self._certificate()) if name == External.name else MECHANISMS[name](users)
        return self._step(fields[1] if len(fields) > 1 else None)

    def _step(self, response: bytes | None) -> bytes:
        assert self._mechanism is not None
        self._rounds += 1
        next_step = self._mechanism.step(response or b"") if self._rounds <= ROUNDS_MAX else Denied()
        return self._heard(next_step)

    def _heard(self, next_step: Step) -> bytes:
        """A challenge tells nothing. What decides about a user waits for that user's turn, be it right or wrong."""
        user = self._user
        self.entered = user is not None
        if user is None or isinstance(next_step, bytes):
            return self._conclude(next_step)
        self._state, self._held = "held", next_step
        self.pending = PendingStep(user, next_step.job if isinstance(next_step, Check) else None)
        return b""

    def _conclude(self, next_step: Step) -> bytes:
        if isinstance(next_step, bytes):
            return _frame(_CHALLENGE, [next_step])
        assert not isinstance(next_step, Check)
        if self._user is not None and isinstance(next_step, Granted) and self._policy.users is not self._users:
            return self._refuse(_frame(_OUTCOME, [_LATER]))  # it was granted by a users file that is no longer used
        if self._user is not None:
            self._policy.decided(self._user, isinstance(next_step, Granted))
        if isinstance(next_step, Denied):
            return self._refuse(_frame(_OUTCOME, [_AUTH]))
        self._state, self.subject = "authenticated", next_step.subject
        return _frame(_OUTCOME, [_OK] if next_step.last_word is None else [_OK, next_step.last_word])

    @property
    def _user(self) -> str | None:
        return self._mechanism.user if self._mechanism is not None else None


def _frame(code: int, fields: list[object]) -> bytes:
    body = encode(Described(code, fields))
    return _FRAME.pack(8 + len(body), 2, _SASL_TYPE) + b"\x00\x00" + body


def _performative(body: bytes) -> tuple[int, list[Any]]:
    """Code and fields of a frame's one performative; code 0 for anything else."""
    try:
        value, end = decode(body)
    except DecodeError:
        return 0, []
    if end != len(body) or not isinstance(value, Described) or not isinstance(value.value, list):
        return 0, []
    code = value.descriptor
    return (_SYMBOLS.get(code, 0) if isinstance(code, Symbol) else int(code)), value.value
