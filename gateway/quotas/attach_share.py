"""How many attaches of one holder the realm is asked about at once, over all its connections.

The realm answers one question after another. A user with many connections, each with as many attaches as one may have
undecided, would have all others wait behind its questions. So a connection whose holder has its share is not read on
until there is room: beyond the share, each connection has one question. Those that wait go on one by one, the one that
came first before the others, some in a turn (`next`). Holders: see `gateway.quotas.shares`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Generic, TypeVar

HOLDER_MAX: Final = 64
W = TypeVar("W")


class AttachShare(Generic[W]):
    """One gateway's. `W`: who waits."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._waiting: dict[str, dict[W, None]] = {}
        self._due: dict[str, None] = {}  # holders of which one was decided

    def take(self, holder: str, who: W) -> bool:
        """One more. False: that was the last one for now, and `who` is the `next` one when there is room."""
        self._asked[holder] += 1
        if self._asked[holder] < HOLDER_MAX:
            return True
        self._waiting.setdefault(holder, {})[who] = None
        return False

    def give_back(self, holder: str) -> None:
        """One is decided."""
        self._asked[holder] -= 1
        if not self._asked[holder]:
            del self._asked[holder]
        if holder in self._waiting:
            self._due[holder] = None

    def next(self) -> W | None:
        """Who may go on now. One that goes on may take what there is, and wait again."""
        while self._due:
            holder = next(iter(self._due))
            waiting = self._waiting.get(holder)
            if waiting and self._asked[holder] < HOLDER_MAX:
                who = next(iter(waiting))
                del waiting[who]
                if not waiting:
                    del self._waiting[holder]
                return who
            del self._due[holder]
        return None

    @property
    def is_due(self) -> bool:
        """More may go on than went on in this turn."""
        return bool(self._due)
