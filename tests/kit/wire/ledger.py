"""What a client of another library did with messages, noted by itself: held against what `realmgate trace` says.

    ledger = Ledger(random.Random(19))
    ledger.go_through(connection, "orders", [f"m-{number}" for number in range(100)])
    ledger.agrees("m-7", message)     # as `trace --json` tells its life

A message is accepted, rejected, released or modified as failed, at random, and given again until it has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Final

from proton import Delivery, Message
from proton.utils import BlockingConnection, BlockingReceiver

from tests.kit.patience import HANG_S

ENDS: Final = ("settled", "dead-lettered")
KINDS: Final = (*ENDS, "returned", "failed")
"""Steps of a life that a consumer brings about."""


@contextmanager
def client(address: str, container: str = "client") -> Iterator[BlockingConnection]:
    connection = BlockingConnection(f"amqp://{address}", timeout=HANG_S, container_id=container)
    try:
        yield connection
    finally:
        connection.close()


def tag_of(receiver: BlockingReceiver) -> str:
    """Of what was received last and is not settled."""
    assert receiver.fetcher is not None
    return str(receiver.fetcher.unsettled[-1].tag)


class Ledger:
    """By message-id: what was done, and the delivery tag."""

    def __init__(self, choose: Random) -> None:
        self.done: dict[str, list[str]] = {}
        self.tags: dict[str, str] = {}
        self._choose = choose

    def go_through(self, connection: BlockingConnection, node: str, names: Sequence[str]) -> None:
        """Messages of these message-ids, through a node that has no others, until each has ended."""
        sender = connection.create_sender(node)
        for name in names:
            sender.send(Message(id=name, body=name))
        receiver = connection.create_receiver(node, credit=1)
        open_ = {*names}
        while open_:
            name = str(receiver.receive(HANG_S).id)
            self.tags[name] = tag_of(receiver)
            what = self._choose.choice(["settled", "settled", "returned", "failed", "dead-lettered"])
            self.done.setdefault(name, []).append(what)
            _settle(receiver, what)
            if what in ENDS:
                open_.remove(name)

    def agrees(self, name: str, message: Mapping[str, Any]) -> bool:
        """Its life is what the client did, all of it is recorded, and it was given each time."""
        steps = [step["what"] for step in message["life"]]
        done = [what for what in steps if what in KINDS]
        return done == self.done[name] and "given" in steps and message["not_recorded"] == []


def _settle(receiver: BlockingReceiver, what: str) -> None:
    if what == "settled":
        receiver.accept()
    elif what == "dead-lettered":
        receiver.reject()
    elif what == "failed":
        assert receiver.fetcher is not None
        receiver.fetcher.unsettled[-1].local.failed = True
        receiver.settle(Delivery.MODIFIED)
    else:
        receiver.release(delivered=False)
