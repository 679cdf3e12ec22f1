"""A control link: declare and discharge in, their answers back.

What is done is said by the tables `coordinate` (a request is here) and `committed` (the realm has answered a commit);
here it is only carried out. A transaction is known on the session of its control link, and ends with it.
Source: seed 002, rows T-C1 to T-D2; semantics 2.W. May import: `gateway`, `mappings`, `native_backend`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.complaint import complaint
from gateway.engine_incoming import Incoming
from gateway.facts import Transfers
from gateway.requests import Request, read_request
from gateway.termini import agreed_outcomes
from gateway.transaction import Transaction
from mappings import Slice, TableSet
from native_backend.answers import Committed

if TYPE_CHECKING:
    from gateway.connection import Connection

CREDIT: Final = 16  # requests that a client may have under way; most have one
_YES_NO = ("no", "yes")
_COMMIT_TABLE_AXIS = ("unlisted", "agreed")


@dataclass(slots=True, eq=False)
class _Discharge:
    """A commit that waits for its turn, then for the realm."""

    seq: int
    transaction: Transaction
    committed: Slice  # of the tables under which it came


class CoordinatorLink:
    """The session's side of an `Incoming` link whose target is a coordinator."""

    def __init__(self, connection: Connection, link: Incoming) -> None:
        self.connection = connection
        self.link = link
        house = connection.gateway
        self._house = house
        outcomes = agreed_outcomes(link.attach)
        self._rejected = _COMMIT_TABLE_AXIS[outcomes is None or "rejected" in outcomes]
        self.use(house.tables)
        self._transactions: set[Transaction] = set()  # that it declared, and that are not discharged
        self._commits: deque[_Discharge] = deque()  # in order; the first one is under way
        self._seq = 0
        link.grant(CREDIT)

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next request on."""
        self._coordinate = tables["coordinate"].slice(rejected=self._rejected)
        self._committed = tables["committed"].slice(rejected=self._rejected)

    # -- requests

    def on_transfers(self, transfers: Transfers) -> None:
        if self.link.credit < 0:
            self.connection.fault("over-credit", f"{-self.link.credit} more than granted", self.link)
            return
        first = self._seq + 1
        self._seq += len(transfers.messages)
        self.link.number(first, len(transfers.messages))
        for seq, message, presettled in zip(
            range(first, self._seq + 1), transfers.messages, transfers.presettled, strict=True
        ):
            if self.link.alive:
                self._request(seq, read_request(message), int(presettled))
        self.connection.touch()

    def on_partial(self, presettled: int) -> None:
        """Not asked for: a request in several frames is put together."""

    def _request(self, seq: int, request: Request, presettled: int) -> None:
        transaction = self._named(request)
        word = self._word(request, transaction)
        decision = self._coordinate.decide(request=request.kind, transaction=word, presettled=_YES_NO[presettled])
        then = decision.then
        detail = complaint(request.kind, decision) if then["condition"] else ""
        if then["native"] == "begin":
            self.link.declare(seq, self._begin().id)
            self.link.grant(1)
        elif then["native"] == "commit" and transaction is not None:
            self._discharged(transaction)
            self._commits.append(_Discharge(seq, transaction, self._committed))
            if len(self._commits) == 1:
                self._commit()
        else:
            self._answer(seq, then["outcome"], then["condition"], detail, then["settle"])
            if then["native"] == "rollback" and transaction is not None:
                self._discharged(transaction)
                transaction.roll_back()
            if then["class"] == "fatal":
                self.connection.close_link(self.link, then["condition"], detail)

    def _named(self, request: Request) -> Transaction | None:
        return self.connection.transaction(self.link, request.transaction)

    def _word(self, request: Request, transaction: Transaction | None) -> str:
        """The axis `transaction`."""
        if request.kind == "unreadable":
            return "none"
        if request.kind == "declare":
            if request.distributed:
                return "distributed"
            if self.link.session in self.connection.transactions:
                return "open"
            return "full" if self._house.transactions >= self._house.limits.transactions else "none"
        if transaction is None:
            return "unknown"
        if transaction.state == "open" and self.connection.unfinished(self.link, transaction.id):
            transaction.doom("torn")
        return transaction.state

    def _begin(self) -> Transaction:
        transaction = Transaction(self._house, self._house.next_transaction_id())
        self._house.transactions += 1
        self._transactions.add(transaction)
        self.connection.transactions[self.link.session] = transaction
        return transaction

    def _discharged(self, transaction: Transaction) -> None:
        """Its id is not known any more, and the session is free for the next."""
        self._house.transactions -= 1
        del self.connection.transactions[self.link.session]
        self._transactions.discard(transaction)

    def _answer(self, seq: int, outcome: str, condition: str | None, detail: str, settle: bool) -> None:
        """Told before what the transaction held is settled (W-9); a link that has gone meanwhile hears nothing."""
        if not self.link.alive:
            return
        self.link.settle([seq], outcome, condition, detail, settle)
        self.link.grant(1)
        self.connection.touch()
        self.connection.engine.flush()

    # -- commits

    def _commit(self) -> None:
        transaction = self._commits[0].transaction
        transaction.when_ready(lambda: transaction.commit(self._done))

    def _done(self, answer: Committed) -> None:
        discharge = self._commits.popleft()
        decision = discharge.committed.decide(answer=answer.answer)
        then = decision.then
        detail = complaint("commit", decision, answer.answer, answer.native) if then["condition"] else ""
        self._answer(discharge.seq, then["outcome"], then["condition"], detail, then["settle"])
        discharge.transaction.conclude(answer.answer, answer.offsets)
        if then["class"] == "fatal":
            self.connection.close_link(self.link, then["condition"], detail)
        if self._commits:
            self._commit()

    # -- the end

    def ended(self, cause: str) -> None:
        """What was declared here and not discharged is rolled back (W-15). A commit under way goes on, unheard."""
        for transaction in list(self._transactions):
            self._discharged(transaction)
            transaction.roll_back(cause)


def offered_capabilities(tables: TableSet) -> list[str]:
    """What the table `capability` lets a coordinator offer."""
    table = tables["capability"]
    words = table.axes["capability"]
    return [f"amqp:{word}" for word in words if table.decide(capability=word).then["offered"]]
