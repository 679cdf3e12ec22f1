"""Users, and whose turn it is to log in, for all connections of one process."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from gateway.auth.login_queue import Attempt, Later, LoginQueue
from gateway.auth.login_throttle import LoginThrottle, network
from gateway.auth.sasl import LoginPolicy
from gateway.auth.users import Users
from native_backend.clock import Clock

Tell = Callable[[str, str, Hashable, str, str], object]
"""Fault, words, whose it was; user, address."""


class Authenticator:
    """Opens a `Login` for each connection."""

    def __init__(self, users: Users, failures_kept: int, clock: Clock, tell: Tell, later: Later) -> None:
        """`tell` counts a fault, says it, and whose it was; `later` is the loop's."""
        self.users = users
        self.tell = tell
        self.failed = 0  # attempts, ever
        self.throttle = LoginThrottle(failures_kept)
        self.clock = clock
        self.queue = LoginQueue(self.throttle, clock, later)

    def login(self, address: str) -> Login:
        return Login(self, address)


class Login(LoginPolicy):
    """One connection's."""

    def __init__(self, authenticator: Authenticator, address: str) -> None:
        super().__init__(authenticator.users)
        self._authenticator = authenticator
        self._address = address
        self._attempt: Attempt | None = None

    @property
    def users(self) -> Users:
        return self._authenticator.users

    def enter(self, user: str, begin: Callable[[], None], unheard: Callable[[], None]) -> None:
        """`begin` is called when the user's turn has come, perhaps at once; `unheard` if it does not come."""

        def turned_away() -> None:
            self._tell("login-unheard", user, "too many logins of its address wait, or failed; the delay is too long")
            unheard()

        self._attempt = Attempt(network(self._address), user, begin, turned_away)
        if not self._authenticator.queue.enter(self._attempt):
            turned_away()

    def leave(self) -> None:
        """It is decided, or the peer has gone before its turn: the next one's turn comes."""
        if self._attempt is not None:
            self._authenticator.queue.leave(self._attempt)

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
