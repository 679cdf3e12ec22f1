"""Passes each fact to the checkers that ask for it, and remembers it in words for a failing seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given, Publish, Transaction, WireLink

_FACTS = (
    "attached",
    "published",
    "told",
    "granted",
    "given",
    "stated",
    "contradicted",
    "echoed",
    "detached",
    "declared",
    "promised",
    "discharged",
    "answered",
    "flushed",
)


class Observers:
    """All checkers as one `Observer`."""

    def __init__(self, checkers: list[Checker], remember: Callable[[str], None]) -> None:
        self._listeners: dict[str, list[Any]] = {
            fact: [
                getattr(checker, fact)
                for checker in checkers
                if getattr(type(checker), fact) is not getattr(Checker, fact)
            ]
            for fact in _FACTS
        }
        self._remember = remember
        self.counts: dict[str, int] = {}

    def _tell(self, fact: str, words: str, *facts: Any) -> None:
        self.counts[fact] = self.counts.get(fact, 0) + 1
        self._remember(words)
        for listener in self._listeners[fact]:
            listener(*facts)

    def attached(self, link: WireLink) -> None:
        self._tell("attached", f"{'attached' if link.confirmed else 'refused'} {link}", link)

    def published(self, publish: Publish) -> None:
        self._tell("published", f"published {publish.marker} on {publish.link}", publish)

    def told(self, publish: Publish, state: str) -> None:
        self._tell("told", f"told {publish.marker} {state}", publish, state)

    def granted(self, link: WireLink) -> None:
        self._tell("granted", f"granted up to {link.limit} on {link}", link)

    def given(self, given: Given) -> None:
        self._tell("given", f"gave {given.eid} on {given.link}", given)

    def stated(self, given: Given, state: str) -> None:
        self._tell("stated", f"stated {given.eid} {state} on {given.link}", given, state)

    def contradicted(self, given: Given) -> None:
        self._tell("contradicted", f"contradicted about {given.eid} on {given.link}", given)

    def echoed(self, given: Given, state: str) -> None:
        self._tell("echoed", f"answered {given.eid} {state} on {given.link}", given, state)

    def detached(self, link: WireLink) -> None:
        self._tell("detached", f"detached {link}: {link.condition}", link)

    def declared(self, transaction: Transaction) -> None:
        self._tell("declared", f"declared {transaction}", transaction)

    def promised(self, publish: Publish) -> None:
        self._tell("promised", f"promised {publish.marker} {publish.promised}", publish)

    def discharged(self, transaction: Transaction) -> None:
        self._tell("discharged", f"discharged {transaction}", transaction)

    def answered(self, transaction: Transaction) -> None:
        self._tell("answered", f"answered {transaction}", transaction)

    def flushed(self) -> None:
        for listener in self._listeners["flushed"]:
            listener()
