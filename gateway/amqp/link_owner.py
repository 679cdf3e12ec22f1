"""What the engine calls on the session's side of a link, and what it hands over there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mappings import TableSet
from native_backend.log.octets import Octets
from native_backend.state.outcome_detail import OutcomeDetail


@dataclass(slots=True)
class TransferRun:
    """Complete messages of one link, in order: raw bytes, and whether each came settled. `transaction`: the txn-id
    that all of them carried in a transactional state."""

    messages: Octets = field(default_factory=Octets)
    presettled: list[int] = field(default_factory=list)
    transaction: bytes | None = None

    @property
    def is_mixed(self) -> bool:
        """Some came settled, and some did not. Equal lists are found equal sooner than one is summed up."""
        return self.presettled != self.presettled[:1] * len(self.presettled)


@dataclass(slots=True)
class DispositionRun:
    """Deliveries of one link that got the same state. `state` is a value of the axis of the table `settle`, or
    `unstated`; with a `transaction` (a txn-id) it is the outcome inside of a transactional state. `repeated`: the peer
    had said so before, and the delivery waits for us. `detail`: what else it says of all of them."""

    state: str
    peer_settled: bool
    seqs: list[int] = field(default_factory=list)
    eids: list[int] = field(default_factory=list)
    repeated: bool = False
    transaction: bytes | None = None
    detail: OutcomeDetail | None = None


class LinkOwner:
    """The session's side of a link. Each kind of link overrides what it acts on; it ignores the rest."""

    node_name = ""  # of the node that it is attached to, or asks for; empty: of no single one

    def on_transfers(self, transfers: TransferRun) -> None:
        """Messages are here."""

    def on_partial(self, presettled: int) -> None:
        """The first frame of a message in several is here, on a link that wants each first frame."""

    def on_confirmed(self) -> None:
        """The publisher has settled deliveries that had their outcome."""

    def on_withdrawn(self, count: int) -> None:
        """So many deliveries took credit, and no message comes of them."""

    def on_dispositions(self, dispositions: DispositionRun) -> None:
        """The consumer has given deliveries a state."""

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next fact on."""

    def access_changed(self) -> None:
        """Grants or users have changed."""

    def ended(self, cause: str) -> None:
        """The link has gone. `cause`: `lost`, `cut-off` or `stopped`."""


UNOWNED: Final = LinkOwner()
"""The owner of a link before its ATTACH is read, and after it was freed."""
