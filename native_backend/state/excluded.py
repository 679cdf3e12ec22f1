"""What a link sent elsewhere: events of its durable that are not offered to it again while it lives."""

from __future__ import annotations

from native_backend.state.intervals import Intervals


class Excluded:
    """`eids`, and where the link's next look at the returned events begins."""

    __slots__ = ("eids", "resume")

    def __init__(self) -> None:
        self.eids = Intervals()
        self.resume = 0
