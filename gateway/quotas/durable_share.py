"""How many durables a user may make: each stays in the memory of the gateway and in the realm, with or without links.

Where durables belong to users, each counts in the share of its owner (`gateway.quotas.shares`) until it is deleted, and
those without an owner in that of all peers without a login. Where they belong to the realm there is no share, only the
limit. The realm knows all durables, so they are counted there anew: once a second while new ones are made, and before
one is refused, but not so often that counting takes more than a twentieth of the time. An attach to a durable that is
there makes none, and neither does one that moves it. Seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

from gateway.quotas.shares import SharedLimit
from native_backend.clock import Clock
from native_backend.nodes.durable import QUEUE, Durable, DurableName

NO_LOGIN: Final = "peers without a login"
_OF_THE_REALM: Final = "the realm"
_COUNTED_S: Final = 1.0
_REFUSED_S: Final = 0.1
_REST: Final = 20.0  # times what a count took


class DurableShare:
    """One gateway's. `durables`: those of the realm, with the states of queues, which no peer makes."""

    def __init__(self, limit: SharedLimit, durables: Callable[[], Collection[Durable]], clock: Clock) -> None:
        self._limit, self._durables, self._clock = limit, durables, clock
        self._known: dict[str, list[Durable]] = {}  # by name
        self._under_way: set[tuple[str, str]] = set()  # node and name, since they were counted
        self._counted_s, self._rest_s = float("-inf"), 0.0

    def refusal(self, node: str, names: DurableName, owner: str | None, *, moves: bool) -> str:
        """Why an attach to a durable of that name would make one too many, and what to do; empty: it does not, and is
        counted. `owner`: to whom it will belong, empty without a login; None: to the realm. `moves`: one of that name
        on another node ends for it."""
        holder = _OF_THE_REALM if owner is None else f"user {owner}" if owner else NO_LOGIN
        self._count(_COUNTED_S)
        if self._is_there(node, names, owner, moves):
            return ""
        if self._refusal(holder):
            self._count(_REFUSED_S)
            if self._is_there(node, names, owner, moves):
                return ""
        words = self._refusal(holder)
        if not words:
            self._limit.take(holder)
            self._under_way.add((node, names.name))
        return words

    def _refusal(self, holder: str) -> str:
        return self._limit.exhausted() if holder == _OF_THE_REALM else self._limit.refusal(holder)

    def _is_there(self, node: str, names: DurableName, owner: str | None, moves: bool) -> bool:
        """As the realm knows it again (`native_backend.subscriptions.registry`)."""
        if (node, names.name) in self._under_way:
            return True
        earlier = self._known.get(names.earlier, []) if names.earlier else []
        named = [*self._known.get(names.name, []), *(durable for durable in earlier if names.means(durable))]
        own = (durable for durable in named if owner is None or durable.owner in ("", owner))
        return any(durable.node == node for durable in named) or (moves and any(own))

    def _count(self, interval_s: float) -> None:
        began_s = self._clock.monotonic_s()
        if began_s - self._counted_s < max(interval_s, self._rest_s):
            return
        made = [durable for durable in self._durables() if durable.name != QUEUE]
        self._known = {}
        for durable in made:
            self._known.setdefault(durable.name, []).append(durable)
        self._under_way.clear()
        self._limit.recount(Counter(f"user {durable.owner}" if durable.owner else NO_LOGIN for durable in made))
        self._counted_s = self._clock.monotonic_s()
        self._rest_s = _REST * (self._counted_s - began_s)
