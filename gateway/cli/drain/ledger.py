"""What a drain has moved, as one message of a queue beside the destination. The transaction that stores a batch takes
the record before away and posts its own: they are stored together, or neither is.

A record is one JSON text: source, queue, targets, moved (messages, over all runs), batches (the digests of the
last batches). A batch that the ledger names is in the realm; whether it is settled at the source, the source's next
answer says. After a kill, what the source gives again and the last batches name is known by it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from proton import Delivery, Link, Message, Terminus

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.connection import Peer, receiver
from gateway.cli.drain.source import await_whole

_BATCHES: Final = 4
"""A source that is killed can forget the acknowledgements of its last moments, so one batch is not enough."""

_HELD_S: Final = 10.0
_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Record:
    source: str
    queue: str
    targets: tuple[str, ...]
    moved: int = 0
    batches: tuple[tuple[str, ...], ...] = ()

    def with_batch(self, digests: Sequence[str]) -> Record:
        return replace(self, moved=self.moved + len(digests), batches=(*self.batches, tuple(digests))[-_BATCHES:])

    def message(self) -> bytes:
        text = json.dumps(asdict(self))
        subject = f"drain of {self.queue}"
        return bytes(Message(body=text, subject=subject, durable=True, content_type="application/json").encode())


class Ledger:
    """The queue, and the record that this process holds there: no other drain gets it."""

    def __init__(self, peer: Peer, node: str, timeout_s: float) -> None:
        self._peer, self._node, self._timeout_s = peer, node, timeout_s
        self._at = receiver(peer, node).link
        self.held: Delivery | None = None

    def begin(self, source: str, queue: str, targets: tuple[str, ...]) -> Record:
        """The record that is there, or a new one. A drain that was killed holds it until its connection is gone."""
        until_s = time.monotonic() + _HELD_S
        while (text := self.hold()) is None and self.is_held():
            if time.monotonic() >= until_s:
                raise ClientProblem(
                    f"{self._node}: its record is held by another drain of {queue}; wait until that one has ended"
                )
            self._peer.wait(lambda: False, _LOOK_S)
        record = Record(source, queue, targets) if text is None else _read(text, self._node)
        if (record.source, record.queue, record.targets) != (source, queue, targets):
            theirs = f"{record.queue} at {record.source} to {', '.join(record.targets)}"
            raise ClientProblem(f"{self._node} is the ledger of a drain of {theirs}; name another one with --ledger")
        return record

    def hold(self) -> str | None:
        """Take the record; None: there is none to be had."""
        self._at.drain(1)
        if not self._peer.wait(lambda: not self._at.draining(), self._timeout_s):
            raise ClientProblem(f"{self._node}: no answer within {self._timeout_s:g} s")
        delivery = self._at.current
        if delivery is None or not delivery.readable:
            return None
        await_whole(self._peer, delivery, self._node, self._timeout_s)
        message = Message()
        message.decode(self._at.recv(delivery.pending))
        self._at.advance()
        self.held = delivery
        return str(message.body)

    def renew(self) -> None:
        """After a transaction that was rolled back: proton states a second outcome of one delivery wrongly."""
        if self.held is not None:
            self.give_back()
            if self.hold() is None:
                raise ClientProblem(f"{self._node}: another client took the record of this drain")

    def give_back(self) -> None:
        """For the next run."""
        if self.held is not None:
            self.held.update(Delivery.RELEASED)
            self.held.settle()
            self.held = None

    def is_held(self) -> bool:
        """Whether a record is there that another link holds. A gateway shows it; not every broker does."""
        link = self._peer.session.receiver("ledger")
        link.source.address, link.source.distribution_mode = self._node, Terminus.DIST_MODE_COPY
        link.snd_settle_mode = Link.SND_SETTLED
        self._peer.attach(link, self._node)
        link.drain(1)
        self._peer.wait(lambda: not link.draining(), self._timeout_s)
        has_more = bool(link.queued)
        link.close()
        return has_more


def in_doubt(record: Record) -> Counter[str]:
    """Digests of what is stored, and may come from the source once more."""
    return Counter(digest for batch in record.batches for digest in batch)


def _read(text: str, node: str) -> Record:
    try:
        fields = json.loads(text)
        fields |= {"targets": tuple(fields["targets"]), "batches": tuple(map(tuple, fields["batches"]))}
        return Record(**fields)
    except (ValueError, TypeError, KeyError):
        raise ClientProblem(f"{node} holds messages that no drain wrote; name another queue with --ledger") from None
