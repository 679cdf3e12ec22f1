"""What a link sent elsewhere: events of its durable that are not offered to it again while it lives.

May import: the standard library, `native_backend.intervals`.
"""

from __future__ import annotations

from native_backend.intervals import Intervals


class Barred:
    """`eids`, and where the link's next look at the returned events begins."""

    __slots__ = ("eids", "resume")

    def __init__(self) -> None:
        self.eids = Intervals()
        self.resume = 0
