"""How many durables a user may make: each stays in the memory of the gateway and in the realm, with or without links.

A user who made one has it in its share (`gateway.quotas.shares`) until it is deleted; peers without a login are one
holder. The realm knows all durables, so they are counted there anew: once a second while new ones are made, and at
once, but not ten times a second, before one is refused. An attach to a durable that is there makes none. Seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

from gateway.quotas.shares import SharedLimit
from native_backend.clock import Clock
from native_backend.nodes.durable import QUEUE, Durable, DurableName

NO_LOGIN: Final = "peers without a login"
_COUNTED_S: Final = 1.0
_REFUSED_S: Final = 0.1


class DurableShare:
    """One gateway's. `durables`: those of the realm, with the states of queues, which no peer makes."""

    def __init__(self, limit: SharedLimit, durables: Callable[[], Collection[Durable]], clock: Clock) -> None:
        self._limit, self._durables, self._clock = limit, durables, clock
        self._known: set[tuple[str, str]] = set()  # node and name
        self._counted_s = float("-inf")

    def refusal(self, node: str, name: DurableName, user: str) -> str:
        """Why an attach to a durable of that name would make one too many, and what to do; empty: it does not, and is
        counted. `user`: empty without a login."""
        holder = f"user {user}" if user else NO_LOGIN
        self._count(_COUNTED_S)
        if self._is_there(node, name):
            return ""
        if self._limit.refusal(holder):
            self._count(_REFUSED_S)
            if self._is_there(node, name):
                return ""
        words = self._limit.refusal(holder)
        if not words:
            self._limit.take(holder)
            self._known.add((node, name.name))
        return words

    def _is_there(self, node: str, name: DurableName) -> bool:
        return not self._known.isdisjoint({(node, name.name), (node, name.earlier)})

    def _count(self, interval_s: float) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._counted_s < interval_s:
            return
        self._counted_s = now_s
        made = [durable for durable in self._durables() if durable.name != QUEUE]
        self._known = {(durable.node, durable.name) for durable in made}
        self._limit.recount(Counter(f"user {durable.owner}" if durable.owner else NO_LOGIN for durable in made))
