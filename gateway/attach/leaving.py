"""Links and sessions that their peer has ended: the answer waits for what has to happen before.

Source: AMQP 1.0 part 2, 2.6.5 and 2.5.5; semantics.md 2.M.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.amqp.link_ends import Link
from gateway.amqp.link_owner import DispositionRun, LinkOwner
from gateway.links.peer import Peer
from gateway.transactions.open_transactions import TransactingPeer


class Going(Protocol):
    """A node that is about to go. `told`: who waits for that."""

    waiting: list[Callable[[], None]]


class LeavingLink(LinkOwner):
    """A link that its peer has detached: the answer waits for the end of a node. Nothing is heard of it any more: its
    deliveries went back with its end, though the engine knows them still."""

    def __init__(self, connection: TransactingPeer, link: Link, closed: bool) -> None:
        self.connection = connection
        self.waiting: list[Callable[[], None]] = []  # who waits for the answer
        self._link = link
        self._closed = closed

    def on_dispositions(self, dispositions: DispositionRun) -> None:
        """What is stated in a transaction cannot be done, and so it can only be rolled back (W-5)."""
        self.connection.transactions.mark_rollback_only(self._link.session, [dispositions.transaction])

    def answer(self) -> None:
        if self._link.alive:
            if self._closed:
                self._link.close()
            else:
                self._link.detach()
            self.connection.touch()
        for tell in self.waiting:
            tell()


class LeavingSession:
    """A session that its peer has ended: the answer waits for links of it that were detached and not answered yet, and
    for the end of nodes that end with its links."""

    def __init__(self, connection: Peer, answer_end: Callable[[int], None], session: int) -> None:
        self._connection = connection
        self._answer_end = answer_end
        self._session = session
        self._awaited = 1  # things that have not happened yet

    def end_with(self, going: Sequence[Going]) -> None:
        """Nodes that are about to go with links that were suspended."""
        for departure in going:
            self._wait_for(departure.waiting)

    def end(self, link: Link, end_link: Callable[[Link, str], Going | None]) -> None:
        """`end_link` gives the node that is about to go with a link."""
        if isinstance(link.owner, LeavingLink) and link.alive:
            self._wait_for(link.owner.waiting)
        elif link.alive:
            going = end_link(link, "lost")
            link.forget()
            if going is not None:
                self._wait_for(going.waiting)

    def answer(self) -> None:
        """One thing less to wait for; at the end, of its own links."""
        self._awaited -= 1
        if not self._awaited:
            self._answer_end(self._session)
            self._connection.touch()

    def _wait_for(self, waiting: list[Callable[[], None]]) -> None:
        self._awaited += 1
        waiting.append(self.answer)
