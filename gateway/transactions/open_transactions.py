"""The transactions of one connection that are not discharged: by session and txn-id.

A session may have several where the table `capability` offers it. What names one of another session finds nothing
(semantics 2.W-20). Monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from gateway.amqp.engine import Engine
from gateway.links.peer import Peer
from gateway.transactions.transaction import Transaction


class OpenTransactions:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, bytes], Transaction] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, session: int, transaction: Transaction) -> None:
        self._open[session, transaction.id] = transaction

    def remove(self, session: int, transaction: Transaction) -> None:
        del self._open[session, transaction.id]

    def find(self, session: int, identity: bytes | None) -> Transaction | None:
        return None if identity is None else self._open.get((session, identity))

    def all(self) -> list[Transaction]:
        """In the order in which they were declared."""
        return [*self._open.values()]

    @property
    def deliveries(self) -> int:
        """That they keep for their ends."""
        return sum(transaction.deliveries for transaction in self._open.values()) if self._open else 0

    def any_of(self, session: int) -> bool:
        """Whether that session has one."""
        return any(its == session for its, _ in self._open)

    def mark_rollback_only(self, session: int, identities: Iterable[bytes | None], state: str = "doomed") -> None:
        """Those of them that are open can only be rolled back."""
        for identity in identities:
            transaction = self.find(session, identity)
            if transaction is not None:
                transaction.mark_rollback_only(state)

    def expire(self, began_before_s: float) -> None:
        """Those that took too long can only be rolled back."""
        for transaction in self._open.values():
            if transaction.began_s <= began_before_s:
                transaction.mark_rollback_only("expired")


class TransactingPeer(Peer, Protocol):
    """A peer's connection, as its transactions use it."""

    @property
    def transactions(self) -> OpenTransactions: ...

    @property
    def engine(self) -> Engine: ...

    def flush(self) -> None:
        """What is to be sent so far goes before what comes."""
