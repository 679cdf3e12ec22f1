"""The doorkeeper: users, and how long an address has to wait, for every connection of one process.

May import: `gateway.penalties`, `gateway.sasl`, `gateway.users`, `native_backend.clock`.
"""

from __future__ import annotations

import logging

from gateway.penalties import Penalties
from gateway.sasl import Door
from gateway.users import Users
from native_backend.clock import Clock

log = logging.getLogger("realmgate.security")


class Doorkeeper:
    """Opens a `Door` for each connection."""

    def __init__(self, users: Users, failures_kept: int, clock: Clock) -> None:
        self.users = users
        self.failed = 0  # attempts, ever
        self.penalties = Penalties(failures_kept)
        self.clock = clock

    def door(self, address: str) -> Door:
        return _Watched(self, address)


class _Watched(Door):
    """One connection's."""

    def __init__(self, keeper: Doorkeeper, address: str) -> None:
        super().__init__(keeper.users)
        self._keeper = keeper
        self._address = address

    def wait_s(self, user: str) -> float | None:
        return self._keeper.penalties.wait_s(self._address, user, self._keeper.clock.monotonic_s())

    def told(self, user: str, granted: bool) -> None:
        keeper = self._keeper
        if granted:
            keeper.penalties.succeeded(self._address, user)
            return
        keeper.failed += 1
        keeper.penalties.failed(self._address, user, keeper.clock.monotonic_s())
        if keeper.failed & (keeper.failed - 1) == 0:  # the 1st, 2nd, 4th, 8th...: who guesses must not fill the disk
            log.warning("failed logins so far: %d; the last by %a from %s", keeper.failed, user[:200], self._address)
