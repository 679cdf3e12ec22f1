"""Outcomes that a consumer states inside a transaction: noted now, carried out, answered and settled at the discharge.

The table `settle` decides: first about the transactional state, then about the outcome inside of it.
Source: seeds 000 and 002, rows S-A8, T-S1, T-S2; 1.3-H; W-4, W-10.
"""

from __future__ import annotations

from functools import partial

from gateway.amqp.link_owner import DispositionRun
from gateway.links.batches import SettledBatch
from gateway.links.consuming import ConsumingLink, Retire
from gateway.transactions.open_transactions import OpenTransactions, TransactingPeer
from gateway.transactions.transaction import Transaction
from mappings import Decision
from native_backend.journal.settlement import SettlementRequest
from native_backend.nodes.answers import Settled
from native_backend.nodes.words import CommitAnswer
from native_backend.realm import Settlement
from native_backend.state.outcome_detail import OutcomeDetail


class RetiredDeliveries:
    """Deliveries of one link with the same outcome, in a transaction. `native` is the operation of that outcome, as
    far as the realm commits it; empty where there is none for the journal (a copy of a plain subscriber)."""

    def __init__(
        self,
        link: ConsumingLink,
        decision: Decision,
        state: str,
        cause: str,
        peer_settled: bool,
        seqs: list[int],
        eids: list[int],
        detail: OutcomeDetail | None = None,
    ) -> None:
        self.detail = detail
        self.link, self.decision, self.cause, self.peer_settled = link, decision, cause, peer_settled
        self.tables = link.tables  # under which they were stated
        self.state, self.seqs, self.eids = state, seqs, eids
        operation = decision.then["native"]
        self._asks = operation != "none"
        self.native = operation if self._asks and link.subscription.journaled else ""
        self._reserved = bool(self.native) and link.subscription.reserve(eids)

    def settlement(self) -> Settlement | None:
        """For the realm's commit; None where the subscription has none of it any more."""
        return self.link.subscription.retire(self._settling(), self.eids, self.seqs) if self._reserved else None

    def _settling(self) -> SettlementRequest:
        then = self.decision.then
        why = self.cause, self.state, self._reserved, self.detail
        return SettlementRequest(then["native"], then["failed"], then["elsewhere"], *why)

    def conclude(self, answer: CommitAnswer) -> None:
        """The commit was answered."""
        if answer not in ("done", "indeterminate"):
            self.undo()
            return
        if self._asks and not self.native:
            self.link.subscription.settle(self._settling(), self.eids, self.seqs, None)
        stated = self.state, self.cause, self.peer_settled, self.seqs, self.eids
        batch = SettledBatch(self.link, self.decision, *stated, self.tables, self.detail)
        self.link.conclude(batch, Settled(None, answer) if self._asks else None)

    def undo(self, cause: str = "lost") -> None:
        """As if it had not been stated: what the peer has settled, or what its link has left behind, gets the default
        outcome (W-4); all else is the consumer's as before (W-10). `cause`: why the control link went, if it did."""
        link = self.link
        if self.peer_settled:  # whichever link of a connection is the first to go with it
            self._default(cause if cause in ("stopped", "cut-off") else "rolled-back", [*range(len(self.seqs))])
        elif not link.link.alive or link.link.owner is not link:  # its DETACH may not be answered yet
            self._default(cause, [*range(len(self.seqs))])
        else:
            settled = link.link.unstate(self.seqs, self.eids)
            gone = set(settled)
            stays = [eid for at, eid in enumerate(self.eids) if at not in gone]
            if self._reserved and stays:
                link.subscription.unreserve(stays)
            self._default("rolled-back", settled)

    def _default(self, cause: str, places: list[int]) -> None:
        if places:
            seqs, eids = [self.seqs[at] for at in places], [self.eids[at] for at in places]
            self.link.default(cause, seqs, eids, reserved=self._reserved)


def retirer(connection: TransactingPeer) -> Retire:
    """Keeps outcomes for the discharge of a transaction of that connection."""
    return partial(retire, connection.transactions)


def retire(transactions: OpenTransactions, link: ConsumingLink, dispositions: DispositionRun) -> None:
    """Deliveries with a transactional state."""
    transaction = transactions.find(link.link.session, dispositions.transaction)
    if dispositions.repeated:
        link.repeat(dispositions)
        return
    word = _word(transaction, len(dispositions.seqs))
    decision = link.decide(word)
    if transaction is None or decision.then["native"] != "enlist":
        if transaction is not None:
            transaction.mark_rollback_only()  # said inside of it, and not kept: to commit the rest would tear it (W-5)
        link.carry_out(word, "disposition", dispositions)
        return
    state, cause = link.outcome_of(dispositions)
    if state is None:
        transaction.mark_rollback_only()
        return
    if link.decide(state).then["class"] == "fatal":  # no outcome at all
        transaction.mark_rollback_only()
        link.carry_out(state, cause, dispositions)
        return
    for rule, seqs, eids in link.rules(state, dispositions.seqs, dispositions.eids):
        retirements = RetiredDeliveries(
            link, rule, state, cause, dispositions.peer_settled, seqs, eids, dispositions.detail
        )
        transaction.retirements.append(retirements)
        transaction.settlements += len(seqs)
    transaction.touches(link.node_name)


def _word(transaction: Transaction | None, count: int) -> str:
    """The axis `state`; deliveries are given their room in the transaction."""
    if transaction is None:
        return "transactional-unknown"
    return "transactional" if transaction.room(0, count) else "transactional-full"
