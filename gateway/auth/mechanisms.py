"""SASL mechanisms, the server's side of each: ANONYMOUS, PLAIN, EXTERNAL, and SCRAM (`gateway.auth.scram`). No
sockets, no clock.

    mechanism = MECHANISMS["PLAIN"](users)         # or External(users, names of the peer's certificate)
    step = mechanism.step(initial_response)        # octets: the next challenge; Granted, Denied; Check: ask its job

`mechanism.user` is who it says it is, as soon as it has. Whatever octets come, nothing is raised.
Source: RFC 4505 (ANONYMOUS), RFC 4616 (PLAIN), RFC 4422 (EXTERNAL).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Final

from gateway.auth.step import Check, Denied, Granted, Mechanism, Step
from gateway.auth.users import NAME_MAX, SCRAM, Users
from native_backend.nodes.grants import ANONYMOUS


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
        return Check(lambda: self._checked(user, password))

    def _checked(self, user: str, password: str) -> Granted | Denied:
        from gateway.auth.passwords import is_password

        return Granted(self._users.subject(user)) if is_password(self._users, user, password) else Denied()


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


def _scram(name: str) -> Callable[[Users], Mechanism]:
    def begin(users: Users) -> Mechanism:
        from gateway.auth.scram import Scram

        return Scram(name, users)

    return begin


MECHANISMS: dict[str, Callable[[Users], Mechanism]] = {
    "ANONYMOUS": Anonymous,
    "PLAIN": Plain,
    **{name: _scram(name) for name in SCRAM},
}


def make_ready(offered: Iterable[str]) -> None:
    """Import at the start what passwords need, so that the first login does not wait for it. A gateway without
    passwords starts sooner: it is an eighth of all that `serve` imports."""
    if not {"PLAIN", *SCRAM}.isdisjoint(offered):
        import_module("gateway.auth.scram")
        import_module("gateway.auth.passwords")
