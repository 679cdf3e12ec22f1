"""Facts: what the engine read from the peer, in the order it was read. Deliveries come as columns, one fact a run.

A delivery is known by its *seq* (docs/records.md) once the session has given it one; no fact holds a pointer into
the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.amqp.link_owner import DispositionRun, TransferRun
from gateway.frames.frames import Fault, Frame

if TYPE_CHECKING:
    from gateway.amqp.incoming_link import Incoming
    from gateway.amqp.link_ends import Link, Outgoing


@dataclass(frozen=True, slots=True)
class Opened:
    """The peer's OPEN."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Attached:
    """The peer's ATTACH; the link answers nothing until it is confirmed or refused."""

    link: Incoming | Outgoing


@dataclass(slots=True, kw_only=True)
class Transfers(TransferRun):
    """Complete messages on one link."""

    link: Incoming


@dataclass(frozen=True, slots=True)
class Partial:
    """The first frame of a message that comes in several, on a link that wants this fact."""

    link: Incoming
    presettled: int
    transaction: bytes | None = None


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Something that names that transaction is not taken: a message, because its link is closed or closes; an outcome,
    because its delivery is not unsettled any more. The transaction can only be rolled back (W-5)."""

    session: int
    transaction: bytes


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Deliveries of a link whose publisher settles first are settled now, by both."""

    link: Incoming


@dataclass(slots=True)
class Withdrawn:
    """So many deliveries of a link took credit and are no messages: their sender has aborted them, or resumes what is
    not known here."""

    link: Incoming
    count: int = 1


@dataclass(slots=True, kw_only=True)
class Dispositions(DispositionRun):
    """Deliveries of one link that got the same state."""

    link: Outgoing


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
    """The peer detached or closed a link; `closed` says whether for good."""

    link: Incoming | Outgoing
    closed: bool


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The peer ended a session. `links`: those that it had then; the END waits for its answer."""

    session: int
    links: tuple[Incoming | Outgoing, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer closed the connection."""

    condition: str


@dataclass(frozen=True, slots=True)
class Faulted:
    """The peer broke the protocol; the table `fault` says what follows. `link` where it concerns one; `session`: the
    number of the session on the fault's channel when it was read, which may have ended meanwhile."""

    fault: Fault
    link: Incoming | Outgoing | None = None
    session: int | None = None


Fact = (
    Opened
    | Attached
    | Transfers
    | Partial
    | NotTaken
    | Confirmed
    | Withdrawn
    | Dispositions
    | Flowed
    | Asked
    | Detached
    | SessionEnded
    | Closed
    | Faulted
)


def ends(unprocessed: Iterable[Fact], link: Link) -> bool:
    """The end of the link is read already. An event given now would leave settled, its record saying otherwise."""
    return any(
        isinstance(fact, Closed)
        or (isinstance(fact, Detached | Faulted) and fact.link is link)
        or (isinstance(fact, SessionEnded) and link in fact.links)
        or (isinstance(fact, Faulted) and fact.link is None)  # of its session, or of all: proton may be silent
        for fact in unprocessed
    )


def unprocessed_deliveries(unprocessed: Iterable[Fact], link: Outgoing) -> Iterator[tuple[int, int]]:
    """Seq and EID of each delivery that the peer has spoken of behind the end of the link."""
    for fact in unprocessed:
        if isinstance(fact, Dispositions) and fact.link is link and not fact.repeated:
            yield from zip(fact.seqs, fact.eids, strict=True)


def speaks(unprocessed: Iterable[Fact], link: Outgoing) -> bool:
    """The peer has spoken of that link, and is not heard yet."""
    return any(isinstance(fact, Dispositions | Flowed) and fact.link is link for fact in unprocessed)
