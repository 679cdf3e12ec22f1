"""What one peer has not read yet, in octets: what its socket holds, what this turn has to write, and what proton keeps
because the peer's session has no room. At `limits.write_buffer_bytes` no more is delivered to it, nor where it, or all
peers, make the gateway hold too much (`gateway.quotas.held_bytes`).

Its links that have something to send wait here, and are looked at again when something has moved: the peer sent
something, this turn's octets were written, the socket has room again. The same wakes those that wait for the window of
their session (`gateway.quotas.window_line`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from typing import Protocol

from gateway.amqp.engine import Engine
from gateway.quotas.held_bytes import DELIVERY_BYTES, HeldAccount
from gateway.quotas.window_line import Windowed, WindowLine
from native_backend.events.batch import DeliveryBatch


class Blocked(Windowed, Protocol):
    """A link that waits here."""

    def wake(self) -> None: ...


class Sending(Protocol):
    """The end of a link. `unsettled`: deliveries that its peer has, and has not settled."""

    @property
    def unsettled(self) -> Sized: ...


class Consuming(Protocol):
    """A link to which events are delivered."""

    @property
    def link(self) -> Sending: ...


class Transacting(Protocol):
    """The transactions of the connection. `deliveries`: that they keep for their ends."""

    @property
    def deliveries(self) -> int: ...


class WritePressure:
    """One connection's. `in_socket` gives the octets that the socket's owner still holds."""

    def __init__(
        self,
        engine: Engine,
        bytes_max: int,
        held: HeldAccount,
        consuming: Iterable[Consuming],
        transactions: Transacting,
    ) -> None:
        """`held`: what its peer makes the gateway hold in all; `consuming`: its links, which come and go."""
        self.in_socket: Callable[[], int] = _nothing
        self.held = held
        self._engine, self._consuming, self._transactions = engine, consuming, transactions
        self._bytes_max = bytes_max
        self._looked = False  # since something has moved
        self._congested = self._is_held = False
        self._waiting: dict[Blocked, None] = {}
        self.lines: dict[int, WindowLine] = {}  # by session: links that wait for its window
        self.kept: dict[Blocked, DeliveryBatch] = {}  # what such links have taken already
        self._kept_bytes = 0

    @property
    def room(self) -> int:
        """Octets that it may be sent now."""
        if self._congested or self._is_held:
            return 0
        unread, held = self._engine.unsent + self.in_socket() + self._kept_bytes, self.held
        if unread != held.unread:
            held.hold(held.unfinished, unread, held.unsettled)
        if held.room <= 0 and not self._looked:
            self._looked = True
            self.look()
        return min(self._bytes_max - unread, held.room)

    @property
    def is_full_when_read(self) -> bool:
        """There was no room, and there is none once its peer has read all: something is to be settled or finished
        first."""
        return not self._congested and not self._is_held and self.held.room + self.held.unread <= 0

    @property
    def deliveries(self) -> int:
        """That it may be given, and leave unsettled."""
        return max(1, self.held.room // DELIVERY_BYTES)

    def given(self, deliveries: int) -> None:
        """So many went out, and are to be settled by its peer."""
        held, unread = self.held, self._engine.unsent + self.in_socket() + self._kept_bytes
        held.hold(held.unfinished, unread, held.unsettled + deliveries * DELIVERY_BYTES)

    @property
    def in_transactions(self) -> int:
        """Octets, at least, of what its transactions keep."""
        return self._transactions.deliveries * DELIVERY_BYTES

    @property
    def unfinished(self) -> int:
        """Octets of what its peer has begun and not finished: messages in part, transactions."""
        return self._engine.in_part.size + self.in_transactions

    def look(self) -> None:
        """Count all that is held for it now. In between it is as much or less: what its peer has read or settled is
        not counted at once."""
        unsettled = sum(len(consumer.link.unsettled) for consumer in self._consuming)
        unread = self._engine.unsent + self.in_socket() + self._kept_bytes
        self.held.hold(self.unfinished, unread, unsettled * DELIVERY_BYTES)

    @property
    def congested(self) -> bool:
        """Its socket holds more than it may."""
        return self._congested

    def set_congested(self, congested: bool) -> None:
        self._congested = congested
        if not congested:
            self.notify()

    def hold(self, is_held: bool) -> None:
        """Its links end, or some of them: it gets no events meanwhile."""
        self._is_held = is_held
        if not is_held:
            self.notify()

    def wait_for_room(self, link: Blocked) -> None:
        self._waiting[link] = None

    def window_share(self, link: Windowed, window: int) -> int:
        """Transfers of `window`, which is its session's, that a link may send now. 0: it waits in line."""
        if line := self.lines.get(link.link.session):
            return line.share(link, window)
        if window <= 0:
            WindowLine(self.lines, link)
        return window

    def keep(self, link: Blocked, delivered: DeliveryBatch) -> None:
        """Until its session has room. It is counted as unread."""
        self.kept[link] = delivered
        self._kept_bytes += sum(map(len, delivered.values))

    def release(self, link: Blocked) -> DeliveryBatch | None:
        delivered = self.kept.pop(link, None)
        if delivered is not None:
            self._kept_bytes -= sum(map(len, delivered.values))
        return delivered

    def drop(self, link: Blocked) -> None:
        """It ends; what was kept for it is available again once its subscription is closed."""
        self._waiting.pop(link, None)
        self.release(link)
        if line := self.lines.get(link.link.session):
            line.drop(link)

    def close(self) -> None:
        """The socket has gone."""
        self.in_socket = _nothing
        self._waiting = {}
        self.lines.clear()
        self.kept.clear()
        self.held.close()

    def notify(self) -> None:
        """Something has moved."""
        self._looked = False
        if self._is_held:
            return
        if self._waiting:
            blocked, self._waiting = self._waiting, {}
            for link in blocked:
                link.wake()
        for line in self.lines.values():
            line.wake()


def _nothing() -> int:
    return 0
