"""Facts: what the engine read from the peer, in the order it was read. Deliveries come as columns, one fact a run.

A delivery is known by its *seq* (docs/records.md) once the session has given it one; no fact holds a pointer into
the engine. May import: `gateway.frames`, `native_backend.octets`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.frames import Fault, Frame
from native_backend.octets import Octets

if TYPE_CHECKING:
    from gateway.engine_incoming import Incoming
    from gateway.engine_links import Outgoing


@dataclass(frozen=True, slots=True)
class Opened:
    """The peer's OPEN."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Attached:
    """The peer's ATTACH; the link answers nothing until it is confirmed or refused."""

    link: Incoming | Outgoing


@dataclass(slots=True)
class Transfers:
    """Complete messages on one link, in order: raw bytes, and whether each came settled. `transaction`: the txn-id
    that all of them carried in a transactional state."""

    link: Incoming
    messages: Octets = field(default_factory=Octets)
    presettled: list[int] = field(default_factory=list)
    transaction: bytes | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """The first frame of a message that comes in several, on a link that asked to be told."""

    link: Incoming
    presettled: int
    transaction: bytes | None = None


@dataclass(slots=True)
class Confirmed:
    """So many deliveries of a link whose publisher settles first are settled now, by both."""

    link: Incoming
    count: int = 1


@dataclass(slots=True)
class Dispositions:
    """Deliveries of one link that got the same state. `state` is a value of the axis of the table `settle`, or
    `unstated`; with a `transaction` (a txn-id) it is the outcome inside of a transactional state. `repeated`: the peer
    had said so before, and the delivery waits for us."""

    link: Outgoing
    state: str
    peer_settled: bool
    seqs: list[int] = field(default_factory=list)
    eids: list[int] = field(default_factory=list)
    repeated: bool = False
    transaction: bytes | None = None


@dataclass(frozen=True, slots=True)
class Flowed:
    """The peer changed the credit of an outgoing link."""

    link: Outgoing


@dataclass(frozen=True, slots=True)
class Asked:
    """The peer wants to hear where a link stands, by `echo`, or by a drain that finds no credit; without a link, its
    session on that channel."""

    channel: int
    link: Incoming | Outgoing | None = None


@dataclass(frozen=True, slots=True)
class Detached:
    """The peer detached or closed a link, or ended its session; `closed` says whether for good."""

    link: Incoming | Outgoing
    closed: bool


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The peer ended a session; its links were told before."""

    session: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer closed the connection."""

    condition: str


@dataclass(frozen=True, slots=True)
class Faulted:
    """The peer broke the protocol; the table `fault` says what follows. `link` where it concerns one."""

    fault: Fault
    link: Incoming | Outgoing | None = None


Fact = (
    Opened
    | Attached
    | Transfers
    | Partial
    | Confirmed
    | Dispositions
    | Flowed
    | Asked
    | Detached
    | SessionEnded
    | Closed
    | Faulted
)
