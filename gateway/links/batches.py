"""Runs of deliveries between what their peer sent and what it hears: what the realm is given, and whom it answers.

Seqs, EIDs, octets. Source: ADR 0087.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.evidence.outcomes import Unstored
from mappings import Decision, NodeTables
from native_backend.nodes.answers import Published, Settled
from native_backend.nodes.node import Node
from native_backend.state.outcome_detail import OutcomeDetail


class Publishing(Protocol):
    """The link that its messages came on."""

    def published(self, batch: PublishedBatch, answer: Published) -> None: ...


class Consuming(Protocol):
    """The link that they were given to."""

    def settled(self, batch: SettledBatch, answer: Settled) -> None: ...


@dataclass(slots=True, eq=False)
class PublishedBatch:
    """One run of messages of one link that met the same cell."""

    link: Publishing
    first_seq: int
    presettled: int
    decision: Decision
    open: int  # messages without an outcome
    size_bytes: int
    tables: NodeTables  # under which they came
    node: Node
    read_s: float  # when they came, in monotonic seconds
    sent: Unstored | None = None  # the messages, as far as they are kept
    numbers: Sequence[int] | None = None  # their seqs, where they do not follow one another

    def seqs(self, first: int, count: int) -> Sequence[int]:
        if self.numbers is not None:
            return self.numbers[first : first + count]
        return range(self.first_seq + first, self.first_seq + first + count)

    def answered(self, answer: Published) -> None:
        self.link.published(self, answer)


@dataclass(slots=True, eq=False)
class SettledBatch:
    """Deliveries of one link that met the same cell."""

    link: Consuming
    decision: Decision
    state: str
    cause: str
    peer_settled: bool
    seqs: list[int]
    eids: list[int]
    tables: NodeTables  # under which they were stated
    detail: OutcomeDetail | None = None  # what else their consumer said
    read_s: float = 0.0  # when they were stated, in monotonic seconds; 0: not by a disposition outside of transactions

    def answered(self, answer: Settled) -> None:
        self.link.settled(self, answer)
