"""Users, and how long an address has to wait before its next attempt, for all connections of one process."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from gateway.auth.login_throttle import LoginThrottle, network
from gateway.auth.sasl import LoginPolicy
from gateway.auth.users import Users
from native_backend.clock import Clock

Tell = Callable[[str, str, Hashable, str, str], object]
"""Fault, words, whose it was; user, address."""


class Authenticator:
    """Opens a `LoginPolicy` for each connection."""

    def __init__(self, users: Users, failures_kept: int, clock: Clock, tell: Tell) -> None:
        """`tell` counts a fault, says it, and whose it was."""
        self.users = users
        self.tell = tell
        self.failed = 0  # attempts, ever
        self.throttle = LoginThrottle(failures_kept)
        self.clock = clock

    def login_policy(self, address: str) -> LoginPolicy:
        return _ThrottledLogin(self, address)


class _ThrottledLogin(LoginPolicy):
    """One connection's."""

    def __init__(self, authenticator: Authenticator, address: str) -> None:
        super().__init__(authenticator.users)
        self._authenticator = authenticator
        self._address = address

    def wait_s(self, user: str) -> float | None:
        delay_s = self._authenticator.throttle.wait_s(self._address, user, self._authenticator.clock.monotonic_s())
        if delay_s is None:
            self._tell("login-unheard", user, "there were too many failed logins; the delay would be too long")
        return delay_s

    def decided(self, user: str, granted: bool) -> None:
        authenticator = self._authenticator
        if granted:
            authenticator.throttle.succeeded(self._address, user)
            return
        authenticator.failed += 1
        authenticator.throttle.failed(self._address, user, authenticator.clock.monotonic_s())
        self._tell("failed-login", user, "the password, the certificate or the name is wrong")

    def _tell(self, fault: str, user: str, words: str) -> None:
        authenticator = self._authenticator
        description = f"user {user!a:.200} from {self._address}: {words}; failed logins so far: {authenticator.failed}"
        authenticator.tell(fault, description, (user, network(self._address)), user, self._address)
