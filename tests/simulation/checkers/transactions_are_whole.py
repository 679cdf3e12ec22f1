"""Transactions, against the disk: whole or not there at all, and as their peers were told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given, Publish, Transaction

if TYPE_CHECKING:
    from tests.simulation.world import World


class TransactionsAreWhole(Checker):
    """Messages and outcomes of a transaction are on the disk when its commit is told `accepted`; none of them ever,
    where it was rolled back, refused or never discharged; where nothing was told, all or none. None twice. A consumer
    is given an event of one only when all of it is there, and no one is told of its parts before the discharge is
    answered. A commit is answered when the faults are over."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._of: dict[str, Transaction] = {}  # by marker
        self._entries: dict[Given, list[int]] = {}  # of its event: how many when it was given, and when it was again
        self._last: dict[tuple[int, str, int], Given] = {}
        self._early: list[tuple[Transaction, str]] = []

    def published(self, publish: Publish) -> None:
        if publish.transaction is not None:
            self._of[publish.marker] = publish.transaction

    def given(self, given: Given) -> None:
        key = (given.store, given.link.durable, given.eid)
        self._entries[given] = [len(self.ledger.entries(*key))]
        if key in self._last:
            self._entries[self._last[key]] += self._entries[given]
        self._last[key] = given
        event = self.ledger.event(given.link.node, given.eid)
        marker = self.ledger.marker(event)
        transaction = self._of.get(marker)
        if transaction is not None:
            self.require(transaction.done is not False, f"{marker} of {transaction} was given on {given.link}")
            missing = self._missing(transaction)
            self.require(not missing, f"{marker} of {transaction} was given on {given.link} without {missing}")

    def answered(self, transaction: Transaction) -> None:
        if transaction.done:
            missing = self._missing(transaction)
            self.require(not missing, f"{transaction} without {missing}")

    def told(self, publish: Publish, state: str) -> None:
        if publish.transaction is not None and not _is_refused(publish):
            self._is_answered(publish.transaction, f"{publish.marker} was told {state}")

    def echoed(self, given: Given, state: str) -> None:
        if given.transaction is not None:
            self._is_answered(given.transaction, f"event {given.eid} was answered {state}")

    def _is_answered(self, transaction: Transaction, what: str) -> None:
        if not transaction.answer and not transaction.control.gone:
            self._early.append((transaction, what))

    def flushed(self) -> None:
        """Without an answer to its discharge it ends with its control link only, which may be the next frame."""
        early, self._early = self._early, []
        for transaction, what in early:
            self.require(transaction.control.gone, f"{what} before the discharge of {transaction}")

    def at_quiet(self) -> None:
        for transaction in self.world.transactions:
            waits = transaction.asked and not transaction.answer and not transaction.control.gone
            self.require(not waits, f"nothing was told of {transaction}")

    def at_end(self) -> None:
        nodes = {publish.link.node for publish in self._posted()}
        copies = {node: Counter(self.ledger.markers(node)) for node in nodes}
        for publish in self._posted():
            count = copies[publish.link.node][publish.marker]
            self.require(count < 2, f"{publish.marker} of {publish.transaction} is stored {count} times")
        for transaction in self.world.transactions:
            parts = self._parts(transaction)
            there = [name for name, is_there in parts if is_there]
            if transaction.done is None:
                self.require(len(there) in (0, len(parts)), f"{transaction} is torn: {parts}")
            elif transaction.done:
                self.require(len(there) == len(parts), f"{transaction} has lost some: {parts}")
            else:
                self.require(not there, f"{transaction} is seen: {there}")

    def _posted(self) -> list[Publish]:
        return [publish for transaction in self.world.transactions for publish in transaction.posted]

    def _missing(self, transaction: Transaction) -> list[str]:
        return [name for name, is_there in self._parts(transaction) if not is_there]

    def _parts(self, transaction: Transaction) -> list[tuple[str, bool]]:
        """What it consists of, and whether that is on the disk; not what was refused inside of it, and no outcome of
        what no one keeps an account of."""
        posted = [post for post in transaction.posted if not _is_refused(post)]
        parts = [(post.marker, self.ledger.holds(post.link.node, post.marker)) for post in posted]
        retired = [given for given in transaction.retired if given.transaction is transaction and given.link.durable]
        return parts + [
            (f"{given.inside} of event {given.eid} on {given.link}", self._is_journaled(given)) for given in retired
        ]

    def _is_journaled(self, given: Given) -> bool:
        """The peer's own outcome of this delivery: until its event is given again."""
        entries = self.ledger.entries(given.store, given.link.durable, given.eid)[
            slice(*[*self._entries[given], None][:2])
        ]
        return any((entry.run, entry.cause) == (given.link.run, "disposition") for entry in entries)


def _is_refused(publish: Publish) -> bool:
    """Its transaction never had it."""
    outcome = publish.promised or (publish.told[0] if publish.told else "")
    return outcome.startswith("rejected")
