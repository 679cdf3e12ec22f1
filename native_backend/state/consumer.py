"""A consuming link, as the durable that it takes from knows it."""

from __future__ import annotations

from typing import Protocol

from native_backend.nodes.words import SubscribeAnswer
from native_backend.state.intervals import Intervals


class Consumer(Protocol):
    """What a `DurableSubscription` is to its `Dispatcher`."""

    outstanding: Intervals
    reserved: Intervals  # of what it was given: a transaction has it, whether or not the link lives
    link: object
    wants_more: bool  # it took less than it asked for last time
    selecting: str  # the selection it came with; empty: none

    def lose(self, answer: SubscribeAnswer, native: str) -> None: ...
