"""What the parts of a realm do by the clock: one heap has all of them by when they are due.

A turn compares one number with the time; a part is called when it is due and not before. It names its next time itself,
or leaves that to the answer that it waits for. While closing only those go on that bring to an end what was begun.
Seconds are monotonic.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf

from native_backend.clock import Clock
from native_backend.state.mistakes import Mistakes, Step

_AGAIN_S = 1.0
"""A part that a mistake of ours has ended had named no next time."""
_ENTRIES = 64
"""The heap may have twice as many as there are timers that are due, and these."""


class Timer:
    """The next call of one part."""

    __slots__ = ("_timers", "due_s", "ends", "step")

    def __init__(self, timers: Timers, step: Step, ends: bool) -> None:
        self._timers, self.step, self.ends = timers, step, ends
        self.due_s = inf  # it is not to be called

    def at(self, due_s: float) -> None:
        """At that time, whatever was named before."""
        if due_s != self.due_s:
            self._timers.add(due_s, self)

    def by(self, due_s: float) -> None:
        """At that time, unless it is due sooner."""
        if due_s < self.due_s:
            self._timers.add(due_s, self)

    def after(self, seconds: float) -> None:
        """So long from now, whatever was named before."""
        self.at(self._timers.now_s() + seconds)

    def stop(self) -> None:
        self.due_s = inf

    def soon(self) -> None:
        """In this turn, or the next one."""
        self.by(0.0)


class Timers:
    """Of one realm."""

    def __init__(self, clock: Clock, mistakes: Mistakes) -> None:
        self.now_s, self._mistakes = clock.monotonic_s, mistakes
        self.due_s = inf  # nothing is due before
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = 0
        self._most = _ENTRIES
        self._closing = False

    @property
    def entries(self) -> int:
        """Of the heap."""
        return len(self._heap)

    def timer(self, name: str, call: Callable[[], object], *, ends: bool = False, is_needed: bool = False) -> Timer:
        """`ends`: it is called while closing, too. `is_needed`: as of a `Step`."""
        return Timer(self, Step(name, call, is_needed), ends)

    def add(self, due_s: float, timer: Timer) -> None:
        """An entry that was made for a later time says nothing any more."""
        timer.due_s = due_s
        self._count += 1
        heappush(self._heap, (due_s, self._count, timer))
        if len(self._heap) > self._most:
            self._forget()
        self.due_s = self._heap[0][0]

    def _forget(self) -> None:
        """What was named and does not hold any more."""
        entries = {entry[2]: entry for entry in self._heap if entry[2].due_s == entry[0]}
        self._heap[:] = entries.values()
        heapify(self._heap)
        self._most = 2 * len(self._heap) + _ENTRIES

    def close(self) -> None:
        self._closing = True

    def run(self) -> None:
        """Call what is due now; each once."""
        now_s = self.now_s()
        if now_s < self.due_s:
            return
        heap, due = self._heap, list[Timer]()
        while heap and heap[0][0] <= now_s:
            due_s, _, timer = heappop(heap)
            if timer.due_s == due_s:
                due.append(timer)
        self.due_s = heap[0][0] if heap else inf
        for timer in due:
            if timer.due_s > now_s or (self._closing and not timer.ends):
                continue  # one before it has stopped or delayed it
            timer.due_s = inf
            try:
                timer.step.call()
            except Exception:
                self._mistakes.failed(timer.step)
                timer.by(now_s + _AGAIN_S)
