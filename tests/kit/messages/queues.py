"""Fills and reads queues over AMQP, octets as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proton import Delivery, Message

from gateway.cli.client.connection import connected, sender
from gateway.cli.client.peer_address import PeerAddress
from gateway.cli.drain.source import Source, await_whole
from gateway.cli.drain.transaction import Transactions
from tests.kit.patience import HANG_S


def fill(address: str, queue: str, messages: Sequence[bytes], at_once: int = 1000) -> None:
    with connected(PeerAddress(f"amqp://{address}"), HANG_S) as peer:
        to, transactions = sender(peer, queue), Transactions(peer, HANG_S)
        for begin in range(0, len(messages), at_once):
            transactions.run([(to, message) for message in messages[begin : begin + at_once]], None)


def numbered(count: int, ids: bool = True) -> list[bytes]:
    return [bytes(Message(body=f"{n}", id=f"id-{n}" if ids else None, durable=True).encode()) for n in range(count)]


def taken(address: str, queue: str) -> list[bytes]:
    """What a queue holds, and it is empty after that."""
    messages: list[bytes] = []
    with connected(PeerAddress(f"amqp://{address}"), HANG_S) as peer:
        source = Source(peer, queue, HANG_S)
        link: Any = source._link
        while True:
            before = len(messages)
            link.drain(1000)
            assert peer.wait(lambda: not link.draining(), HANG_S)
            while (delivery := link.current) is not None and delivery.readable:
                await_whole(peer, delivery, queue, HANG_S)
                messages.append(bytes(link.recv(delivery.pending) or b""))
                link.advance()
                delivery.update(Delivery.ACCEPTED)
                delivery.settle()
            if len(messages) == before:
                return messages


def body_of(octets: bytes) -> str:
    message = Message()
    message.decode(octets)
    return str(message.body)
