"""A transaction: what was published and stated inside of it, kept until its discharge, then done as a whole or undone.

Nothing of it is in the realm before. At a commit the events that consumers have given outcomes to, and those that
publishers have sent, become one unit of the realm; what its links published outside of it before comes first.
Octets, counts, monotonic seconds. Source: seed 002; AMQP 1.0 part 4; semantics 2.W, 1.3-H, 1.3-I.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from gateway.links.partitioner import Part
from gateway.links.shared import Shared
from native_backend.nodes.answers import Committed
from native_backend.nodes.words import CommitAnswer
from native_backend.realm import Posting, Settlement

NODES_SHOWN = 20  # to operators


class Publisher(Protocol):
    """A link whose messages a transaction may hold."""

    under_way: int  # messages handed to the realm outside of it and not answered

    def suspend(self) -> None: ...

    def resume_publishing(self) -> None: ...

    def after_published(self, done: Callable[[], None]) -> None: ...


class Held(Protocol):
    """Messages that a transaction holds; gateway/transactions/posting.py."""

    @property
    def link(self) -> Publisher: ...

    @property
    def part(self) -> Part: ...

    def forget(self) -> None: ...

    def conclude(self, answer: CommitAnswer, eids: list[int]) -> None: ...

    def undo(self) -> None: ...


class Refusal(Protocol):
    """Messages that it did not take, and that are settled at its end; gateway/transactions/posting.py."""

    def settle(self) -> None: ...


class Retirement(Protocol):
    """Outcomes that consumers have stated inside of it; gateway/transactions/retirement.py."""

    @property
    def native(self) -> str: ...

    def settlement(self) -> Settlement | None: ...

    def conclude(self, answer: CommitAnswer) -> None: ...

    def undo(self, cause: str = "lost") -> None: ...


ENDS: Final = ("committed", "refused", "unknown", "rolled-back", "doomed", "torn", "expired", "abandoned")
"""How transactions end. The last one: with their link or connection."""


class Transaction:
    """From declare to the end of its discharge. `state` is a value of the axis `transaction` of `coordinate`."""

    def __init__(self, gateway: Shared, identity: bytes, holder: str) -> None:
        """`holder`: on whose shares it draws, see `gateway.quotas.shares`."""
        self.id, self._holder = identity, holder
        self.state = "open"  # or doomed, torn, expired: then it can only be rolled back
        self.began_s = gateway.clock.monotonic_s()
        self.postings: list[Held] = []
        self.refused: list[Refusal] = []
        self.refusals = 0  # deliveries in them
        self.retirements: list[Retirement] = []
        self.nodes: dict[str, None] = {}  # where its messages go and its deliveries come from; the first NODES_SHOWN
        self.settlements = 0  # deliveries whose outcomes it holds
        self._gateway = gateway
        self._bytes = 0
        self._deliveries = 0
        self._ready: Callable[[], None] = _nothing
        self._held_back: list[Publisher] = []  # whose later messages wait for the commit
        self._earlier = 0  # links whose earlier messages are not answered yet
        self._concluded: Callable[[Committed], None] = _nothing_of
        self._settlements: list[Settlement] = []
        self._held = 0  # octets of it that the gateway waits for

    # -- while it is open

    def room(self, size_bytes: int, count: int = 1) -> bool:
        """Take so much more in, if there is room for it."""
        limits, of_all = self._gateway.limits, self._gateway.shares.transactions_bytes
        if (
            self._bytes + size_bytes > limits.transaction_bytes
            or self._deliveries + count > limits.transaction_deliveries
            or (size_bytes and not of_all.fits(self._holder, size_bytes))
        ):
            return False
        self._bytes += size_bytes
        self._deliveries += count
        of_all.take(self._holder, size_bytes)
        return True

    @property
    def deliveries(self) -> int:
        """That are kept for its end."""
        return self._deliveries + self.refusals

    @property
    def messages(self) -> int:
        """Messages that were given room in it."""
        return self._deliveries - self.settlements

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def touches(self, node: str) -> None:
        if len(self.nodes) < NODES_SHOWN:
            self.nodes[node] = None

    def mark_rollback_only(self, state: str = "doomed") -> None:
        """It can only be rolled back: what it holds of messages is not needed any more."""
        if self.state == "open":
            self.state = state
            self._free()

    def _free(self) -> None:
        self._gateway.shares.transactions_bytes.take(self._holder, -self._bytes)
        self._bytes = 0
        for posted in self.postings:
            posted.forget()

    # -- commit

    def when_ready(self, ready: Callable[[], None]) -> None:
        """Call it once everything that its links published before, outside of it, has been answered."""
        links = self._held_back = list({posted.link: None for posted in self.postings})
        busy = [link for link in links if link.under_way]
        for link in links:
            link.suspend()
        if not busy:
            ready()
            return
        self._ready, self._earlier = ready, len(busy)
        for link in busy:
            link.after_published(self._one_earlier)

    def _one_earlier(self) -> None:
        self._earlier -= 1
        if not self._earlier:
            self._ready()

    def commit(self, concluded: Callable[[Committed], None]) -> None:
        """Hand it to the realm as one unit; `concluded` with the realm's answer."""
        self._concluded = concluded
        settlements = [retirements.settlement() for retirements in self.retirements if retirements.native]
        self._settlements = [settlement for settlement in settlements if settlement is not None]
        if len(self._settlements) < len(settlements):  # a subscription was lost
            for settlement in self._settlements:
                settlement.keeper.restore(settlement)
            concluded(Committed(self, "not-found", [], "subscription-lost"))
            return
        postings = [Posting(posted.part.node, posted.part.keys, posted.part.values) for posted in self.postings]
        if not settlements and not postings:
            concluded(Committed(self, "done", []))
            return
        self._gateway.waiting_bytes.count(self._holder, self._bytes)
        self._held = self._bytes
        self._gateway.realm.commit(self._settlements, postings, self)

    def answered(self, answer: Committed) -> None:
        """The realm's answer; the gateway calls the owner of an answer."""
        self._gateway.waiting_bytes.release(self._holder, self._held)
        self._concluded(answer)

    # -- the end: the discharge has been answered

    def conclude(self, answer: CommitAnswer, offsets: list[int]) -> None:
        """Tell every delivery what became of it."""
        at = 0
        for retirements in self.retirements:
            retirements.conclude(answer)
        for posted in self.postings:
            count = len(posted.part.seqs)
            posted.conclude(answer, offsets[at : at + count] if answer == "done" else [-1] * count)
            at += count
        self._end()

    def roll_back(self, cause: str = "lost") -> None:
        """Everything as if it had not been. `cause`: why links that have gone went."""
        for retirements in self.retirements:
            retirements.undo(cause)
        for posted in self.postings:
            posted.undo()
        self._end()

    def _end(self) -> None:
        for refused in self.refused:
            refused.settle()
        self._free()
        for link in self._held_back:
            link.resume_publishing()
        self.postings, self.refused, self.retirements, self._held_back = [], [], [], []


def _nothing() -> None:
    """No caller waits."""


def _nothing_of(_: Committed) -> None:
    """No caller waits for the answer."""
