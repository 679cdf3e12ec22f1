"""Clients of another library that publish, consume and transact, and note what they do in ledgers. Each is a connection
of its own. The gateway may go at any time: `GONE` is what they end with then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from proton import Message, ProtonException, symbol
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container, DurableSubscription, Selector
from proton.utils import BlockingConnection

from tests.kit.patience import HANG_S
from tests.kit.wire.client_ledger import ClientLedger
from tests.kit.wire.noted import send, settle_next

GONE: Final = (ProtonException, OSError)
_LEFT_S: Final = 0.3
"""So long nothing comes where nothing is left, nearly always."""
_DELAY: Final = symbol("x-opt-delivery-delay")


@dataclass(frozen=True, slots=True)
class Client:
    """`name` is that of its ledger."""

    address: str
    ledgers: Path
    name: str
    container: str

    def publish(self, node: str, names: Sequence[str], chance: Random) -> None:
        """Each as it is told; some with a time to live, a priority, a delay."""
        with ClientLedger(self.ledgers, self.name, self.container) as ledger:
            connection = self._connected()
            sender = connection.create_sender(node)
            for name in names:
                send(sender, ledger, node, _message(name, chance))
            connection.close()

    def consume(self, node: str, states: Sequence[str], durable: str = "", selector: str = "") -> None:
        """Say these, one after another, while messages come; at last what is still on its way is accepted.
        `durable`: the name of its subscription."""
        options: list[Any] = [DurableSubscription()] if durable else []
        options += [Selector(selector)] if selector else []
        with ClientLedger(self.ledgers, self.name, self.container) as ledger:
            connection = self._connected()
            receiver = connection.create_receiver(node, name=durable or None, credit=1, options=options or None)
            for state in states:
                if not settle_next(receiver, ledger, state, _LEFT_S):
                    break
            receiver.link.drain(0)
            connection.wait(lambda: not receiver.link.draining(), HANG_S)
            while receiver.fetcher is not None and receiver.fetcher.has_message:
                settle_next(receiver, ledger, "accepted", _LEFT_S)
            connection.close()

    def transact(self, source: str, count: int, target: str, names: Sequence[str], *, commit: bool) -> None:
        """Accept so many messages and send others, all or none. It notes nothing of what it settles."""
        handler = _Transaction(self.address, source, count, target, names, commit=commit)
        container = Container(handler)
        container.container_id = self.container
        container.run()

    def _connected(self) -> BlockingConnection:
        return BlockingConnection(f"amqp://{self.address}", timeout=HANG_S, container_id=self.container)


def _message(name: str, chance: Random) -> Message:
    message = Message(id=name, body=f"text of {name}", durable=chance.random() < 0.8, priority=chance.randrange(10),
                      properties={"colour": chance.choice(["red", "blue"])})  # fmt: skip
    if chance.random() < 0.2:
        message.ttl = chance.choice([0.2, 5.0])
    if chance.random() < 0.15:
        message.annotations = {_DELAY: chance.choice([100, 1_500])}
    return message


class _Transaction(MessagingHandler, TransactionHandler):
    def __init__(
        self, address: str, source: str, count: int, target: str, names: Sequence[str], *, commit: bool
    ) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self._address, self._source, self._target = address, source, target
        self._left, self._names, self._commit = count, names, commit
        self._transaction: Any = None

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(f"amqp://{self._address}", reconnect=False)
        self._receiver = event.container.create_receiver(connection, self._source)
        self._sender = event.container.create_sender(connection, self._target)
        event.container.declare_transaction(connection, handler=self)

    def on_transaction_declared(self, event: Any) -> None:
        self._transaction = event.transaction
        for name in self._names:
            self._transaction.send(self._sender, Message(id=name, body=f"text of {name}"))
        self._receiver.flow(self._left)
        event.reactor.schedule(_LEFT_S, self)

    def on_message(self, event: Any) -> None:
        if self._left:
            self._transaction.accept(event.delivery)
            self._left -= 1

    def on_timer_task(self, event: Any) -> None:
        self._left = 0
        if self._commit:
            self._transaction.commit()
        else:
            self._transaction.abort()

    def on_transaction_committed(self, event: Any) -> None:
        self._end()

    def on_transaction_aborted(self, event: Any) -> None:
        self._end()

    def on_transaction_commit_failed(self, event: Any) -> None:
        self._end()

    def on_transaction_declare_failed(self, event: Any) -> None:
        self._end()

    def on_transport_error(self, event: Any) -> None:
        """The gateway is gone."""

    def _end(self) -> None:
        self._receiver.connection.close()
