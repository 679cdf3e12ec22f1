"""Deliveries, read off proton's events: the part of the fence that every message goes through.

Transfers and dispositions become columns here, a fact a run. The two loops that carry every message are in
`_deliveries.c`, and stay with one link as long as its events last; what is rare is here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Final

from cproton import ffi, lib

from gateway.amqp import _deliveries
from gateway.amqp.binding import at
from gateway.amqp.delivery_detail import detail_of, read_detail
from gateway.amqp.facts import Confirmed, Dispositions, Fact, Faulted, NotTaken, Partial, Transfers, Withdrawn
from gateway.amqp.in_part import InPart
from gateway.amqp.incoming_link import Incoming, tag_of
from gateway.amqp.link_ends import Link, Outgoing
from gateway.amqp.link_ends import delivery as delivery_at
from gateway.amqp.proton_data import TRANSACTIONAL, transactional_state
from gateway.frames.frame_reader import Octets, TransferRun
from gateway.frames.frames import TRANSFER, Fault, Frame
from gateway.frames.multi_transfer import Part, transaction_of
from gateway.frames.stated_in_transactions import Stated

_STATES: Final = {
    0: "unstated",
    0x23: "received",
    0x24: "accepted",
    0x25: "rejected",
    0x26: "released",
    0x27: "modified",
}
_peek, _pop, _type_of = lib.pn_collector_peek, lib.pn_collector_pop, lib.pn_event_type
_event_delivery, _delivery_link = lib.pn_event_delivery, lib.pn_delivery_link
_partial, _settled, _recv, _advance = (
    lib.pn_delivery_partial,
    lib.pn_delivery_settled,
    lib.pn_link_recv,
    lib.pn_link_advance,
)
_remote_state = lib.pn_delivery_remote_state
_TAG, _SETTLE_MODE, _RESUME = 2, 6, 8  # their positions in a transfer
_FIRST, _SECOND = 0, 1
_DETAILED: Final = ("rejected", "modified")  # states that may say more than their names
TAG_BYTES_MAX: Final = 32


class Deliveries:
    """One connection's events, from its collector to facts. What is no delivery goes to `on_other`."""

    def __init__(
        self,
        collector: Any,
        links: dict[Any, Link],
        message_size_max: int,
        late_max: int,
        on_other: Callable[[Any, int], None],
    ) -> None:
        """`late_max`: transfers that may be under way on a link when it is closed with an error."""
        self._collector = collector
        self._collector_at = at(collector)
        self._links = links
        self._message_size_max = message_size_max
        self._late_max = late_max
        self._buffer, self._buffer_pointer = _scratch(message_size_max + 1)
        self._on_other = on_other
        self.facts: list[Fact] = []
        self.in_part = InPart()
        self.frame: Frame | None = None  # the frame that was pushed alone; None in a plain run
        self.part: Part | None = None  # of which delivery that is a transfer, where it comes in several
        self._stream: Octets = b""
        self._places = b""  # in it, of the payloads of the run that is being pushed; empty outside of one
        self._taken = 0  # how many of them have their delivery
        self._transaction: bytes | None = None  # in which they are posted
        self._stated: Counter[tuple[int, bytes]] = Counter()  # outcomes that were read, by session and transaction
        self.failed = False  # a fault of the whole connection: nothing more is read

    def fault(self, fault: Fault, link: Link | None = None, session: int | None = None) -> None:
        """`session`: the one that it is about, where there is no link."""
        if link is None and fault.channel is None:
            self.failed = True
        self.facts.append(Faulted(fault, link, session))  # type: ignore[arg-type]

    def free(self) -> None:
        """The connection has gone: no fact is reported any more."""
        self.failed, self.facts, self.frame, self._on_other = True, [], None, _ignore

    def begin_run(self, run: TransferRun) -> None:
        """What is pushed next are the frames of these messages, without their payloads."""
        self.frame = self.part = None
        self._stream, self._places, self._transaction = run
        self._taken = 0

    def end_run(self) -> None:
        self._stream = self._places = b""
        self._transaction = None

    def compare(self, stated: Stated, sessions: Callable[[int], int | None]) -> None:
        """What was pushed last named so many deliveries: where fewer outcomes were read, one of them is not unsettled
        here. `sessions`: of a channel."""
        came, self._stated = self._stated, Counter()
        for (channel, transaction), count in stated.named.items():
            session = sessions(channel)
            if session is not None and came[session, transaction] < count:
                self.facts.append(NotTaken(session, transaction))

    def read(self) -> None:
        """Every event that waits."""
        collector, delivery = self._collector, lib.PN_DELIVERY
        while True:
            event = _peek(collector)
            if not event:
                return
            if _type_of(event) == delivery:
                link = self._links.get(_delivery_link(_event_delivery(event)))
                if type(link) is Outgoing:
                    self._read_dispositions(link)
                elif self.frame is None and type(link) is Incoming:
                    self._read_transfers(link, event)
                else:
                    if type(link) is Incoming:
                        self._on_transfer(link, _event_delivery(event))
                    _pop(collector)
            else:
                self._on_other(event, _type_of(event))
                _pop(collector)

    def _read_transfers(self, link: Incoming, event: Any) -> None:
        """A plain run: the frame reader lets only new and complete deliveries through, and dispositions of their sender
        are frames of their own."""
        if link.broken:
            self._pass_over(link, _event_delivery(event), [self._transaction])
            _pop(self._collector)
            return
        fact = self._transfers_of(link, self._transaction)
        link.partial_reported = False
        if self._places:
            before = self._taken
            where = self._collector_at, link.at, self._stream, self._places, self._taken
            self._taken = _deliveries.read_run(*where, fact.messages, fact.presettled, link.arrived)
            assert self._taken > before, "more deliveries than there were transfers"
            if link.message_size_max < self._message_size_max and fact.messages.largest > link.message_size_max:
                self._cut_off(link, fact)
            return
        size_max = self._size_max(link)
        fitted = _deliveries.read_transfers(
            self._collector_at, link.at, size_max, fact.messages, fact.presettled, link.arrived
        )
        if not fitted:
            if not fact.messages:
                self.facts.pop()
            self._too_large(link, _event_delivery(_peek(self._collector)))  # it is passed over with all that follow it

    def _read_dispositions(self, link: Outgoing) -> None:
        """What consumers send most: deliveries accepted and settled, one after the other."""
        while True:
            seqs: list[int] = []
            eids: list[int] = []
            _deliveries.read_accepted(self._collector_at, link.at, link.unsettled, seqs, eids)
            if seqs:
                self.facts.append(Dispositions("accepted", True, seqs, eids, link=link))
            event = _peek(self._collector)
            if not event or _type_of(event) != lib.PN_DELIVERY:
                return
            delivery = _event_delivery(event)
            if _delivery_link(delivery) != link._pointer:
                return
            self._on_disposition(link, delivery)
            _pop(self._collector)

    def _transfers_of(self, link: Incoming, transaction: bytes | None = None) -> Transfers:
        """The run of messages that this link is in, or a new one."""
        last = self.facts[-1] if self.facts else None
        if type(last) is not Transfers or last.link is not link or last.transaction != transaction:
            last = Transfers(transaction=transaction, link=link)
            self.facts.append(last)
        return last

    def _size_max(self, link: Incoming) -> int:
        """The largest message, in octets: the max-message-size that we sent for the link, and at most the gateway's
        own."""
        return min(self._message_size_max, link.message_size_max)

    def _cut_off(self, link: Incoming, fact: Transfers) -> None:
        """One of them is larger than its link takes: it and what came behind it are not heard."""
        at = next(at for at, message in enumerate(fact.messages) if len(message) > link.message_size_max)
        late = len(fact.messages) - at
        largest = delivery_at(link.arrived[-late])
        del link.arrived[-late:]
        del fact.presettled[at:]
        fact.messages = fact.messages[:at]
        if not at:
            self.facts.remove(fact)
        self._too_large(link, largest)

    def _too_large(self, link: Incoming, delivery: Any) -> None:
        self.end(link, Fault("message-too-large", f"more than {self._size_max(link)} bytes"), tag_of(delivery))

    def end(self, link: Link | None, fault: Fault, tag: bytes | None = None) -> None:
        """Nothing more is read from it. `tag`: of the message that it is about."""
        if isinstance(link, Incoming) and not link.broken:
            link.broken = True
            self.fault(fault if tag is None else replace(fault, detail=link.naming(tag, fault.detail)), link)

    def _on_transfer(self, link: Incoming, delivery: Any) -> None:
        """A delivery whose frame stood alone: it may be partial, aborted, or carry a state."""
        pointer, transfer = link._pointer, self.frame
        if lib.pn_link_current(pointer) != delivery:
            if not link.broken:
                self._on_settled_by_publisher(link, delivery)
            return
        if transfer is None or transfer.code != TRANSFER:
            return  # its sender speaks of a delivery that is here in part
        if not link.broken and self._is_admissible(link, delivery, transfer):
            unfinished = link.unfinished = self.part.delivery if self.part is not None else None
            transaction = transaction_of(transfer) if unfinished is None else unfinished.transaction
            if _partial(delivery):
                self._on_partial(link, delivery, transaction)
                return
            link.unfinished = None
            if self._is_taken(link, delivery, transaction):
                return
        self._pass_over(link, delivery, self._named(transfer))

    def _is_taken(self, link: Incoming, delivery: Any, transaction: bytes | None) -> bool:
        """All of a delivery is here."""
        size = _recv(link._pointer, self._buffer_pointer, len(self._buffer))
        before = self.in_part.take(link) if self.part is not None else bytearray()
        if size < 0 and lib.pn_delivery_aborted(delivery):
            self._on_aborted(link, delivery)
            return True
        if len(before) + size > self._size_max(link):
            self._too_large(link, delivery)
            return False
        link.partial_reported = False
        fact = self._transfers_of(link, transaction)
        if before:
            before += memoryview(self._buffer)[: max(size, 0)]  # a slice of the buffer itself is a copy
        fact.messages.append(before or self._buffer[: max(size, 0)])
        fact.presettled.append(_settled(delivery))
        link.arrived.append(at(delivery))
        _advance(link._pointer)
        return True

    def _on_aborted(self, link: Incoming, delivery: Any) -> None:
        if link.partial_reported:  # its beginning is answered as a message, which settles it: it has to be there then
            link.partial_reported = False
            _advance(link._pointer)
        else:
            self._withdraw(link, delivery)

    def _withdraw(self, link: Incoming, delivery: Any) -> None:
        """It is settled already, and no frame says so: it was aborted, or the frame reader settled what is resumed."""
        link.resumed = 0  # proton may give its place to the next one
        lib.pn_delivery_settle(delivery)
        last = self.facts[-1] if self.facts else None
        if type(last) is Withdrawn and last.link is link:
            last.count += 1
        else:
            self.facts.append(Withdrawn(link))

    def _named(self, transfer: Frame) -> Iterable[bytes | None]:
        """Every transaction that the transfers of a delivery name."""
        return [transaction_of(transfer)] if self.part is None else self.part.delivery.named

    def _on_settled_by_publisher(self, link: Incoming, delivery: Any) -> None:
        """The publisher's own disposition for a delivery that is already ours; it may settle before us (X-3)."""
        if not _settled(delivery) or not link.peer_settled(at(delivery)):
            return
        last = self.facts[-1] if self.facts else None
        if type(last) is not Confirmed or last.link is not link:
            self.facts.append(Confirmed(link))

    def _is_admissible(self, link: Incoming, delivery: Any, transfer: Frame) -> bool:
        """Look at what proton does not look at; what may not be ends the link. What resumes a delivery is passed over,
        to its last transfer: nothing is known here of any, and its sender hears nothing of it (H-15)."""
        tag, mode = transfer.field(_TAG), transfer.field(_SETTLE_MODE)
        if isinstance(tag, bytes) and len(tag) > TAG_BYTES_MAX:
            self.end(link, Fault("delivery-tag-too-long", f"{len(tag)} octets, {TAG_BYTES_MAX} may be"))
            return False
        if mode == _SECOND and not link.settles_second:
            words = "rcv-settle-mode second, where first was agreed on"
            self.end(link, Fault("settle-mode-not-agreed", words), tag_of(delivery))
            return False
        if mode == _FIRST and link.settles_second:
            link.settles_first(at(delivery))
        if transfer.field(_RESUME) is True:
            link.resumed = at(delivery)
        return link.resumed != at(delivery)

    def _pass_over(self, link: Incoming, delivery: Any, named: Iterable[bytes | None]) -> None:
        """A transfer on a link that has been closed, or of a delivery that is resumed: its octets are not kept, however
        much comes. What it is posted in can only be rolled back."""
        self.facts += [NotTaken(link.session, txn_id) for txn_id in named if txn_id is not None]
        self.in_part.take(link)
        if lib.pn_link_current(link._pointer) == delivery:
            while _recv(link._pointer, self._buffer_pointer, len(self._buffer)) > 0:
                pass
            if _partial(delivery):
                return
            if not link.broken:
                self._withdraw(link, delivery)
            else:
                _advance(link._pointer)
                link.passed_over += 1
                if link.passed_over == self._late_max + 1:  # each is kept by proton until the link is detached
                    words = f"more than {self._late_max} transfers on a link that was closed"
                    self.fault(Fault("errant-link", words, link.attach.channel), session=link.session)

    def _on_partial(self, link: Incoming, delivery: Any, transaction: bytes | None) -> None:
        size = _recv(link._pointer, self._buffer_pointer, len(self._buffer))
        if self.in_part.add(link, memoryview(self._buffer)[: max(size, 0)]) > self._size_max(link):
            self._too_large(link, delivery)
        elif link.reports_partial[_settled(delivery)] and not link.partial_reported:
            link.partial_reported = True
            link.arrived.append(at(delivery))
            self.facts.append(Partial(link, _settled(delivery), transaction))

    def _on_disposition(self, link: Outgoing, delivery: Any) -> None:
        code = _remote_state(delivery)
        transaction: bytes | None = None
        if code == TRANSACTIONAL:
            transaction, state, outcome = transactional_state(delivery)
            detail = detail_of(outcome) if state.startswith(_DETAILED) else None
        else:
            state = _STATES.get(code, "unknown")
            if state == "modified":
                state = _modified(delivery)
            detail = read_detail(delivery, state) if state.startswith(_DETAILED) else None
        peer_settled = bool(_settled(delivery))
        silent = state == "unstated" and transaction is None and not peer_settled
        if silent and link.silence is None:
            return  # it says nothing yet (1.3-O)
        number = at(delivery)
        numbers = link.unsettled.get(number)
        if numbers is None:
            self._on_second_disposition(link, number, state, transaction)
            return
        if transaction is not None:
            self._stated[link.session, transaction] += 1
        if state != "received" or peer_settled or transaction is not None:
            link.stated(number, numbers[0], str(link.silence) if silent else state, peer_settled, transaction)
        facts = self.facts
        last = facts[-1] if facts else None
        if (
            type(last) is not Dispositions
            or last.link is not link
            or last.state != state
            or last.peer_settled != peer_settled
            or last.repeated
            or last.transaction != transaction
            or last.detail != detail
        ):
            last = Dispositions(state, peer_settled, transaction=transaction, detail=detail, link=link)
            facts.append(last)
        last.seqs.append(numbers[0])
        last.eids.append(numbers[1])

    def _on_second_disposition(self, link: Outgoing, number: int, state: str, transaction: bytes | None) -> None:
        """The peer speaks again of a delivery that it has stated and that waits for us: the same is harmless,
        another is not (H-9). It is in the transaction in which it was stated first, and in no other."""
        earlier = link.waiting.get(number)
        if earlier is None:
            return
        if transaction is not None and transaction == earlier[2]:
            self._stated[link.session, transaction] += 1
        if state not in ("unstated", "received", earlier[1]):
            return self.fault(Fault("conflicting-outcome", f"{earlier[1]}, then {state}"), link)
        last = self.facts[-1] if self.facts else None
        if type(last) is not Dispositions or not (last.repeated and last.link is link and last.state == earlier[1]):
            last = Dispositions(earlier[1], False, repeated=True, link=link)
            self.facts.append(last)
        last.seqs.append(earlier[0])
        last.eids.append(-1)


def _ignore(_: Any, kind: int) -> None:
    """The connection has gone."""


@cache
def _scratch(size: int) -> tuple[Any, Any]:
    """One buffer for all engines: they live on one thread, and nothing stays in it. A slice of the first is a copy."""
    octets = ffi.new("char[]", size)
    return ffi.buffer(octets), octets


def _modified(delivery: Any) -> str:
    disposition = lib.pn_delivery_remote(delivery)
    failed = lib.pn_disposition_is_failed(disposition)
    undeliverable = lib.pn_disposition_is_undeliverable(disposition)
    return "modified" + ("-failed" if failed else "") + ("-undeliverable" if undeliverable else "")
