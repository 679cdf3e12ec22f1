"""How many attaches of one holder the realm is asked about at once, over all its connections.

The realm answers one question after another. A user with many connections, each with as many attaches as one may have
undecided, would have all others wait behind its questions; so a connection whose holder has its share is not read on
until there is room. Those that wait go on one by one, the one that came first before the others.
Holders: see `gateway.quotas.shares`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

HOLDER_MAX: Final = 64


class Waiting(Protocol):
    """What a connection has undecided."""

    def go_on(self) -> None:
        """There is room again."""


class AttachShare:
    """One gateway's."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._waiting: dict[str, dict[Waiting, None]] = {}

    def take(self, holder: str, who: Waiting) -> bool:
        """One more. False: that was the last one for now, and `who` goes on when there is room."""
        self._asked[holder] += 1
        if self._asked[holder] < HOLDER_MAX:
            return True
        self._waiting.setdefault(holder, {})[who] = None
        return False

    def give_back(self, holder: str) -> None:
        """One is decided."""
        self._asked[holder] -= 1
        while self._asked[holder] < HOLDER_MAX and (waiting := self._waiting.get(holder)):
            who = next(iter(waiting))
            del waiting[who]
            if not waiting:
                del self._waiting[holder]
            who.go_on()
        if not self._asked[holder]:
            del self._asked[holder]
