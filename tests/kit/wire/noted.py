"""A message sent, and a message settled, by a client of another library that notes both in its ledger."""

from __future__ import annotations

from typing import Final

from proton import Delivery, Message, Timeout
from proton.utils import BlockingReceiver, BlockingSender, SendException

from tests.kit.wire.client_ledger import ClientLedger
from tests.kit.wire.ledger import tag_of

STATES: Final = {
    "accepted": Delivery.ACCEPTED,
    "released": Delivery.RELEASED,
    "rejected": Delivery.REJECTED,
    "modified": Delivery.MODIFIED,
}
_OUTCOMES: Final = {int(state): name for name, state in STATES.items()}


def send(sender: BlockingSender, ledger: ClientLedger, node: str, message: Message) -> None:
    """Until its outcome has come, which may be any."""
    name = str(message.id)
    ledger.sent(node, name, str(message.body).encode())
    try:
        state = sender.send(message).remote_state
    except SendException as error:
        state = error.state
    ledger.told(name, _OUTCOMES[int(state)])


def settle_next(receiver: BlockingReceiver, ledger: ClientLedger, state: str, wait_s: float) -> bool:
    """False: none has come. `modified` is as failed."""
    try:
        message = receiver.receive(wait_s)
    except Timeout:
        return False
    assert receiver.fetcher is not None
    tag = tag_of(receiver)
    ledger.received(tag, str(message.id), str(message.body).encode())
    ledger.settled(tag, state)
    if state == "modified":
        receiver.fetcher.unsettled[-1].local.failed = True
    receiver.settle(STATES[state])
    return True
