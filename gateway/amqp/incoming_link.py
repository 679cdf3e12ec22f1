"""A link on which the peer publishes, inside the fence: its deliveries, and who settles them first.

May import: `cproton`, `gateway.engine_links`, `gateway.engine_output`, `gateway.engine_states`, `gateway.frames`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cproton import lib

from gateway.engine_links import Link, delivery
from gateway.engine_output import Output
from gateway.engine_states import (
    TRANSACTIONAL,
    provisional,
    tell_declared,
    tell_in_transaction,
    transactional_state,
)
from gateway.frames import Frame


class Incoming(Link):
    """A link on which the peer publishes."""

    # Whether the session wants to know of a message in several frames before it is complete: unsettled, settled.
    reports_partial = (False, False)
    partial_reported = False
    resumed = 0  # pointer of the last delivery that its sender resumes
    passed_over = 0  # transfers that came when it was broken
    broken = False  # it is closed, or a message was too large: nothing more is read from it

    def __init__(self, pointer: Any, attach: Frame, session: int, output: Output) -> None:
        super().__init__(pointer, attach, session, output)
        self.arrived: list[int] = []  # pointers of deliveries that have no seq yet, in order
        self._told: set[int] = set()  # pointers of those that have their outcome, and wait for that
        self._first: set[int] = set()  # pointers of those whose transfers asked for the other way

    @property
    def credit(self) -> int:
        """What the peer may still send; negative when it sent more than it was given."""
        return int(lib.pn_link_credit(self._pointer)) if self.alive else 0

    def grant(self, count: int) -> None:
        if self.alive:
            lib.pn_link_flow(self._pointer, count)

    def number(self, first_seq: int, count: int) -> None:
        """Give the first `count` that have arrived their seqs: runs of several links may have come at once."""
        arrived = self.arrived
        taken, self.arrived = (arrived, []) if len(arrived) == count else (arrived[:count], arrived[count:])
        if self.alive:
            self._deliveries.update(zip(range(first_seq, first_seq + count), taken, strict=True))

    def settle(
        self,
        seqs: Sequence[int],
        outcome: str,
        condition: str | None = None,
        description: str = "",
        settle: bool = True,
    ) -> None:
        """Where the publisher settles first (X-3), they have their outcome now, and are settled when it has settled."""
        super().settle(seqs, outcome, condition, description, settle and not self.settles_second)
        if not settle or not self.settles_second:
            return
        for seq in seqs:
            number = self._deliveries.pop(seq, None)
            if number is None:
                continue
            if number in self._first or lib.pn_delivery_settled(delivery(number)):
                self._first.discard(number)
                lib.pn_delivery_settle(delivery(number))
            else:
                self._told.add(number)

    def settles_first(self, number: int) -> None:
        """The transfer of that delivery said so, on a link that settles second."""
        self._first.add(number)

    def peer_settled(self, number: int) -> bool:
        """The publisher has settled that delivery; whether it had its outcome, so that it is done now."""
        if number not in self._told:
            return False
        self._told.discard(number)
        lib.pn_delivery_settle(delivery(number))
        return True

    def tell(
        self,
        seqs: Sequence[int],
        transaction: bytes,
        outcome: str,
        condition: str | None = None,
        description: str = "",
        settle: bool = False,
    ) -> bool:
        """Give each delivery its outcome inside a transactional state. `settle`: and settle it, unless its publisher
        settles first; then it waits for the discharge. Whether they are settled now."""
        settle = settle and not self.settles_second
        state = provisional(transaction, outcome, condition, description)
        for seq in seqs:
            number = self._deliveries.get(seq)
            if number is not None:
                tell_in_transaction(delivery(number), state)
                if settle:
                    del self._deliveries[seq]
                    lib.pn_delivery_settle(delivery(number))
        return settle

    def declare(self, seq: int, transaction: bytes) -> None:
        """The declare with that seq has begun a transaction."""
        number = self._deliveries.pop(seq, None)
        if number is not None:
            tell_declared(delivery(number), transaction)

    @property
    def unfinished(self) -> bytes | None:
        """The txn-id of a message that is here in part only; None where there is no such message."""
        current = lib.pn_link_current(self._pointer) if self.alive else None
        if not current or not lib.pn_delivery_partial(current):
            return None
        if lib.pn_delivery_remote_state(current) != TRANSACTIONAL:
            return None
        return transactional_state(current)[0]

    def set_message_size_max(self, size_bytes: int) -> None:
        """In our ATTACH; it must not have gone out."""
        lib.pn_link_set_max_message_size(self._pointer, size_bytes)

    def tell_flow(self) -> None:
        """Where this link stands, though nothing has changed: proton says it with what the session has to say."""
        if self.alive:
            self._output.flush()
            lib.pn_session_set_incoming_capacity(lib.pn_link_session(self._pointer), 0)  # as it is
            lib.pn_link_flow(self._pointer, 0)

    def forget(self) -> None:
        super().forget()
        self._break_off()

    def close(self, condition: str | None = None, description: str = "") -> None:
        super().close(condition, description)
        self._break_off()

    def detach(self) -> None:
        super().detach()
        self._break_off()

    def _break_off(self) -> None:
        self.arrived, self.broken = [], True
        self._told, self._first = set(), set()
