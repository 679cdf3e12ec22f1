"""SCRAM-SHA-256 and SCRAM-SHA-512, the server's side. No sockets, no clock.

Source: RFC 5802, RFC 7677, by scramp. Errors: none; whatever octets come, the answer is a `Step`.
"""

from __future__ import annotations

from scramp import ScramException, ScramMechanism

from gateway.auth.step import Denied, Granted, Step
from gateway.auth.users import Users


class Scram:
    """Salted challenge and response: neither side sends the password, and each proves that it knows it."""

    def __init__(self, name: str, users: Users) -> None:
        """`name`: the mechanism's."""
        self.user: str | None = None
        self._name = name
        self._users = users
        self._asked = False
        self._server = ScramMechanism(name).make_server(self._keys)

    def _keys(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self.user = user
        keys = self._users.keys(user, self._name)
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
