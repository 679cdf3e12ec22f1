"""Deliveries, read off proton's events: the part of the fence that every message goes through.

Transfers and dispositions become columns here, a fact a run. The two loops that carry every message are in
`engine_runs.c`, and stay with one link as long as its events last; what is rare is here.
May import: `cproton`, `gateway.engine_binding`, `gateway.engine_incoming`, `gateway.engine_links`,
`gateway.engine_runs`, `gateway.engine_states`, `gateway.facts`, `gateway.frames`, `gateway.tap`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from cproton import ffi, lib

from gateway import engine_runs
from gateway.engine_binding import at
from gateway.engine_incoming import Incoming
from gateway.engine_links import Link, Outgoing
from gateway.engine_states import TRANSACTIONAL, transactional_state
from gateway.facts import Confirmed, Dispositions, Fact, Faulted, Partial, Transfers
from gateway.frames import TRANSFER, Fault, Frame
from gateway.tap import Octets, Run

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
        self.frame: Frame | None = None  # the frame that was pushed alone; None in a plain run
        self._stream: Octets = b""
        self._places = b""  # in it, of the payloads of the run that is being pushed; empty outside of one
        self._taken = 0  # how many of them have their delivery
        self._transaction: bytes | None = None  # in which they are posted
        self.failed = False  # a fault of the whole connection: nothing more is read

    def fault(self, fault: Fault, link: Link | None = None) -> None:
        if link is None and fault.channel is None:
            self.failed = True
        self.facts.append(Faulted(fault, link))  # type: ignore[arg-type]

    def free(self) -> None:
        """The connection has gone: nobody is told anything."""
        self.failed, self.facts, self.frame, self._on_other = True, [], None, _to_nobody

    def begin_run(self, run: Run) -> None:
        """What is pushed next are the frames of these messages, without their payloads."""
        self.frame = None
        self._stream, self._places, self._transaction = run
        self._taken = 0

    def end_run(self) -> None:
        self._stream = self._places = b""
        self._transaction = None

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
        """A plain run: every delivery is new and complete, its sender's own dispositions are frames of their own."""
        if link.broken:
            self._pass_over(link, _event_delivery(event))
            _pop(self._collector)
            return
        fact = self._transfers_of(link, self._transaction)
        link.partial_reported = False
        if self._places:
            before = self._taken
            self._taken = engine_runs.read_run(
                self._collector_at,
                link.at,
                self._stream,
                self._places,
                self._taken,
                fact.messages,
                fact.presettled,
                link.arrived,
            )
            assert self._taken > before, "more deliveries than there were transfers"
            return
        fitted = engine_runs.read_transfers(
            self._collector_at, link.at, self._message_size_max, fact.messages, fact.presettled, link.arrived
        )
        if not fitted:
            if not fact.messages:
                self.facts.pop()
            self._too_large(link)  # the event stays, and is passed over with all that follow it

    def _read_dispositions(self, link: Outgoing) -> None:
        """What consumers send most: deliveries accepted and settled, one after the other."""
        while True:
            seqs: list[int] = []
            eids: list[int] = []
            engine_runs.read_accepted(self._collector_at, link.at, link.unsettled, seqs, eids)
            if seqs:
                self.facts.append(Dispositions(link, "accepted", True, seqs, eids))
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
            last = Transfers(link, transaction=transaction)
            self.facts.append(last)
        return last

    def _too_large(self, link: Incoming) -> None:
        self._end(link, Fault("message-too-large", f"more than {self._message_size_max} bytes"))

    def _end(self, link: Incoming, fault: Fault) -> None:
        """Nothing more is read from it."""
        if not link.broken:
            link.broken = True
            self.fault(fault, link)

    def _on_transfer(self, link: Incoming, delivery: Any) -> None:
        """A delivery whose frame stood alone: it may be partial, aborted, or carry a state."""
        pointer = link._pointer
        if link.broken:
            self._pass_over(link, delivery)
            return
        if lib.pn_link_current(pointer) != delivery:
            self._on_settled_by_publisher(link, delivery)
            return
        if (
            self.frame is not None
            and self.frame.code == TRANSFER
            and not self._is_admissible(link, delivery, self.frame)
        ):
            self._pass_over(link, delivery)
            return
        if link.resumed == at(delivery):
            self._pass_over(link, delivery)  # nothing is known here of what it resumes; unsettled, as it was (H-15)
            return
        if _partial(delivery):
            self._on_partial(link, delivery)
            return
        size = _recv(pointer, self._buffer_pointer, len(self._buffer))
        if size < 0 and lib.pn_delivery_aborted(delivery):
            lib.pn_delivery_settle(delivery)  # aborted is settled, and nothing was sent
            return
        if size > self._message_size_max:
            self._too_large(link)
            return
        link.partial_reported = False
        fact = self._transfers_of(link, _transaction(delivery))
        fact.messages.append(self._buffer[:size] if size > 0 else b"")
        fact.presettled.append(_settled(delivery))
        link.arrived.append(at(delivery))
        _advance(pointer)

    def _on_settled_by_publisher(self, link: Incoming, delivery: Any) -> None:
        """The publisher's own disposition for a delivery that is already ours; it may settle before us (X-3)."""
        if not _settled(delivery) or not link.peer_settled(at(delivery)):
            return
        last = self.facts[-1] if self.facts else None
        if type(last) is Confirmed and last.link is link:
            last.count += 1
        else:
            self.facts.append(Confirmed(link))

    def _is_admissible(self, link: Incoming, delivery: Any, transfer: Frame) -> bool:
        """Look at what proton does not look at; what may not be ends the link."""
        tag, mode = transfer.field(_TAG), transfer.field(_SETTLE_MODE)
        if isinstance(tag, bytes) and len(tag) > TAG_BYTES_MAX:
            self._end(link, Fault("delivery-tag-too-long", f"{len(tag)} octets, {TAG_BYTES_MAX} may be"))
            return False
        if mode == _SECOND and not link.settles_second:
            self._end(link, Fault("settle-mode-not-agreed", "rcv-settle-mode second, where first was agreed on"))
            return False
        if mode == _FIRST and link.settles_second:
            link.settles_first(at(delivery))
        if transfer.field(_RESUME) is True:
            link.resumed = at(delivery)
        return True

    def _pass_over(self, link: Incoming, delivery: Any) -> None:
        """A transfer on a link that has been closed: its octets are not kept, however much comes."""
        if lib.pn_link_current(link._pointer) == delivery:
            while _recv(link._pointer, self._buffer_pointer, len(self._buffer)) > 0:
                pass
            if not _partial(delivery):
                _advance(link._pointer)
                link.passed_over += 1
                if link.passed_over == self._late_max + 1:  # each is kept by proton until the link is detached
                    words = f"more than {self._late_max} transfers on a link that was closed"
                    self.fault(Fault("errant-link", words, link.attach.channel))

    def _on_partial(self, link: Incoming, delivery: Any) -> None:
        if lib.pn_delivery_pending(delivery) > self._message_size_max:
            self._too_large(link)
        elif link.reports_partial[_settled(delivery)] and not link.partial_reported:
            link.partial_reported = True
            link.arrived.append(at(delivery))
            self.facts.append(Partial(link, _settled(delivery), _transaction(delivery)))

    def _on_disposition(self, link: Outgoing, delivery: Any) -> None:
        code = _remote_state(delivery)
        transaction: bytes | None = None
        if code == TRANSACTIONAL:
            transaction, state = transactional_state(delivery)
        else:
            state = _STATES.get(code, "unknown")
        peer_settled = bool(_settled(delivery))
        if state == "modified" and transaction is None:
            state = _modified(delivery)
        silent = state == "unstated" and transaction is None and not peer_settled
        if silent and link.silence is None:
            return  # it says nothing yet (1.3-O)
        number = at(delivery)
        numbers = link.unsettled.get(number)
        if numbers is None:
            self._on_second_disposition(link, number, state)
            return
        if state != "received" or peer_settled or transaction is not None:
            link.stated(number, numbers[0], str(link.silence) if silent else state, peer_settled)
        facts = self.facts
        last = facts[-1] if facts else None
        if (
            type(last) is not Dispositions
            or last.link is not link
            or last.state != state
            or last.peer_settled != peer_settled
            or last.repeated
            or last.transaction != transaction
        ):
            last = Dispositions(link, state, peer_settled, transaction=transaction)
            facts.append(last)
        last.seqs.append(numbers[0])
        last.eids.append(numbers[1])

    def _on_second_disposition(self, link: Outgoing, number: int, state: str) -> None:
        """The peer speaks again of a delivery that it has stated and that waits for us: the same is harmless,
        another is not (H-9)."""
        earlier = link.waiting.get(number)
        if earlier is None:
            return
        if state not in ("unstated", "received", earlier[1]):
            self.fault(Fault("conflicting-outcome", f"{earlier[1]}, then {state}"), link)
        else:
            self.facts.append(Dispositions(link, earlier[1], False, [earlier[0]], [-1], repeated=True))


def _to_nobody(_: Any, kind: int) -> None:
    """The connection has gone."""


@cache
def _scratch(size: int) -> tuple[Any, Any]:
    """One buffer for all engines: they live on one thread, and nothing stays in it. A slice of the first is a copy."""
    octets = ffi.new("char[]", size)
    return ffi.buffer(octets), octets


def _transaction(delivery: Any) -> bytes | None:
    return transactional_state(delivery)[0] if _remote_state(delivery) == TRANSACTIONAL else None


def _modified(delivery: Any) -> str:
    disposition = lib.pn_delivery_remote(delivery)
    failed = lib.pn_disposition_is_failed(disposition)
    undeliverable = lib.pn_disposition_is_undeliverable(disposition)
    return "modified" + ("-failed" if failed else "") + ("-undeliverable" if undeliverable else "")
