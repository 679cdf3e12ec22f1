"""Bugs to plant in what carries transactions; see `bugs.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.transactions.coordinator import CoordinatorLink
from gateway.transactions.retirement import RetiredDeliveries
from gateway.transactions.transaction import Transaction
from native_backend.nodes.answers import Committed
from native_backend.publish.commit import Commit
from native_backend.realm import Posting
from tests.simulation.planted.bugs import Bug, Original

BUGS: dict[str, Bug] = {}
WORDS: dict[str, str] = {}  # of the violation that each leads to: a pattern


def _bug(place: Any, attribute: str, sentence: str, words: str) -> Callable[[Callable[[Original], Original]], None]:
    def plant(make: Callable[[Original], Original]) -> None:
        name = make.__name__.replace("_", " ")
        BUGS[name], WORDS[name] = Bug(name, sentence, place, attribute, make), words

    return plant


class _Deaf:
    """No one listens to the realm's answer."""

    def answered(self, _: object) -> None:
        """Nothing."""


def _publish(transaction: Any, postings: list[Any]) -> None:
    """Outside of any unit that the peer hears of."""
    if postings:
        parts = [Posting(posted.part.node, posted.part.keys, posted.part.values) for posted in postings]
        transaction._gateway.realm.commit([], parts, _Deaf())


# -- the control link


@_bug(
    CoordinatorLink,
    "_commit",
    "The client hears `accepted` when the unit is handed over, not when it is stored.",
    "without",
)
def commit_told_before_it_is_stored(original: Original) -> Original:
    def commit(self: Any) -> None:
        discharge = self._commits[0]
        self._answer(discharge.seq, {"outcome": "accepted", "condition": None, "settle": True, "class": "none"}, "")
        original(self)

    return commit


@_bug(CoordinatorLink, "ended", "What was not discharged when its control link ended is stored.", "was given|is seen")
def commit_at_the_end_of_the_link(original: Original) -> Original:
    def ended(self: Any, cause: str) -> None:
        for transaction in self._transactions:
            _publish(transaction, transaction.postings)
        original(self, cause)

    return ended


@_bug(CoordinatorLink, "_done", "What a commit settled is told before its discharge is.", "before the discharge")
def parts_told_before_the_discharge(original: Original) -> Original:
    def done(self: Any, answer: Committed) -> None:
        transaction = self._commits[0].transaction
        for retirements in transaction.retirements:
            retirements.conclude(answer.answer)
        transaction.retirements = []
        self.connection.engine.flush()
        self.connection.gateway.touched[self.connection] = None
        original(self, answer)

    return done


# -- the transaction


@_bug(Transaction, "roll_back", "What is rolled back is stored all the same.", "was given|is seen")
def rolled_back_and_stored(original: Original) -> Original:
    def roll_back(self: Any, *arguments: Any) -> None:
        _publish(self, self.postings)
        original(self, *arguments)

    return roll_back


@_bug(
    Transaction,
    "commit",
    "All messages but those of the last run are published ahead of the unit.",
    "without|torn|seen|given",
)
def published_ahead_of_the_unit(original: Original) -> Original:
    def commit(self: Any, concluded: Any) -> None:
        ahead, self.postings = self.postings[:-1], self.postings[-1:]
        for posted in ahead:
            self._gateway.realm.publish(posted.part.node, posted.part.keys, posted.part.values, _Deaf())
        original(self, concluded)

    return commit


@_bug(Transaction, "commit", "Outcomes are left out of the unit.", "without")
def outcomes_left_out(original: Original) -> Original:
    def commit(self: Any, concluded: Any) -> None:
        retirements, self.retirements = self.retirements, []
        original(self, concluded)
        self.retirements = retirements

    return commit


@_bug(
    Transaction,
    "mark_rollback_only",
    "What cannot be kept does not keep a transaction from being committed.",
    "without",
)
def doom_passed_over(_: Original) -> Original:
    return lambda self, *arguments: None


@_bug(RetiredDeliveries, "undo", "What was stated in a transaction that is rolled back counts.", "is seen")
def undone_and_done(original: Original) -> Original:
    def undo(self: Any, cause: str = "lost") -> None:
        if not self.link.link.alive or not self._reserved:
            original(self, cause)
        else:
            self.link._settle_by(
                self.decision, self.state, self.cause, self.peer_settled, self.seqs, self.eids, reserved=True
            )

    return undo


# -- the realm's unit


@_bug(Commit, "begin", "A unit is answered when it begins.", "without")
def unit_answered_at_once(original: Original) -> Original:
    def begin(self: Any) -> None:
        owner, self._owner = self._owner, _Deaf()
        original(self)
        count = sum(len(posting.keys) for posting in self._postings)
        self._context.answer(Committed(owner, "done", [-1] * count, ""))

    return begin


@_bug(Commit, "_prepare", "Of several settlements the last one is not in the unit.", "without")
def last_settlement_forgotten(original: Original) -> Original:
    def prepare(self: Any) -> None:
        if len(self._waiting) > 1:
            self._waiting = self._waiting[:-1]
        original(self)

    return prepare
