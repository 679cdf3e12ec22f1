"""Where consuming links wait while there is nothing for them, so that a turn visits only those that may get something.

A link that found nothing *parks*: it is woken once, when an event may be there for it, and asks again then. Being woken
promises nothing. Of those that compete for one durable's events as many are woken as there are events, in the order in
which they parked; while some still wait, the next turn looks again. Times in milliseconds since 1970.
May import: the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import islice

Wake = Callable[[], None]


class Waiting:
    """The links of one durable that wait."""

    def __init__(self, lobby: Lobby, offer: Callable[[], int]) -> None:
        """`offer`: how many events there may be for them now; with none, it sees to it that `stir` is called later."""
        self._lobby = lobby
        self._offer = offer
        self._wakes: dict[object, Wake] = {}

    def add(self, link: object, wake: Wake) -> None:
        self._wakes[link] = wake

    def drop(self, link: object) -> None:
        self._wakes.pop(link, None)

    def wake(self, link: object) -> None:
        """Something is there for this one."""
        wake = self._wakes.pop(link, None)
        if wake is not None:
            wake()

    def stir(self) -> None:
        """Something may have come for them."""
        if self._wakes:
            self._lobby.restless[self] = None

    def serve(self) -> None:
        count = self._offer()
        for link in [*islice(self._wakes, count)]:
            self._wakes.pop(link)()
        if count:
            self.stir()  # those that are left


class Lobby:
    """All that wait in one realm."""

    def __init__(self) -> None:
        self.restless: dict[Waiting, None] = {}  # to be looked at in the next turn
        self._due: list[tuple[int, int, Waiting]] = []
        self._soonest: dict[Waiting, int] = {}
        self._count = 0

    def stir_at(self, time_ms: int, waiting: Waiting) -> None:
        if time_ms < self._soonest.get(waiting, time_ms + 1):
            self._soonest[waiting] = time_ms
            self._count += 1
            heappush(self._due, (time_ms, self._count, waiting))

    @property
    def has_dates(self) -> bool:
        return bool(self._due)

    def stir_due(self, now_ms: int) -> None:
        while self._due and self._due[0][0] <= now_ms:
            time_ms, _, waiting = heappop(self._due)
            if self._soonest.get(waiting) == time_ms:
                del self._soonest[waiting]
            waiting.stir()

    def serve(self) -> None:
        """Wake whoever may get something."""
        restless, self.restless = self.restless, {}
        for waiting in restless:
            waiting.serve()
