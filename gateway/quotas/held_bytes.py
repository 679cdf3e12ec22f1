"""What peers make the gateway hold, in octets: what they have begun and not finished (messages that are here in part,
what is kept for the end of a transaction), what waits for a peer to read it, and deliveries that it has not settled.
One sum for the process, a share of it for each connection.

Half of the sum is kept for the `floor` that each connection can always have, so that those that hold much do not
starve the others; the first that come share the other half (as credit is: `gateway.links.credit`). Pure counting.
Source: ADR 0119.
"""

from __future__ import annotations

from typing import Any, Final, Literal

DELIVERY_BYTES: Final = 800  # of a delivery that was given and is not settled: `python -m bench.scale unread`
Kind = Literal["unfinished", "unread", "unsettled"]


class HeldBytes:
    """One gateway's sum. A message of the largest size has a place in any share."""

    def __init__(self, bytes_max: int, share: int, connections: int, message_bytes: int) -> None:
        self.bytes_max = max(bytes_max, 2 * message_bytes)
        self.share = max(share, message_bytes)
        self.floor = self.bytes_max // (2 * connections)
        self._shared = self.bytes_max - self.floor * connections
        self.lent = 0  # above the floors
        self.unfinished = self.unread = self.unsettled = 0  # of all
        self.accounts: dict[HeldAccount, None] = {}

    def open_account(self, owner: Any) -> HeldAccount:
        account = HeldAccount(self, owner)
        self.accounts[account] = None
        return account

    @property
    def room(self) -> int:
        """Above the floors; negative where more is held than may be."""
        return self._shared - self.lent

    @property
    def low(self) -> bool:
        """A quarter of what is above the floors is left, or less."""
        return self.room <= self._shared // 4

    def most(self) -> Kind:
        """Which of the three takes most of the sum."""
        kinds: tuple[Kind, ...] = ("unfinished", "unread", "unsettled")
        return max(kinds, key=lambda kind: int(getattr(self, kind)))


class HeldAccount:
    """One connection's. `unfinished`: messages that are here in part. `unread`, `unsettled`: as they were last seen."""

    def __init__(self, pool: HeldBytes, owner: Any) -> None:
        self.pool, self.owner = pool, owner
        self.unfinished = self.unread = self.unsettled = 0
        self.has_read = False  # something of it, since it was asked last
        self.stuck_s = 0  # seconds in which its peer has read nothing of what waits for it

    @property
    def held(self) -> int:
        return self.unfinished + self.unread + self.unsettled

    @property
    def room(self) -> int:
        """Octets that it may hold beside what it does; negative where that is too much."""
        held, pool = self.held, self.pool
        of_floor = pool.floor - held  # its own, also where a turn of others has made them hold more than the rest
        return min(pool.share - held, of_floor + max(0, pool.room) if of_floor >= 0 else pool.room)

    def hold(self, unfinished: int, unread: int, unsettled: int) -> None:
        """So much from now on."""
        pool, before = self.pool, self.held
        self.has_read |= unread < self.unread
        pool.unfinished += unfinished - self.unfinished
        pool.unread += unread - self.unread
        pool.unsettled += unsettled - self.unsettled
        self.unfinished, self.unread, self.unsettled = unfinished, unread, unsettled
        pool.lent += max(0, self.held - pool.floor) - max(0, before - pool.floor)

    def close(self) -> None:
        """It has gone."""
        self.hold(0, 0, 0)
        self.pool.accounts.pop(self, None)
        self.owner = None
