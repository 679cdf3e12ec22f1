"""Sessions that the peer has ended, inside the fence: until that is answered, and their memory is given back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cproton import lib

from gateway.amqp.binding import at
from gateway.amqp.link_ends import Link


class EndedSessions:
    """One connection's."""

    def __init__(self) -> None:
        self._ended: dict[int, tuple[Any, list[Link]]] = {}

    def __len__(self) -> int:
        return len(self._ended)

    def add(self, session: Any, links: list[Link]) -> None:
        """`links`: those that it had then."""
        self._ended[at(session)] = session, links

    def links(self) -> Iterator[Link]:
        return (link for _, links in self._ended.values() for link in links)

    def answer(self, number: int) -> None:
        """What went with it is done. A second answer does nothing."""
        if number in self._ended:
            lib.pn_session_close(self._ended[number][0])

    def answer_all(self) -> None:
        for number in self._ended:
            self.answer(number)

    def free(self) -> None:
        """Those that both sides have ended: JMS opens and ends them all day."""
        done = [
            number
            for number, (session, links) in self._ended.items()
            if lib.pn_session_state(session) & lib.PN_LOCAL_CLOSED and not any(link.alive for link in links)
        ]
        for number in done:
            session, links = self._ended.pop(number)
            for link in links:
                link.free()
            lib.pn_session_free(session)

    def clear(self) -> None:
        self._ended.clear()
