"""Outcomes that a consumer states inside a transaction: noted now, carried out, told and settled at the discharge.

What is done is said by the table `settle`: once about the transactional state, then about the outcome inside of it.
Source: seeds 000 and 002, rows S-A8, T-S1, T-S2; 1.3-H; W-4, W-10. May import: `gateway`, `mappings`, `native_backend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.facts import Dispositions
from gateway.transaction import Transaction
from mappings import Decision
from native_backend.answers import CommitAnswer, Settled
from native_backend.realm import Settlement
from native_backend.settlement import Settling

if TYPE_CHECKING:
    from gateway.consuming import ConsumingLink


class Enlisted:
    """Deliveries of one link with the same outcome, in a transaction. `native` is the operation of that outcome, or
    empty where there is none (a copy of a plain subscriber)."""

    def __init__(
        self,
        link: ConsumingLink,
        decision: Decision,
        state: str,
        cause: str,
        peer_settled: bool,
        seqs: list[int],
        eids: list[int],
    ) -> None:
        self.link, self.decision, self.cause, self.peer_settled = link, decision, cause, peer_settled
        self.tables = link.tables  # under which they were stated
        self.state, self.seqs, self.eids = state, seqs, eids
        native = decision.then["native"]
        self.native = "" if native == "none" else native
        self._held = bool(self.native) and link.subscription.hold(eids)

    def settlement(self) -> Settlement | None:
        """For the realm's commit; None where the subscription has none of it any more."""
        then = self.decision.then
        if not self._held:
            return None
        settling = Settling(then["native"], then["failed"], then["elsewhere"], self.cause, self.state, held=True)
        return self.link.subscription.enlist(settling, self.eids, self.seqs)

    def conclude(self, answer: CommitAnswer) -> None:
        """The commit was answered."""
        if answer not in ("done", "indeterminate"):
            self.undo()
            return
        told = Settled(None, answer) if self.native else None
        self.link.conclude(self.decision, self.cause, self.peer_settled, self.seqs, self.eids, told, self.tables)

    def undo(self, cause: str = "lost") -> None:
        """As if it had not been stated: what the peer has settled, or what its link has left behind, gets the default
        outcome (W-4); all else is the consumer's as before (W-10). `cause`: why the control link went, if it did."""
        link = self.link
        if not link.link.alive:
            self._default(cause, [*range(len(self.seqs))])
        elif self.peer_settled:  # whichever link of a connection is the first to go with it
            self._default(cause if cause in ("stopped", "cut-off") else "rolled-back", [*range(len(self.seqs))])
        else:
            settled = link.link.unstate(self.seqs, self.eids)
            gone = set(settled)
            stays = [eid for at, eid in enumerate(self.eids) if at not in gone]
            if self._held and stays:
                link.subscription.unhold(stays)
            self._default("rolled-back", settled)

    def _default(self, cause: str, places: list[int]) -> None:
        if places:
            seqs, eids = [self.seqs[at] for at in places], [self.eids[at] for at in places]
            self.link.default(cause, seqs, eids, held=self._held)


def enlist(link: ConsumingLink, dispositions: Dispositions) -> None:
    """Deliveries with a transactional state."""
    transaction = link.connection.transaction(link.link, dispositions.transaction)
    if dispositions.repeated:
        link.repeat(dispositions)
        return
    word = _word(transaction, len(dispositions.seqs))
    decision = link.decide(word)
    if transaction is None or decision.then["native"] != "enlist":
        if transaction is not None:
            transaction.doom()  # said inside of it, and not kept: to commit the rest would tear it (W-5)
        link.carry_out(word, "disposition", dispositions)
        return
    state, cause = link.outcome_of(dispositions)
    if state is None:
        transaction.doom()
        return
    if link.decide(state).then["class"] == "fatal":  # no outcome at all
        transaction.doom()
        link.carry_out(state, cause, dispositions)
        return
    for rule, seqs, eids in link.rules(state, dispositions.seqs, dispositions.eids):
        enlisted = Enlisted(link, rule, state, cause, dispositions.peer_settled, seqs, eids)
        transaction.enlisted.append(enlisted)


def _word(transaction: Transaction | None, count: int) -> str:
    """The axis `state`; deliveries are given their room in the transaction."""
    if transaction is None:
        return "transactional-unknown"
    return "transactional" if transaction.room(0, count) else "transactional-full"
