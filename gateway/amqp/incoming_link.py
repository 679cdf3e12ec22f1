"""A link on which the peer publishes, inside the fence: its deliveries, and who settles them first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from cproton import ffi, lib

from gateway.amqp import _deliveries
from gateway.amqp.error_description import ErrorDescription
from gateway.amqp.link_ends import STATES, Link, delivery
from gateway.amqp.output import Output
from gateway.amqp.proton_data import provisional, tell_declared, tell_in_transaction
from gateway.frames.attach_frame import AttachAnswer
from gateway.frames.frames import Frame
from gateway.frames.multi_transfer import MultiTransfer


class Incoming(Link):
    """A link on which the peer publishes."""

    # Whether the session wants to know of a message in several frames before it is complete: unsettled, settled.
    reports_partial = (False, False)
    partial_reported = False
    unfinished: MultiTransfer | None = None  # the message that is here in part
    resumed = 0  # pointer of the last delivery that its sender resumes
    names_messages = False  # every error names the message that it is about
    passed_over = 0  # transfers that came when it was broken
    broken = False  # it is closed, or a message was too large: nothing more is read from it
    message_size_max = 1 << 63  # as our ATTACH has it, in octets

    def __init__(self, pointer: Any, attach: Frame, session: int, output: Output) -> None:
        super().__init__(pointer, attach, session, output)
        self._recalled = 0  # credit that was taken back last, and that its peer may have used before it heard of that
        self._overdrawn: Callable[[int], None]
        self.forget_unfinished: Callable[[Incoming], object] = _nothing  # what is here of a message is not kept
        self.arrived: list[int] = []  # pointers of deliveries that have no seq yet, in order
        self._answered: set[int] = set()  # pointers of those that have their outcome, and wait for that
        self._first: set[int] = set()  # pointers of those whose transfers asked for the other way
        self._runs: deque[tuple[int, list[int]]] = deque()  # first seq, pointers: not in the dict

    @property
    def _deliveries(self) -> dict[int, int]:
        while self._runs:
            first_seq, run = self._runs.popleft()
            self._by_seq.update(zip(range(first_seq, first_seq + len(run)), run, strict=True))
        return self._by_seq

    @property
    def unsettled_count(self) -> int:
        return len(self._by_seq) + sum(len(run) for _, run in self._runs)

    @property
    def unconfirmed(self) -> int:
        """Deliveries that have their outcome, and that their publisher has to settle yet."""
        return len(self._answered)

    def confirm(self, answer: AttachAnswer) -> None:
        if answer.message_size_max is not None:
            self.message_size_max = answer.message_size_max
        super().confirm(answer)

    @property
    def credit(self) -> int:
        """What the peer may still send; negative when it sent more than it was given."""
        return int(lib.pn_link_credit(self._pointer)) if self.alive else 0

    def grant(self, count: int) -> None:
        if self.alive:
            lib.pn_link_flow(self._pointer, count)

    def recall(self, count: int, overdrawn: Callable[[int], None]) -> None:
        """Take back so much of the credit that is left. `overdrawn` hears how much of it the peer had used already."""
        if self.alive:
            self._recalled, self._overdrawn = count, overdrawn
            lib.pn_link_flow(self._pointer, -count)

    def overdraft(self) -> int:
        """What the peer has sent beyond its credit, where that is positive. For what it sent before it heard that
        credit was taken back, it has that credit again."""
        over = -self.credit
        if 0 < over <= self._recalled:
            self._recalled -= over
            self._overdrawn(over)
            self.grant(over)
            return 0
        return over

    def number(self, first_seq: int, count: int) -> None:
        """Give the first `count` that have arrived their seqs: runs of several links may have come at once."""
        arrived = self.arrived
        taken, self.arrived = (arrived, []) if len(arrived) == count else (arrived[:count], arrived[count:])
        if self.alive:
            self._runs.append((first_seq, taken))

    def settle(
        self,
        seqs: Sequence[int],
        outcome: str,
        condition: str | None = None,
        description: str = "",
        settle: bool = True,
    ) -> None:
        """Where the publisher settles first (X-3), they have their outcome now, and are settled when it has settled."""
        if settle and not condition and not self.settles_second and (run := self._next_run(seqs)):
            _deliveries.settle_run(run, STATES.get(outcome, 0))
            return
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
                self._answered.add(number)

    def _next_run(self, seqs: Sequence[int]) -> list[int]:
        """The pointers of those, where they are the ones that have waited longest: what mostly comes, for the price of
        a few in a dict. Empty: they have to be looked up one by one."""
        if not self._runs or type(seqs) is not range:
            return []
        (first_seq, run), count = self._runs[0], len(seqs)
        if seqs[0] != first_seq or count > len(run):
            return []
        if count < len(run):
            self._runs[0] = first_seq + count, run[count:]
            return run[:count]
        self._runs.popleft()
        return run

    def settles_first(self, number: int) -> None:
        """The transfer of that delivery said so, on a link that settles second."""
        self._first.add(number)

    def peer_settled(self, number: int) -> bool:
        """The publisher has settled that delivery; whether it had its outcome, so that it is done now."""
        if number not in self._answered:
            return False
        self._answered.discard(number)
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
                if self.names_messages and condition:
                    state = provisional(transaction, outcome, condition, self.about(seq, description))
                tell_in_transaction(delivery(number), state)
                if settle:
                    del self._deliveries[seq]
                    lib.pn_delivery_settle(delivery(number))
        return settle

    def about(self, seq: int, description: str) -> str:
        number = self._deliveries.get(seq) if self.names_messages else None
        if number is None or not isinstance(description, ErrorDescription):
            return description
        return description.about(tag_of(delivery(number)))

    def naming(self, tag: bytes, words: str) -> str:
        """Words about the message with that tag."""
        return ErrorDescription(words).about(tag) if self.names_messages else words

    def declare(self, seq: int, transaction: bytes) -> None:
        """The declare with that seq has begun a transaction."""
        number = self._deliveries.pop(seq, None)
        if number is not None:
            tell_declared(delivery(number), transaction)

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
        self.arrived, self.broken, self.unfinished = [], True, None
        self.forget_unfinished(self)
        self._answered, self._first = set(), set()


def _nothing(_: Incoming) -> None:
    """No message is here in part."""


def tag_of(pointer: Any) -> bytes:
    """The delivery-tag."""
    tag = lib.pn_delivery_tag(pointer)
    return bytes(ffi.buffer(tag.start, tag.size))
