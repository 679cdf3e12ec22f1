"""What clients of another library do with a gateway, and note in ledgers: every way to end a message, and refusals."""

from __future__ import annotations

from pathlib import Path

from proton import Delivery, Message, Timeout
from proton.utils import BlockingConnection, BlockingReceiver, SendException

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire.client_ledger import ClientLedger
from tests.kit.wire.ledger import tag_of

NAMES = [f"m-{number}" for number in range(8)]
FIRST = ("accepted", "released", "rejected", "modified", "accepted")
"""What the first consumer says; the second one accepts all that it gets."""
LEFT_S = 1.0
"""So long nothing comes where nothing is left."""
_STATES = {
    "accepted": Delivery.ACCEPTED,
    "released": Delivery.RELEASED,
    "rejected": Delivery.REJECTED,
    "modified": Delivery.MODIFIED,
}
_OUTCOMES = {int(state): name for name, state in _STATES.items()}


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
            text = f"text of {name}"
            ledger.sent(node, name, text.encode())
            try:
                delivery = sender.send(Message(id=name, body=text))
                state = delivery.remote_state
            except SendException as error:
                state = error.state
            ledger.told(name, _OUTCOMES[int(state)])
        connection.close()


def consume(address: str, ledgers: Path, client: str, node: str, states: tuple[str, ...]) -> None:
    """Say these, then accept whatever there is; without any, all."""
    with ClientLedger(ledgers, client, client) as ledger:
        connection = BlockingConnection(f"amqp://{address}", timeout=HANG_S, container_id=client)
        receiver = connection.create_receiver(node, credit=1)
        for state in states:
            _one(receiver, ledger, state, HANG_S)
        while not states and _one(receiver, ledger, "accepted", LEFT_S):
            pass
        connection.close()


def _one(receiver: BlockingReceiver, ledger: ClientLedger, state: str, wait_s: float) -> bool:
    try:
        message = receiver.receive(wait_s)
    except Timeout:
        return False
    tag = tag_of(receiver)
    ledger.received(tag, str(message.id), str(message.body).encode())
    ledger.settled(tag, state)
    if state == "modified":
        assert receiver.fetcher is not None
        receiver.fetcher.unsettled[-1].local.failed = True
    receiver.settle(_STATES[state])
    return True
