"""Groups of events, and which link of a durable or queue has each: all of a group to one link, for as long as it lives.

A group goes to the link that meets its first event, unless another link of the same selection waits for events and has
fewer groups. Digests of group-ids are counted modulo `limits.groups`, so the table has a bound; groups that share a
place share a link. What a link meets of another's groups is *kept* for that one, in its place.
Source: AMQP 1.0, 3.2.4 (group-id); JMS 2.0 section 3.5.11 (JMSXGroupID).
"""

from __future__ import annotations

from collections.abc import Sequence

from native_backend.state.consumer import Consumer
from native_backend.state.intervals import Intervals

_NOTHING = Intervals()


class MessageGroups:
    """See the module's docstring."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._owners: dict[tuple[str, int], Consumer] = {}  # by selection and place
        self._counts: dict[Consumer, int] = {}
        self._kept: dict[Consumer, Intervals] = {}

    def owner_of(self, group: int, link: Consumer, links: Sequence[Consumer]) -> Consumer:
        """The link that has the group; a group without one gets one now."""
        place = link.selecting, group % self._places
        keeper = self._owners.get(place)
        if keeper is None:
            keeper = self._owners[place] = self._fewest(link, links)
            self._counts[keeper] = self._counts.get(keeper, 0) + 1
        return keeper

    def _fewest(self, link: Consumer, links: Sequence[Consumer]) -> Consumer:
        counts = self._counts
        best, fewest = link, counts.get(link, 0)
        for other in links:
            if other.wants_more and other.selecting == link.selecting and counts.get(other, 0) < fewest:
                best, fewest = other, counts.get(other, 0)
        return best

    def kept(self, link: Consumer) -> Intervals:
        """Events that wait for that link: no link has them, and no other link gets them."""
        return self._kept.setdefault(link, Intervals())

    def has_kept(self, link: Consumer) -> bool:
        return bool(self._kept.get(link, _NOTHING))

    def give_up(self, link: Consumer) -> Intervals:
        """What was kept for it."""
        return self._kept.pop(link, Intervals())

    def leave(self, link: Consumer) -> Intervals:
        """Free its groups; returns what was kept for it."""
        if self._counts.pop(link, 0):
            for place in [place for place, keeper in self._owners.items() if keeper is link]:
                del self._owners[place]
        return self.give_up(link)

    def all_kept(self) -> list[Intervals]:
        """Returns all that was kept, for any link, and keeps it no more. Groups stay with their links."""
        kept, self._kept = [*self._kept.values()], {}
        return kept

    def lose_below(self, bound: int) -> None:
        """What lies below is given no more."""
        for kept in self._kept.values():
            kept.remove_below(bound)
