"""A worker without a thread, for a log and a clock that are simulated."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from native_backend.log.retry import Retries
from native_backend.log.worker import Done, attempt

T = TypeVar("T")


class InlineWorker:
    """Jobs run at once on the caller's thread; `done` waits for `completed`, as with a thread. For the simulation,
    whose `pause` moves simulated time on."""

    def __init__(self, pause: Callable[[float], None] = time.sleep) -> None:
        self.retries = Retries()  # nothing is asked again: time stands still
        self._results: deque[tuple[Done[Any], Any]] = deque()
        self._pause = pause

    def submit(self, job: Callable[[], T], done: Done[T]) -> None:
        self._results.append((done, attempt(job)))

    def completed(self) -> int:
        count = 0
        while self._results:
            done, value = self._results.popleft()
            count += 1
            done(value)
        return count

    @property
    def pending(self) -> int:
        return len(self._results)

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Nothing completes by itself here."""

    def pause(self, seconds: float) -> None:
        self._pause(seconds)

    def repeated(self, job: Callable[[], T], done: Done[T], interval_s: float) -> AbstractContextManager[None]:
        """There is no other thread, and simulated time waits for this one."""
        return nullcontext()

    def close(self, deadline_s: float) -> None:
        """Nothing runs."""
