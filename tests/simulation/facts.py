"""What crossed the gateway's boundary, as the peers mean it: links, messages published, events given.

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
    mode: str  # publish, queue, plain, durable
    confirmed: bool = False
    gone: bool = False
    shut: bool = False  # the gateway ended it, or what it was part of: it hears nothing that was sent behind that
    condition: str | None = None  # of the gateway's DETACH
    limit: int = 0  # deliveries that the receiver allows in all: delivery-count + link-credit
    count: int = 0  # deliveries that the sender has used up: sent, or given back by a drain
    drain: bool = False  # the receiver asked that its credit be used up
    conflict: bool = False  # the peer has contradicted itself about a delivery that waits
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
    told: list[str] = field(default_factory=list)
