"""How links of a connection end: with their session, which its peer ended or we cut, and all of them with it. Each goes
on by one link, and gives what effort that was (`gateway.session.departures`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gateway.amqp.engine import Engine
from gateway.amqp.facts import Attached, Fact, SessionEnded, ends
from gateway.amqp.link_ends import Link
from gateway.attach.leaving import LeavingSession
from gateway.attach.node_lifetimes import NodeLifetimes, TemporaryNode
from gateway.links.peer import Peer
from gateway.session.departures import Ends, effort_of


class Ending(Peer, Protocol):
    """A connection of which links end."""

    @property
    def engine(self) -> Engine: ...

    @property
    def lifetimes(self) -> NodeLifetimes: ...

    @property
    def unprocessed(self) -> Sequence[Fact]:
        """Read, and not carried out yet."""

    @property
    def is_busy(self) -> bool:
        """It carries facts out."""

    def end_link(self, link: Link, cause: str, closed: bool = True, *, counted: int = 1) -> TemporaryNode | None: ...

    def gone(self) -> None:
        """All links have ended."""


def ends_of_session(connection: Ending, ended: SessionEnded) -> Ends:
    """Its links go without a word; the END is answered behind those that were detached before it."""
    leaving = LeavingSession(connection, connection.engine.answer_end, ended.session)
    leaving.end_with(connection.lifetimes.end_session(connection, ended.session))
    for link in ended.links:
        effort = effort_of(link)
        leaving.end(link, connection.end_link)
        yield effort
    leaving.answer()
    connection.expiry_scopes.end_session(ended.session)


def ends_of_cut(connection: Ending, links: Sequence[Link], channel: int, condition: str, detail: str) -> Ends:
    """The END says why."""
    session = connection.engine.session(channel)
    for link in links:
        if link.alive:
            effort = effort_of(link)
            connection.end_link(link, "lost")
            link.forget()
            yield effort
    connection.engine.end_session(channel, condition, detail)
    connection.lifetimes.end_session(connection, session)
    connection.expiry_scopes.end_session(session)
    connection.touch()


def links_left(connection: Ending) -> list[Link]:
    """With an END that waits, the engine knows its links no more."""
    ended = [link for fact in connection.unprocessed if isinstance(fact, SessionEnded) for link in fact.links]
    return [link for link in [*connection.engine.links(), *ended] if link.alive]


def ends_of_all(connection: Ending, cause: str, then: Callable[[], None]) -> Ends:
    """The connection goes: because of its peer or us (`lost`, `stopped`), or it broke off (`cut-off`)."""
    while links := links_left(connection):
        rest = [] if connection.is_busy else connection.unprocessed  # else they are carried out yet, and counted
        uncounted: set[Any] = {fact.link for fact in rest if isinstance(fact, Attached)}
        for link in [link for link in links if link.alive]:
            effort = effort_of(link)
            why = "lost" if cause == "cut-off" and ends(connection.unprocessed, link) else cause
            connection.end_link(link, why, counted=int(link not in uncounted))
            link.forget()
            yield effort
    connection.gone()
    then()
    connection.resume()
    connection.touch()
