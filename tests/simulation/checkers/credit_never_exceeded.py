"""Credit for publishers: no link and no sum of links above the limits."""

from __future__ import annotations

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import WireLink


class CreditNeverExceeded(Checker):
    """What a publisher may send and what of it has no outcome yet stay within `credit_per_link`, all links together
    within `in_flight`; what a transaction has taken needs no credit more. Looked at when everything that a turn had to
    say is said."""

    _granted = False

    def granted(self, link: WireLink) -> None:
        self._granted = True

    def flushed(self) -> None:
        if not self._granted:
            return
        self._granted = False
        limits, total = self.world.shape.limits, 0
        for link in self.world.process.live_links():
            if link.mode == "publish" and link.confirmed:
                held = link.limit - self._completed(link)
                self.require(held <= limits.credit_per_link, f"{link} holds {held} of {limits.credit_per_link}")
                total += held
        self.require(total <= limits.in_flight, f"publishers hold {total} of {limits.in_flight}")

    def _completed(self, link: WireLink) -> int:
        answered = self.world.answers.markers
        return sum(
            post.inside or bool(post.told) or (post.settled and post.marker in answered) for post in link.published
        )
