"""What one peer may have of a limit that all peers draw on: so much that others find something, too.

A *holder* is a user, or, of peers without a login, their address. It may take one more while it holds less than
`P / (100 - P)` times what is free, P being `limits.share_percent`. So with 75 a holder that is alone can have three
quarters of a limit; the more others hold, the less it can have, and to a holder of little something is left. What a
holder has stays its own.

Counted where something is attached, declared, opened or closed; of messages their octets, a batch at a time. Source:
ADR 0116.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gateway.auth.login_throttle import network
from gateway.config.limits import Limits
from gateway.evidence.notices import PeerIdentity
from native_backend.nodes.grants import ANONYMOUS

NAME_CHARACTERS = 40  # of a user in an error


def holder_of(peer: PeerIdentity) -> str:
    """Whose share it draws on, as an error names it."""
    if peer.subject.user != ANONYMOUS.user:
        return f"user {peer.subject.user}"
    return f"address {network(peer.address)}" if peer.address else "a peer"


class SharedLimit:
    """One limit: who holds how much of it."""

    def __init__(self, name: str, things: str, maximum: int, percent: Callable[[], int]) -> None:
        """`name`: its key in `limits`; `things`: what is counted. `percent`: P, as it is now."""
        self._name = name
        self._things = things
        self.maximum = maximum
        self._percent = percent
        self._held: Counter[str] = Counter()
        self.used = 0

    def held(self, holder: str) -> int:
        return self._held[holder]

    def take(self, holder: str, count: int = 1) -> None:
        """It has one more; -1: one less."""
        self.used += count
        self._held[holder] += count
        if not self._held[holder]:
            del self._held[holder]

    def recount(self, held: Counter[str]) -> None:
        """What each has, counted elsewhere."""
        self._held, self.used = held, held.total()

    def give_back(self, holder: str) -> None:
        self.take(holder, -1)

    def share(self, holder: str) -> int:
        """What it may hold at most: P percent of what the others leave."""
        return (self.maximum - self.used + self._held[holder]) * self._percent() // 100

    def fits(self, holder: str, count: int) -> bool:
        """It may take so many more."""
        return self._held[holder] + count <= self.share(holder)

    def exhausted(self, count: int = 1) -> str:
        """Why there are not so many more, for any holder, and what to do; empty: there are."""
        if count > 1 and self.used + count > self.maximum > self.used:
            free, wanted = self.maximum - self.used, f"{count} {self._things} more"
            return f"{wanted} are wanted, and {free} of {self.maximum} are left; raise limits.{self._name}"
        taken = self.used + count > self.maximum
        return f"all {self.maximum} {self._things} are taken; raise limits.{self._name}" if taken else ""

    def refusal(self, holder: str, count: int = 1) -> str:
        """Why it gets not so many more, and what to do; empty: it may take them."""
        free = self.maximum - self.used
        if words := self.exhausted(count):
            return words
        percent, held, before = self._percent(), self._held[holder], count - 1
        if (held + before) * (100 - percent) < (free - before) * percent:
            return ""
        who = ascii(holder)[1:-1][:NAME_CHARACTERS]
        has = f"{who} has {held} of {self.maximum} {self._things}"
        if count > 1:
            return f"{has}: {count} more leave too few of the last {free} for others; raise limits.{self._name}"
        return f"{has}, the last {free} are for others; close some, or raise limits.{self._name}"


class Shares:
    """All of one gateway's."""

    def __init__(self, limits: Limits, is_alone: Callable[[], bool]) -> None:
        """`is_alone`: there is one user, and no other can come, so nothing has to be left free."""

        def percent() -> int:
            return 100 if is_alone() else limits.share_percent

        self.percent = percent
        self.connections = SharedLimit("connections", "connections", limits.connections, percent)
        self.links = SharedLimit("links", "links", limits.links, percent)
        self.transactions = SharedLimit("transactions", "open transactions", limits.transactions, percent)
        self.transactions_bytes = SharedLimit(
            "transactions_bytes", "octets in transactions", limits.transactions_bytes, percent
        )
        self.in_flight_bytes = SharedLimit("in_flight_bytes", "octets in flight", limits.in_flight_bytes, percent)
        self.temporary_nodes = SharedLimit("temporary_nodes", "temporary nodes", limits.temporary_nodes, percent)
        self.durables = SharedLimit("durables", "durables", limits.durables, percent)
        self.stores_read = SharedLimit("stores_read", "stores with consumers", limits.stores_read, percent)
