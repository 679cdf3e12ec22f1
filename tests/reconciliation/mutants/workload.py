"""What clients of another library do with a gateway, and note in ledgers: every way to end a message, and refusals."""

from __future__ import annotations

from pathlib import Path

from proton import Message
from proton.utils import BlockingConnection

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire.client_ledger import ClientLedger
from tests.kit.wire.noted import send, settle_next

NAMES = [f"m-{number}" for number in range(8)]
FIRST = ("accepted", "released", "rejected", "modified", "accepted")
"""What the first consumer says; the second one accepts all that it gets."""
LEFT_S = 1.0
"""So long nothing comes where nothing is left."""


def create(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "dead")
    gateway.command("node", "create", "orders", "--dead-letter", "dead")
    gateway.command("node", "create", "small", "--capacity-events", "2", "--honour-capacity", "true")


def work(gateway: GatewayProcess, ledgers: Path) -> None:
    """One client after another."""
    publish(gateway.address, ledgers, "shop", "orders", NAMES)
    publish(gateway.address, ledgers, "small-shop", "small", [f"s-{number}" for number in range(4)])
    consume(gateway.address, ledgers, "desk", "orders", FIRST)
    for client, node in (("second-desk", "orders"), ("grave", "dead"), ("small-desk", "small")):
        consume(gateway.address, ledgers, client, node, ())


def publish(address: str, ledgers: Path, client: str, node: str, names: list[str]) -> None:
    with ClientLedger(ledgers, client, client) as ledger:
        connection = BlockingConnection(f"amqp://{address}", timeout=HANG_S, container_id=client)
        sender = connection.create_sender(node)
        for name in names:
            send(sender, ledger, node, Message(id=name, body=f"text of {name}"))
        connection.close()


def consume(address: str, ledgers: Path, client: str, node: str, states: tuple[str, ...]) -> None:
    """Say these, then accept whatever there is; without any, all."""
    with ClientLedger(ledgers, client, client) as ledger:
        connection = BlockingConnection(f"amqp://{address}", timeout=HANG_S, container_id=client)
        receiver = connection.create_receiver(node, credit=1)
        for state in states:
            settle_next(receiver, ledger, state, HANG_S)
        while not states and settle_next(receiver, ledger, "accepted", LEFT_S):
            pass
        connection.close()
