"""The attaches of one connection that are not decided yet: a control link waits for those that came before it.

A broker that answers one frame after another gives a producer its credit before it answers the coordinator that was
asked for next, and clients count on that: cli-proton's transactional sender sends what there is credit for when its
transaction is declared, and waits for ever where there is none. Here an attach may take the realm a while (a node is
made), so the coordinator's answer is kept back instead.

Where `UNDECIDED_MAX` are not decided, nothing more of the connection is carried out or read until the realm has
answered: a peer that attaches in a loop would have the realm asked faster than it answers, and all others would wait
behind its questions.

Where the holder has its share of all that is undecided (`gateway.quotas.attach_share`), the same holds for each of its
connections.

Source: the clients (tests/interop/test_cli_proton.py); AMQP leaves the order free.
"""

from __future__ import annotations

from typing import Final, Protocol

from gateway.quotas.attach_share import AttachShare

UNDECIDED_MAX: Final = 16  # the realm answers some hundred a second, of all connections


class Holding(Protocol):
    """The connection, which may carry nothing more out for a while."""

    @property
    def holder(self) -> str: ...

    def wait(self) -> None: ...

    def resume(self) -> None: ...


class Attaching(Protocol):
    """An attach that is not decided yet."""

    @property
    def connection(self) -> Holding: ...

    def coordinate(self) -> None:
        """It is a control link's, and every attach before it is decided."""


class UndecidedAttaches:
    """Of one connection: at most `UNDECIDED_MAX` that the realm is asked about, and fewer where its holder has its
    share of all."""

    def __init__(self, share: AttachShare[Holding]) -> None:
        self._share = share
        self._open: dict[Attaching, str] = {}  # by whom it is held: a login does not change that
        self._waiting: dict[Attaching, set[Attaching]] = {}  # a control link's: what it still waits for
        self._is_full = self._is_held = False  # it waits for these; or for those of other connections

    def add(self, admission: Attaching) -> None:
        """The realm is asked about it."""
        connection = admission.connection
        holder = self._open[admission] = connection.holder
        self._is_held |= not self._share.take(holder, connection)
        self._is_full = len(self._open) >= UNDECIDED_MAX
        if self._is_full or self._is_held:
            connection.wait()

    def must_wait(self, admission: Attaching) -> bool:
        """It is a control link's, and others came before it; then `coordinate` is called when they are decided."""
        before = {attach for attach in self._open if attach is not admission and attach not in self._waiting}
        if before:
            self._waiting[admission] = before
        return bool(before)

    def discard(self, admission: Attaching) -> None:
        """It is decided. What the realm was asked for is answered even when the link has gone meanwhile."""
        if admission in self._open:
            self._share.give_back(self._open.pop(admission))
        for waiting, before in list(self._waiting.items()):
            before.discard(admission)
            if not before:
                del self._waiting[waiting]
                waiting.coordinate()
        if self._is_full and len(self._open) < UNDECIDED_MAX:
            self._is_full = False
            self._resume(admission.connection)

    def go_on(self, connection: Holding) -> None:
        """Its holder has room again. `connection`: whose these are."""
        self._is_held = False
        self._resume(connection)

    def _resume(self, connection: Holding) -> None:
        if not self._is_full and not self._is_held:
            connection.resume()
