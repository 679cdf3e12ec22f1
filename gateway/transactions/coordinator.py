"""A control link: declare and discharge in, their answers back.

The tables `coordinate` (a request has come) and `committed` (the realm has answered a commit) decide; this module
carries it out. A transaction is known on the session of its control link, and ends with it.
Source: seed 002, rows T-C1 to T-D2; semantics 2.W.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.amqp.error_description import describe_error
from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_owner import LinkOwner, TransferRun
from gateway.terminus.termini import agreed_outcomes
from gateway.transactions.coordinator_messages import Request, read_request
from gateway.transactions.open_transactions import TransactingPeer
from gateway.transactions.transaction import Transaction
from mappings import Decision, TableSet
from native_backend.nodes.answers import Committed

CREDIT: Final = 16  # requests that a client may have under way; most have one
_YES_NO = ("no", "yes")
_ENDS: Final = {"done": "committed", "indeterminate": "unknown"}
"""By the realm's answer; after any other one the transaction is refused."""
_COMMIT_TABLE_AXIS = ("unlisted", "agreed")


@dataclass(slots=True, eq=False)
class _Discharge:
    """A commit that waits for its turn, then for the realm."""

    seq: int
    transaction: Transaction
    decision: Decision
    committed: Mapping[str, Decision]  # of the tables under which it came
    read_s: float  # when it came, in monotonic seconds


class CoordinatorLink(LinkOwner):
    """The session's side of an `Incoming` link whose target is a coordinator."""

    def __init__(self, connection: TransactingPeer, link: Incoming) -> None:
        self.connection = connection
        self.link = link
        gateway = connection.gateway
        self._gateway = gateway
        outcomes = agreed_outcomes(link.attach)
        self._rejected = _COMMIT_TABLE_AXIS[outcomes is None or "rejected" in outcomes]
        self.use(gateway.tables)
        self._transactions: set[Transaction] = set()  # that it declared, and that are not discharged
        self._commits: deque[_Discharge] = deque()  # in order; the first one is under way
        self._seq = 0
        link.grant(CREDIT)

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next request on."""
        self._coordinate = tables["coordinate"].slice(rejected=self._rejected).decisions
        self._committed = tables["committed"].slice(rejected=self._rejected).decisions

    @property
    def committing(self) -> list[Transaction]:
        """Discharged, and not answered yet."""
        return [discharge.transaction for discharge in self._commits]

    # -- requests

    def on_transfers(self, transfers: TransferRun) -> None:
        first = self._seq + 1
        self._seq += len(transfers.messages)
        self.link.number(first, len(transfers.messages))
        for seq, message, presettled in zip(
            range(first, self._seq + 1), transfers.messages, transfers.presettled, strict=True
        ):
            if self.link.alive:
                self._request(seq, read_request(message), int(presettled))
        self.connection.touch()

    def on_withdrawn(self, count: int) -> None:
        """As of a link to a node: no answer gives their credit back."""
        self.link.grant(count)

    def _request(self, seq: int, request: Request, presettled: int) -> None:
        transaction = self._named(request)
        word = self._word(request, transaction)
        decision: Decision = self._coordinate[request.kind][word][_YES_NO[presettled]]
        then = decision.then
        words = self._full if word == "full" else ""
        detail = describe_error(request.kind, decision, words=words) if then["condition"] else ""
        if then["condition"]:
            self._gateway.outcomes.counters.error(decision)
        if then["native"] != "commit" or transaction is None:
            self._gateway.outcomes.decisions.counted(request.kind, decision, None, self.connection)
        if then["native"] == "begin":
            self.link.declare(seq, self._begin().id)
            self.link.grant(1)
        elif then["native"] == "commit" and transaction is not None:
            self._discharged(transaction)
            now_s = self._gateway.clock.monotonic_s()
            self._commits.append(_Discharge(seq, transaction, decision, self._committed, now_s))
            if len(self._commits) == 1:
                self._commit()
        else:
            self._answer(seq, then, detail)
            if then["native"] == "rollback" and transaction is not None:
                ended = "rolled-back" if transaction.state == "open" else transaction.state
                self._gateway.transactions_ended[ended] += 1
                self._discharged(transaction)
                transaction.roll_back()
            if then["class"] == "fatal":
                self.connection.close_link(self.link, then["condition"], detail)

    def _named(self, request: Request) -> Transaction | None:
        return self.connection.transactions.find(self.link.session, request.transaction)

    def _word(self, request: Request, transaction: Transaction | None) -> str:
        """The axis `transaction`."""
        if request.kind == "unreadable":
            return "none"
        if request.kind == "declare":
            if request.distributed:
                return "distributed"
            if self._full:
                return "full"
            return "open" if self.connection.transactions.any_of(self.link.session) else "none"
        if transaction is None:
            return "unknown"
        if transaction.state == "open" and self.connection.engine.unfinished(self.link.session, transaction.id):
            transaction.mark_rollback_only("torn")
        return transaction.state

    @property
    def _full(self) -> str:
        """Why none may be declared; empty: one may."""
        return self._gateway.shares.transactions.refusal(self.connection.holder)

    def _begin(self) -> Transaction:
        holder = self.connection.holder
        transaction = Transaction(self._gateway, self._gateway.next_transaction_id(), holder)
        self._gateway.shares.transactions.take(holder)
        self._transactions.add(transaction)
        self.connection.transactions.add(self.link.session, transaction)
        return transaction

    def _discharged(self, transaction: Transaction) -> None:
        """Its id is not known any more."""
        self._gateway.shares.transactions.give_back(self.connection.holder)
        self.connection.transactions.remove(self.link.session, transaction)
        self._transactions.discard(transaction)

    def _answer(self, seq: int, then: Mapping[str, Any], detail: str) -> None:
        """Told before what the transaction held is settled (W-9); a link that has gone meanwhile hears nothing, and one
        that is about to close gets no more credit."""
        if not self.link.alive:
            return
        self.link.settle([seq], then["outcome"], then["condition"], detail, then["settle"])
        if then["class"] != "fatal":
            self.link.grant(1)
        self.connection.touch()
        self.connection.flush()

    # -- commits

    def _commit(self) -> None:
        transaction = self._commits[0].transaction
        transaction.when_ready(lambda: transaction.commit(self._done))

    def _done(self, answer: Committed) -> None:
        discharge = self._commits.popleft()
        self._gateway.commit_seconds.add(self._gateway.clock.monotonic_s() - discharge.read_s)
        decision: Decision = discharge.committed[answer.answer]
        then = decision.then
        detail = (
            describe_error(answer.node or "commit", decision, answer.answer, answer.native) if then["condition"] else ""
        )
        if then["condition"]:
            self._gateway.outcomes.counters.error(decision, answer.answer, answer.native)
        self._gateway.transactions_ended[_ENDS.get(answer.answer, "refused")] += 1
        answered = {"answer": answer.answer, "native": answer.native, "node": answer.node}
        self._gateway.outcomes.decisions.counted("commit", discharge.decision, decision, self.connection, **answered)
        self._answer(discharge.seq, then, detail)
        discharge.transaction.conclude(answer.answer, answer.offsets)
        if then["class"] == "fatal":
            self.connection.close_link(self.link, then["condition"], detail)
        if self._commits:
            self._commit()

    # -- the end

    def ended(self, cause: str) -> None:
        """What was declared here and not discharged is rolled back (W-15). A commit under way goes on, unheard."""
        for transaction in list(self._transactions):
            self._gateway.transactions_ended["abandoned"] += 1
            self._discharged(transaction)
            transaction.roll_back(cause)


def offered_capabilities(tables: TableSet) -> list[str]:
    """What the table `capability` lets a coordinator offer."""
    table = tables["capability"]
    words = table.axes["capability"]
    return [f"amqp:{word}" for word in words if table.decide(capability=word).then["offered"]]
