"""Links that end with their session or connection, where they are many: a few in each turn.

Each end gives deliveries back and closes a subscription: three thousand links that went in one turn had every other
peer wait for 0.2 s. Few links end at once, as ever. While more are ending, nothing more of their connection is read or
carried out, and it gets no events. Source: ADR 0139.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from gateway.amqp.link_ends import Link
from gateway.links.write_pressure import WritePressure

TURN_EFFORT: Final = 1_024
"""Of the ends of one turn: 64 links, or some thousand deliveries."""
_LINK_EFFORT: Final = 16
"""As of so many deliveries."""

Ends = Iterator[int]
"""Ends a link each time that it goes on. Gives the effort of what it has done."""


class Leaving(Protocol):
    """A connection whose links end."""

    @property
    def write_pressure(self) -> WritePressure: ...

    def touch(self) -> None: ...

    def wait(self) -> None: ...

    def resume(self) -> None: ...


class Departures:
    """One gateway's. `at_once`: nothing waits any more, as the gateway stops."""

    def __init__(self, broke: Callable[[Leaving, str], None]) -> None:
        """`broke` hears, inside an `except`, of a connection that is to be closed: we are wrong."""
        self.at_once = False
        self._broke = broke
        self._queue: deque[Leaving] = deque()
        self._ends: dict[Leaving, deque[Ends]] = {}  # what is to end of each, in order
        self._held: set[Leaving] = set()  # what follows waits for the first of these

    def __bool__(self) -> bool:
        return bool(self._queue)

    def holds(self, connection: Leaving) -> bool:
        return connection in self._held

    def end_session(self, connection: Leaving, links: Iterable[Link], ends: Ends) -> None:
        """The peer has ended it. What was read behind that is carried out behind these ends, and ahead of those of the
        connection, where it has gone meanwhile."""
        if self._is_short(links):
            _finish(ends)
        else:
            self._ends_of(connection).appendleft(ends)
            self._hold(connection)

    def end_connection(self, connection: Leaving, links: Iterable[Link], ends: Ends) -> None:
        """Behind what ends of it already."""
        if connection not in self._ends and self._is_short(links):
            _finish(ends)
        else:
            self._ends_of(connection).append(ends)
            self._hold(connection)

    def advance(self) -> None:
        """One turn: of one connection after another."""
        effort = 0
        while self._queue and effort < TURN_EFFORT:
            connection = self._queue[0]
            try:
                for spent in self._ends[connection][0]:
                    effort += spent
                    if effort >= TURN_EFFORT:
                        return
            except Exception:
                self._broke(connection, "links of a session or connection could not be ended")
            self._next(connection)

    def finish(self) -> None:
        """All of them, now."""
        while self._queue:
            self.advance()

    def _is_short(self, links: Iterable[Link]) -> bool:
        return self.at_once or sum(map(effort_of, links)) <= TURN_EFFORT

    def _ends_of(self, connection: Leaving) -> deque[Ends]:
        if connection not in self._ends:
            self._ends[connection] = deque()
            self._queue.append(connection)
        return self._ends[connection]

    def _hold(self, connection: Leaving) -> None:
        self._held.add(connection)
        connection.wait()
        connection.write_pressure.hold(True)
        connection.touch()  # it is not read

    def _next(self, connection: Leaving) -> None:
        """The first of these has come to its end."""
        self._ends[connection].popleft()
        self._held.discard(connection)
        try:
            connection.write_pressure.hold(False)
            connection.resume()
        except Exception:
            self._broke(connection, "a connection could not go on behind the ends of its links")
        if self._ends[connection]:
            self._hold(connection)
        else:
            del self._ends[connection]
            self._queue.popleft()


def effort_of(link: Link) -> int:
    return _LINK_EFFORT + link.unsettled_count if link.alive else 0


def _finish(ends: Ends) -> None:
    for _ in ends:
        pass
