"""The queue that is left: batches of its messages, each settled there when the realm has it.

A batch ends the question before: the broker answers a drain after it has dealt with every acknowledgement that came
earlier, for a session is read in order. Messages that stay are given back. Seconds. Errors: `ClientProblem`.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any, Final, NamedTuple

from proton import Delivery, Link, symbol

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.connection import Peer
from gateway.cli.drain.moved_message import MovedMessage, moved_message
from transformers.codec import DecodeError

BATCH_MESSAGES: Final = 1_000
_FIRST_BATCH: Final = 50
_BATCH_OCTETS: Final = 4 << 20


class Given(NamedTuple):
    """One message that this client holds at the source."""

    delivery: Delivery
    message: MovedMessage


def await_whole(peer: Peer, delivery: Delivery, node: str, timeout_s: float) -> None:
    """A large message comes in several frames, of which the first ends a drain."""
    if not peer.wait(lambda: not delivery.partial, timeout_s):
        raise ClientProblem(f"{peer.url}: {node} does not give the rest of a message within {timeout_s:g} s")


class Source:
    """One receiving link."""

    def __init__(self, peer: Peer, queue: str, timeout_s: float, empty_after_s: float | None = None) -> None:
        """`empty_after_s`: a queue that gives nothing for so long is empty; None: its broker says so."""
        self._peer, self._queue, self._timeout_s, self._empty_after_s = peer, queue, timeout_s, empty_after_s
        self._credit = _FIRST_BATCH
        self._link: Any = peer.session.receiver(f"drain-{uuid.uuid4()}")
        self._link.source.address = queue
        self._link.source.capabilities.put_object(symbol("queue"))
        self._link.snd_settle_mode, self._link.rcv_settle_mode = Link.SND_UNSETTLED, Link.RCV_FIRST
        peer.attach(self._link, queue)

    def batch(self) -> list[Given]:
        """What the queue gives now; empty: it has nothing more to give. What was settled before is done."""
        if self._empty_after_s is None:
            self._drain()
        else:
            self._await_silence(self._empty_after_s)
        given = []
        octets = 0
        while (delivery := self._link.current) is not None and delivery.readable:
            await_whole(self._peer, delivery, self._queue, self._timeout_s)
            stored = bytes(self._link.recv(delivery.pending) or b"")
            self._link.advance()
            octets += len(stored)
            given.append(Given(delivery, self._read(stored)))
        if given:  # large messages come in small batches: this process holds one batch
            self._credit = max(1, min(BATCH_MESSAGES, 2 * self._credit, _BATCH_OCTETS * len(given) // max(octets, 1)))
        return given

    def settle(self, given: list[Given]) -> None:
        """They are gone there."""
        for transfer in given:
            transfer.delivery.update(Delivery.ACCEPTED)
            transfer.delivery.settle()

    def give_back(self, given: list[Given]) -> None:
        for transfer in given:
            transfer.delivery.update(Delivery.RELEASED)
            transfer.delivery.settle()
        self._peer.keep_alive()

    def _drain(self) -> None:
        self._link.drain(self._credit)
        if not self._peer.wait(self._answered, self._timeout_s):
            raise ClientProblem(
                f"{self._peer.url}: {self._queue} does not say within {self._timeout_s:g} s that it is empty"
                "; --empty-after S does not ask for it"
            )

    def _await_silence(self, empty_after_s: float) -> None:
        """Until all credit is used, or nothing comes for so long. What is not used stays for the next batch."""
        self._link.flow(max(0, self._credit - self._link.credit))
        came = -1
        while came < self._link.queued < self._link.credit:
            came = self._link.queued
            self._peer.wait(partial(self._gave_more, came), empty_after_s)

    def _gave_more(self, came: int) -> bool:
        self._peer.check(self._link, self._queue)
        return bool(self._link.queued > came)

    def _answered(self) -> bool:
        self._peer.check(self._link, self._queue)
        return not self._link.draining()

    def _read(self, stored: bytes) -> MovedMessage:
        try:
            return moved_message(stored)
        except DecodeError as error:
            raise ClientProblem(
                f"{self._queue}: what the broker gives is no message: {error}; it stays there"
            ) from None
