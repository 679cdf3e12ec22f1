"""SASL mechanisms, the server's side of each: ANONYMOUS, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, EXTERNAL. No sockets, no
clock.

    mechanism = MECHANISMS["PLAIN"](users)         # or External(users, names of the peer's certificate)
    step = mechanism.step(initial_response)        # octets: the next challenge; Granted, Denied; Check: ask its job

`mechanism.user` is who it says it is, as soon as it has. Whatever octets come, nothing is raised.
Source: RFC 4505 (ANONYMOUS), RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM, through scramp), RFC 4422 (EXTERNAL).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from scramp import ScramException, ScramMechanism

from gateway.auth.passwords import is_password
from gateway.auth.users import NAME_MAX, Users
from native_backend.nodes.grants import ANONYMOUS, Subject


@dataclass(frozen=True, slots=True)
class Granted:
    """Authenticated; `last_word` goes with the outcome."""

    subject: Subject
    last_word: bytes | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """Not authenticated. The peer gets no reason."""


@dataclass(frozen=True, slots=True)
class Check:
    """Costs milliseconds of a processor: to be called on another thread."""

    job: Callable[[], Granted | Denied]


Step = bytes | Granted | Denied | Check


class Mechanism(Protocol):
    """One exchange. `step` is given the initial response (empty when there is none), then each response."""

    user: str | None

    def step(self, response: bytes) -> Step: ...


class Anonymous:
    """Whatever trace the peer leaves is taken and nothing is checked."""

    def __init__(self, _: Users) -> None:
        self.user: str | None = None

    def step(self, response: bytes) -> Step:
        return Granted(ANONYMOUS)


class Plain:
    """authorization identity NUL user NUL password. No user may act for another one."""

    def __init__(self, users: Users) -> None:
        self.user: str | None = None
        self._users = users
        self._asked = False

    def step(self, response: bytes) -> Step:
        if not response and not self._asked:
            self._asked = True
            return b""
        try:
            parts = response.decode().split("\0")
        except UnicodeDecodeError:
            return Denied()
        if len(parts) != 3 or not parts[1] or not parts[2] or parts[0] not in ("", parts[1]):
            return Denied()
        _, user, password = parts
        if len(user.encode()) > NAME_MAX:
            return Denied()
        self.user = user
        users = self._users
        if (user, password) in users.known_passwords:  # it waits for its turn as a guess does
            return Granted(users.subject(user))
        return Check(lambda: Granted(users.subject(user)) if is_password(users, user, password) else Denied())


class Scram:
    """Salted challenge and response: neither side sends the password, and each proves that it knows it."""

    name = ""

    def __init__(self, users: Users) -> None:
        self.user: str | None = None
        self._users = users
        self._asked = False
        self._server = ScramMechanism(self.name).make_server(self._keys)

    def _keys(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self.user = user
        keys = self._users.keys(user, self.name)
        return keys.salt, keys.stored, keys.server, keys.iterations

    def step(self, response: bytes) -> Step:
        if not response and not self._asked:
            self._asked = True
            return b""
        self._asked = True
        try:
            if self.user is None:
                self._server.set_client_first(response.decode())
                return str(self._server.get_server_first()).encode()
            self._server.set_client_final(response.decode())
            return Granted(self._users.subject(self.user), str(self._server.get_server_final()).encode())
        except (ScramException, UnicodeDecodeError):
            return Denied()


class ScramSha256(Scram):
    name = "SCRAM-SHA-256"


class ScramSha512(Scram):
    name = "SCRAM-SHA-512"


class External:
    """Who the peer is, TLS has proved: the user that has one of its certificate's names. The response is the user it
    wants to be: empty, missing, or that one."""

    name: Final = "EXTERNAL"

    def __init__(self, users: Users, certificate: tuple[str, ...]) -> None:
        self.user: str | None = None
        self._users = users
        self._certificate = certificate

    def step(self, response: bytes) -> Step:
        user = self._users.with_certificate(self._certificate)
        self.user = user or next(iter(self._certificate), "no certificate")  # a failure is counted under this name
        if user is None or response not in (b"", user.encode()):
            return Denied()
        return Granted(self._users.subject(user))


MECHANISMS: dict[str, Callable[[Users], Mechanism]] = {
    "ANONYMOUS": Anonymous,
    "PLAIN": Plain,
    "SCRAM-SHA-256": ScramSha256,
    "SCRAM-SHA-512": ScramSha512,
}
