"""What crossed the gateway's boundary, as the peers mean it: links, messages published, events given, transactions.

Made by the `Witness` from the bytes alone; nothing here comes from proton or from the gateway's objects. These are
mutable on purpose: a fact grows as the bytes go by, and the checkers look at it each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

QUEUE = "queue"


@dataclass(slots=True, eq=False)
class WireLink:
    """One link, from ATTACH to its end."""

    run: str
    container: str
    name: str
    publishing: bool
    node: str
    mode: str  # publish, queue, plain, durable, control
    confirmed: bool = False
    gone: bool = False
    broken: bool = False  # its connection went without a word from either side
    shut: bool = False  # the gateway ended it, or what it was part of: it hears nothing that was sent behind that
    condition: str | None = None  # of the gateway's DETACH
    limit: int = 0  # deliveries that the receiver allows in all: delivery-count + link-credit
    count: int = 0  # deliveries that the sender has used up: sent, or given back by a drain
    drain: bool = False  # the receiver asked that its credit be used up
    conflict: bool = False  # what the peer said last was not listened to: it contradicts itself, or is not kept
    first_given: int = -1  # the latest event that it was the first to be given
    published: list[Publish] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)

    @property
    def durable(self) -> str:
        """Whose acknowledgement state it is; empty for a plain subscriber."""
        return {"queue": QUEUE, "durable": f"{self.container}:{self.name}"}.get(self.mode, "")

    def __str__(self) -> str:
        return f"{self.container}/{self.name} ({self.mode} {self.node})"


@dataclass(slots=True, eq=False)
class Publish:
    """A complete message from a publisher."""

    link: WireLink
    delivery: int
    payload: bytes
    marker: str
    settled: bool
    place: int = 0  # in the order in which all messages were published; inside a transaction, with its discharge
    inside: bool = False  # it bears a transactional state
    transaction: Transaction | None = None  # the open one that its state names
    promised: str = ""  # its outcome inside of that, as it was told
    closed: bool = False  # and it was settled with that
    told: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Given:
    """A complete event to a consumer."""

    link: WireLink
    delivery: int
    store: int
    eid: int
    payload: bytes
    settled: bool
    stated: str | None = None  # the first terminal state from the peer, `unstated` when it settled without one
    peer_settled: bool = False
    entries_before: int = 0  # journal entries of this event when it left
    transaction: Transaction | None = None  # in which the peer has given it an outcome
    inside: str = ""  # that outcome
    told: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Transaction:
    """From the answer to its declare on. `asked`: `commit` or `rollback`, once its discharge is here."""

    control: WireLink
    identity: bytes
    posted: list[Publish] = field(default_factory=list)
    retired: list[Given] = field(default_factory=list)
    asked: str = ""
    answer: str = ""  # what was told of its discharge

    @property
    def over(self) -> bool:
        """Nothing can be said inside of it any more."""
        return bool(self.asked) or self.control.gone

    @property
    def done(self) -> bool | None:
        """Whether all of it must be there, or nothing may; None where its peer was told neither."""
        if self.asked == "commit" and not self.answer:
            return None
        return (self.asked, self.answer) == ("commit", "accepted")

    def __str__(self) -> str:
        end = f"{self.asked or 'no discharge'}, answered {self.answer or 'nothing'}"
        return f"transaction {self.identity.decode()} of {self.control.container} ({end})"
