"""A consuming link, as the durable that it takes from knows it. May import: the standard library, `native_backend`
below it.
"""

from __future__ import annotations

from typing import Protocol

from native_backend.answers import SubscribeAnswer
from native_backend.intervals import Intervals


class Link(Protocol):
    """What a `DurableSubscription` is to its `Dispatch`."""

    outstanding: Intervals
    held: Intervals  # of what it was given: a transaction has it, whether or not the link lives
    link: object
    hungry: bool  # it took less than it asked for last time
    selecting: str  # the selection it came with; empty: none

    def lose(self, answer: SubscribeAnswer, native: str) -> None: ...
