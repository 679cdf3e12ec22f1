"""Where the messages go: one transaction for each batch, which the ledger is part of. Waits for credit, so a
destination that is busy slows the drain down. Seconds. Errors: `ClientProblem`, `Rejected`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.connection import Attached, Peer, sender
from gateway.cli.drain.ledger import Ledger, Record
from gateway.cli.drain.moved_message import MovedMessage
from gateway.cli.drain.transaction import Rejected, Transactions
from transformers.message.annotation_keys import fault_of

TOO_LARGE: Final = "amqp:link:message-size-exceeded"


class Destination:
    """Links to the nodes and to the ledger."""

    def __init__(self, peer: Peer, nodes: Sequence[str], ledger: str, timeout_s: float) -> None:
        self._links = [sender(peer, node) for node in nodes]
        self._ledger_link = _ledger_link(peer, ledger)
        self.ledger = Ledger(peer, ledger, timeout_s)
        self._transactions = Transactions(peer, timeout_s)

    def store(self, messages: Sequence[MovedMessage], record: Record) -> None:
        """All messages in all nodes, and the record in place of the one before. Raises Rejected: nothing is stored."""
        for number, message in enumerate(messages):
            self._refuse_at_once(number, message)
        posts = [(link, message.octets) for message in messages for link in self._links]
        try:
            self._transactions.run([*posts, (self._ledger_link, record.message())], self.ledger.held)
        except Rejected as error:
            if error.index == len(posts):
                raise ClientProblem(f"{self._ledger_link.node}: the record of the drain is refused: {error}") from None
            self.ledger.renew()
            error.index = error.index // len(self._links) if error.index >= 0 else -1
            raise
        if self.ledger.hold() is None:
            raise ClientProblem(f"{self._ledger_link.node}: another client took the record of this drain")

    def _refuse_at_once(self, number: int, message: MovedMessage) -> None:
        """What would end the link, and the drain with it."""
        if (fault := fault_of(message.octets)) is not None:
            raise Rejected(number, *fault)
        for link in self._links:
            if 0 < (most := link.link.remote_max_message_size) < len(message.octets):
                text = f"{link.node} takes messages of {most} octets, this one has {len(message.octets)}"
                raise Rejected(number, TOO_LARGE, text)


def _ledger_link(peer: Peer, ledger: str) -> Attached:
    try:
        return sender(peer, ledger)
    except ClientProblem as error:
        if not error.refused:
            raise
        make = f"the drain keeps its ledger there: realmgate node create {ledger}, or name another queue with --ledger"
        raise ClientProblem(f"{error}; {make}", refused=True) from None
