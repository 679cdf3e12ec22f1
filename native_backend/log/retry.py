"""Asking the log again, where waiting helps: bounded by number and by time, waiting longer each time, and counted.

Whether it helps is data: `retry: inside` of a native error (mappings/errors.yaml). A job is asked again only when it
certainly was not done; a message never is: its publisher gets the failure. Seconds.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_before_delay,
    stop_when_event_set,
    wait_exponential,
)

from mappings.compiler.errors import IN_FORCE
from native_backend.limits import RealmLimits
from native_backend.log.port import LogError

T = TypeVar("T")
CodeOf = Callable[[BaseException], str | None]
_LIMITS = RealmLimits()


def job_code(error: BaseException) -> str | None:
    """The code of a failure of a control job that is worth asking again."""
    if not isinstance(error, LogError) or error.failure.cause != "unavailable":
        return None
    code = error.failure.code
    native = IN_FORCE.errors.named(code)
    return (code or error.failure.cause) if native is None or native.retry == "inside" else None


class Retries:
    """One process's: what was asked again, and given up in the end, by code."""

    def __init__(self) -> None:
        self.asked_again: Counter[str] = Counter()
        self.given_up: Counter[str] = Counter()
        self._closing = threading.Event()

    def job(self, job: Callable[[], T]) -> T:
        """A control job, which others wait behind. Raises its last `LogError`."""
        return self.ask(job, job_code, _LIMITS.retry_attempts, _LIMITS.retry_deadline_s)

    def call(self, ask: Callable[[], T], code_of: CodeOf, deadline_s: float) -> T:
        """A driver's own call, which has a deadline."""
        return self.ask(ask, code_of, _LIMITS.retry_calls, max(deadline_s, 0.01))

    def ask(self, ask: Callable[[], T], code_of: CodeOf, attempts: int, deadline_s: float) -> T:
        """`code_of` names an error that is worth it, and gives None for any other.

        What goes well the first time, as a journal does two hundred times a second, makes nothing of tenacity's: each
        of its objects is in a circle, and a collection of ten thousands of them delays everything for 100 ms.
        """
        began = time.monotonic()
        try:
            return ask()
        except Exception as error:
            if code_of(error) is None:
                raise
            failed: list[Exception] = [error]

        def attempt() -> T:
            if failed:  # the first one, as it went
                raise failed.pop()
            return ask()

        return self._ask_again(attempt, code_of, attempts, deadline_s - (time.monotonic() - began))

    def _ask_again(self, attempt: Callable[[], T], code_of: CodeOf, attempts: int, deadline_s: float) -> T:
        code: str | None = None

        def is_worth_it(error: BaseException) -> bool:
            nonlocal code
            code = code_of(error)
            return code is not None

        def again(_: RetryCallState) -> None:
            self.asked_again[code or ""] += 1

        retrying = Retrying(
            retry=retry_if_exception(is_worth_it),
            stop=stop_after_attempt(attempts) | stop_before_delay(deadline_s) | stop_when_event_set(self._closing),
            wait=wait_exponential(multiplier=_LIMITS.retry_wait_s, max=_LIMITS.retry_wait_max_s),
            sleep=sleep_using_event(self._closing),
            before_sleep=again,
            reraise=True,
        )
        try:
            return retrying(attempt)
        except BaseException:
            if code is not None:
                self.given_up[code] += 1
            raise

    def close(self) -> None:
        """What waits is not asked again."""
        self._closing.set()
