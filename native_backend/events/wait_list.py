"""Where consuming links wait while there is nothing for them, so that a turn visits only those that may get something.

A link that found nothing *parks*: it is woken once, when an event may be there for it, and asks again then. Being woken
promises nothing. Of those that compete for one durable's events as many are woken as there are events, in the order in
which they parked; while some still wait, the next turn looks again. Times in milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import islice

from native_backend.state.mistakes import unforeseen

Wake = Callable[[], None]


class WaitList:
    """The links of one durable that wait."""

    def __init__(self, wait_lists: WaitLists, available: Callable[[], int]) -> None:
        """`available`: how many events there may be for them now; with none, it has `notify` called later."""
        self._wait_lists = wait_lists
        self._available = available
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

    def notify(self) -> None:
        """Something may have come for them."""
        if self._wakes:
            self._wait_lists.pending[self] = None

    def wake_some(self) -> None:
        count = self._available()
        for link in [*islice(self._wakes, count)]:
            self._wakes.pop(link)()
        if count:
            self.notify()  # those that are left


class WaitLists:
    """All that wait in one realm."""

    def __init__(self) -> None:
        self.pending: dict[WaitList, None] = {}  # to be looked at in the next turn
        self._due: list[tuple[int, int, WaitList]] = []
        self._soonest: dict[WaitList, int] = {}
        self._count = 0
        self.on_mistake: Callable[[str], str] = unforeseen

    def notify_at(self, time_ms: int, waiting: WaitList) -> None:
        if time_ms < self._soonest.get(waiting, time_ms + 1):
            self._soonest[waiting] = time_ms
            self._count += 1
            heappush(self._due, (time_ms, self._count, waiting))

    @property
    def has_timers(self) -> bool:
        return bool(self._due)

    def notify_due(self, now_ms: int) -> None:
        while self._due and self._due[0][0] <= now_ms:
            time_ms, _, waiting = heappop(self._due)
            if self._soonest.get(waiting) == time_ms:
                del self._soonest[waiting]
            waiting.notify()

    def wake_some(self) -> None:
        """Wake the links that may get something."""
        pending, self.pending = self.pending, {}
        for waiting in pending:
            try:
                waiting.wake_some()
            except Exception:
                self.on_mistake("links that wait for events could not be woken")
