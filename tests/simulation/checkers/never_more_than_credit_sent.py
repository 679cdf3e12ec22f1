"""A consumer's credit is never overdrawn."""

from __future__ import annotations

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given


class NeverMoreThanCreditSent(Checker):
    """No event leaves beyond what the consumer's last flow, as received, allows."""

    def given(self, given: Given) -> None:
        link = given.link
        self.require(link.count <= link.limit, f"{link}: {link.count} sent, {link.limit} allowed")
