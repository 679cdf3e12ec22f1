"""Messages of one connection that are here in part. What has come of each is kept here, and not in proton's buffers:
those stay as large as they were once, until the connection has gone.

A message of one transfer never comes here.
"""

from __future__ import annotations

from gateway.amqp.incoming_link import Incoming


class InPart:
    """A link has one at most. `size`: octets of all."""

    def __init__(self) -> None:
        self.size = 0
        self._of: dict[Incoming, bytearray] = {}

    def add(self, link: Incoming, octets: memoryview) -> int:
        """The next part; how much there is of that message now."""
        kept = self._of.get(link)
        if kept is None:
            kept = self._of[link] = bytearray()
        kept += octets
        self.size += len(octets)
        return len(kept)

    def take(self, link: Incoming) -> bytearray:
        """All parts so far, which are kept no more: the rest is here, or will never be."""
        kept = self._of.pop(link, None)
        if kept is None:
            return bytearray()
        self.size -= len(kept)
        return kept

    def largest(self) -> Incoming | None:
        """The link with the largest one."""
        return max(self._of, key=lambda link: len(self._of[link]), default=None)
