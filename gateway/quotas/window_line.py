"""Links that wait for the window of their session: its peer takes no more transfers in it now.

Proton would keep what it is given beyond the window, and send it ahead of a DETACH of the link and of an END of the
session. By then the events have been given back, and another consumer may have them. So proton is given no more than
the session has room for, and links wait here, where they can still be ended. Who waits longest is the next, and gets a
share of the window, however the peer opened it and whichever link its FLOW was about. Source: ADR 0140.
"""

from __future__ import annotations

from typing import Any, Protocol


class Turns(Protocol):
    """A gateway. `ready`: what it visits in its next turn."""

    ready: dict[Any, None]


class Owner(Protocol):
    """The connection of the links."""

    @property
    def gateway(self) -> Turns: ...


class SessionEnd(Protocol):
    """A link's end inside the engine. `window`: transfers that its session takes now."""

    @property
    def alive(self) -> bool: ...

    @property
    def session(self) -> int: ...

    @property
    def window(self) -> int: ...


class Windowed(Protocol):
    """A link that sends within the window of its session. `pump` is True when something went out."""

    def pump(self) -> bool: ...

    @property
    def connection(self) -> Owner: ...

    @property
    def link(self) -> SessionEnd: ...


class WindowLine:
    """Of one session, while links wait. In a turn of the gateway it stands for all of them."""

    def __init__(self, lines: dict[int, WindowLine], first: Windowed) -> None:
        """It enters itself in `lines`, by session, and leaves when no link waits any more."""
        self.connection = first.connection
        self._lines, self._session = lines, first.link.session
        self._waiting: dict[Windowed, None] = {first: None}
        self._next: Windowed | None = None  # whose turn it is
        lines[self._session] = self

    def share(self, link: Windowed, window: int) -> int:
        """Transfers of `window` that the link may send now. 0: it waits in line."""
        if link is self._next:
            return -(-window // (len(self._waiting) + 1))
        self._waiting.setdefault(link)
        self.wake()
        return 0

    def pump(self) -> bool:
        """The next one has its turn. True: the one behind it may have one, too."""
        link = self._first
        if link is None:
            return False  # until the peer opens the window
        del self._waiting[link]
        self._next = link
        try:
            if link.pump() and link.link.alive:
                self._waiting[link] = None  # behind the others: there may be more for it
        finally:
            self._next = None
        self._leave_if_empty()
        return bool(self._waiting)

    def drop(self, link: Windowed) -> None:
        if link in self._waiting:
            del self._waiting[link]
            self._leave_if_empty()

    def wake(self) -> None:
        """Something has moved: to be visited in the next turn, if the window is open."""
        if self._first is not None:
            self.connection.gateway.ready[self] = None

    @property
    def _first(self) -> Windowed | None:
        """Who waits longest, where the window is open."""
        first = next(iter(self._waiting), None)
        return first if first is not None and first.link.window > 0 else None

    def _leave_if_empty(self) -> None:
        if not self._waiting and self._lines.get(self._session) is self:
            del self._lines[self._session]
