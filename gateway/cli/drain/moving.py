"""Moves what a queue gives, batch by batch: stored there, then settled here, until the queue gives nothing more.

What is known from a run before is not stored again: a message with a message-id of which the ledger has the same
octets. Without a message-id two messages can be alike, so it is stored again and counted: a duplicate that is named
is better than a message that is lost. Errors: `ClientProblem`, `Rejected` where the destination takes nothing more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.drain.destination import TOO_LARGE, Destination
from gateway.cli.drain.ledger import Record, in_doubt
from gateway.cli.drain.source import Given, Source
from gateway.cli.drain.transaction import Rejected
from transformers.message.annotation_keys import INVALID, MALFORMED, UNKNOWN

_TRANSACTION_OCTETS: Final = 16 << 20
_REFUSED_MAX: Final = 100
_TELL_S: Final = 5.0
NAMED: Final = 20
_OF_A_MESSAGE: Final = {
    TOO_LARGE,
    "amqp:decode-error",
    "amqp:invalid-field",
    "amqp:not-allowed",
    "amqp:not-implemented",
    INVALID,
    MALFORMED,
    UNKNOWN,
}
"""Conditions of a message that the destination never takes. With any other one the next message would fare alike."""


@dataclass(slots=True)
class Moved:
    """What a run has done. Message-ids, at most NAMED, of what was known already, and of what is refused with why."""

    stored: int = 0
    known: int = 0
    doubtful: int = 0
    refused: int = 0
    known_ids: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @property
    def settled(self) -> int:
        return self.stored + self.known


class Moving:
    """One run. `tell`: a line for an operator who waits."""

    def __init__(self, source: Source, destination: Destination, record: Record, tell: Callable[[str], None]) -> None:
        self._source, self._destination, self._tell = source, destination, tell
        self.record = record
        self.moved = Moved()
        self._doubt: Counter[str] = in_doubt(record)
        self._left: list[Given] = []
        self._began_s = self._told_s = time.monotonic()

    def run(self) -> None:
        """Until the queue is empty. What is refused is given back at the end."""
        try:
            while given := self._source.batch():
                for part in _parts(self._new(given)):
                    self._store(part)
                self._progress()
        finally:
            self._source.give_back(self._left)

    def _new(self, given: list[Given]) -> list[Given]:
        """Without what is stored already, which is settled."""
        new, known = [], []
        for transfer in given:
            again = self._doubt[transfer.message.digest] > 0
            if again:
                self._doubt[transfer.message.digest] -= 1
            if again and transfer.message.message_id:
                known.append(transfer)
            else:
                self.moved.doubtful += again
                new.append(transfer)
        self.moved.known += len(known)
        self.moved.known_ids += [transfer.message.message_id for transfer in known][: NAMED - len(self.moved.known_ids)]
        self._source.settle(known)
        return new

    def _store(self, given: list[Given]) -> None:
        """Without those that are refused for themselves."""
        while given:
            record = self.record.with_batch([transfer.message.digest for transfer in given])
            try:
                self._destination.store([transfer.message for transfer in given], record)
            except Rejected as error:
                if (error.index < 0 and len(given) == 1) or (error.index >= 0 and error.condition not in _OF_A_MESSAGE):
                    raise  # it is no matter of this message
                if error.index < 0:  # which one it is, is not said
                    for transfer in given:
                        self._store([transfer])
                    return
                self._refuse(given[error.index], error)
                given = [transfer for number, transfer in enumerate(given) if number != error.index]
                continue
            self.record = record
            self._source.settle(given)
            self.moved.stored += len(given)
            return

    def _refuse(self, transfer: Given, error: Rejected) -> None:
        self._left.append(transfer)
        self.moved.refused += 1
        if len(self.moved.refusals) < NAMED:
            self.moved.refusals.append(f"{transfer.message.message_id or 'without a message-id'}: {error}")
        if self.moved.refused >= _REFUSED_MAX:
            raise ClientProblem(f"{_REFUSED_MAX} messages are refused, the last one: {error}", refused=True)

    def _progress(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_S:
            self._told_s = now_s
            rate = self.moved.settled / (now_s - self._began_s)
            self._tell(f"{self.moved.settled:,} messages moved, {rate:,.0f} a second")


def _parts(given: Sequence[Given]) -> Iterator[list[Given]]:
    """No larger than a transaction may be; one message always fits."""
    part: list[Given] = []
    octets = 0
    for transfer in given:
        size = len(transfer.message.octets)
        if part and octets + size > _TRANSACTION_OCTETS:
            yield part
            part, octets = [], 0
        part.append(transfer)
        octets += size
    if part:
        yield part
