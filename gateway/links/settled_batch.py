"""A run of deliveries between what was stated of them and the realm's answer.

Seqs, EIDs. Source: ADR 0087.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mappings import Decision, NodeTables
from native_backend.nodes.answers import Settled
from native_backend.state.outcome_detail import OutcomeDetail


class Consuming(Protocol):
    """The link that they were given to."""

    def settled(self, batch: SettledBatch, answer: Settled) -> None: ...


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
