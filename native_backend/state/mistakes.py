"""Exceptions that are mistakes of ours: what they ended is over, everything beside it goes on, and an operator sees it.

Each is counted (the alarm `mistakes`) and logged with its traceback, at most once a minute for each place. A step of
every turn that fails is a trouble until it has worked for `_WORKS_S`. Seconds are monotonic.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from operator import length_hint
from typing import NamedTuple

from native_backend.clock import Clock
from native_backend.state.troubles import Alarms, Troubles

_LOG = logging.getLogger(__name__)
ALARM = "mistakes"
_LOG_AGAIN_S = 60.0
_WORKS_S = 10.0


class Step(NamedTuple):
    """A part of every turn. `is_needed`: no peer can be served without it."""

    name: str
    call: Callable[[], object]
    is_needed: bool = True


class Steps:
    """What is done in every turn, one after the other."""

    def __init__(self, *steps: Step) -> None:
        self.each = steps
        self.calls = [step.call for step in steps]  # a turn comes many thousand times a second


class Mistakes:
    """Of one process. For one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.alarms, self.troubles = clock, Alarms(clock), Troubles(clock)
        self._logged_s: dict[str, float] = {}  # by place in the code
        self._unlogged: Counter[str] = Counter()  # so many there since
        self._failed_s: dict[str, float] = {}  # by step, while it is a trouble

    def note(self, what: str) -> str:
        """Inside an `except`; returns the fault and its place."""
        self.alarms[ALARM] += 1
        fault, place = sys.exc_info()[1], ""
        for frame, line in traceback.walk_tb(fault.__traceback__ if fault is not None else None):
            place = f"{frame.f_code.co_filename}:{line}"  # the innermost one stays
        now_s = self._clock.monotonic_s()
        if now_s - self._logged_s.get(place, float("-inf")) >= _LOG_AGAIN_S:
            self._logged_s[place] = now_s
            more = self._unlogged.pop(place, 0)
            _LOG.exception("%s%s", what, f" (and {more} more times since the last line)" if more else "")
        else:
            self._unlogged[place] += 1
        return f"{fault!r:.200} at {place}"

    def take(self, steps: Steps) -> None:
        """A turn: one after the other, whatever becomes of those before."""
        rest = iter(steps.calls)
        while True:
            try:
                for call in rest:
                    call()
                break
            except Exception:  # goes on behind the step that failed
                self.failed(steps.each[-1 - length_hint(rest)])
        if self._failed_s:
            self._end_troubles()

    def failed(self, step: Step) -> None:
        """Inside an `except`: the step has ended by a mistake of ours."""
        fault = self.note(f"a step of the turn failed: {step.name}")
        if step.is_needed:
            self._failed_s[step.name] = self._clock.monotonic_s()
            self.troubles.begin("turn-fails", fault, step.name)

    def _end_troubles(self) -> None:
        now_s = self._clock.monotonic_s()
        for name in [name for name, failed_s in self._failed_s.items() if now_s - failed_s >= _WORKS_S]:
            del self._failed_s[name]
            self.troubles.end("turn-fails", name)


def unforeseen(what: str) -> str:  # the form of `Mistakes.note`
    """Where there is no realm to show a mistake: the exception goes on."""
    raise  # called inside an `except`
