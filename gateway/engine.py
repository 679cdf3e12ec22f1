"""The engine: proton as a sans-IO machine. Bytes in, facts out; decisions in, bytes out. One a connection.

This file and `engine_links.py` are the fence: nothing outside them touches proton, and no buffer of proton's leaves
uncopied. The frames are pushed as the tap cuts them, and what proton says of each piece is read before the next one
goes in. Proton reports a malformed performative by going silent (`semantics.md` 4.2): here that is a fault like any
other. May import: `cproton`, `gateway.engine_links`, `gateway.facts`, `gateway.frames`,
`gateway.handles`, `gateway.tap`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import cproton
from cproton import ffi, lib

from gateway.engine_links import Incoming, Link, Outgoing, set_condition
from gateway.facts import (
    Attached,
    Closed,
    Detached,
    Dispositions,
    Fact,
    Faulted,
    Flowed,
    Opened,
    Partial,
    Transfers,
)
from gateway.frames import ATTACH, BEGIN, FLOW, OPEN, Fault, Frame
from gateway.handles import Handles
from gateway.tap import Tap

_ATTACH_HANDLE, _FLOW_HANDLE, _FLOW_PROPERTIES = 1, 4, 10
_TRANSACTIONAL: Final = 0x34
_ACCEPTED: Final = 0x24
_STATES: Final = {
    0: "unstated",
    0x23: "received",
    0x24: "accepted",
    0x25: "rejected",
    0x26: "released",
    0x27: "modified",
    0x34: "transactional",
}
_peek, _pop, _type_of = lib.pn_collector_peek, lib.pn_collector_pop, lib.pn_event_type
_event_delivery, _delivery_link = lib.pn_event_delivery, lib.pn_delivery_link
_partial, _settled, _recv, _advance = (
    lib.pn_delivery_partial,
    lib.pn_delivery_settled,
    lib.pn_link_recv,
    lib.pn_link_advance,
)
_remote_state, _settle = lib.pn_delivery_remote_state, lib.pn_delivery_settle


class Engine:
    """One connection's AMQP, server side, from behind SASL on.

    `receive` -> `take_facts` -> (decisions through the links and `close`) -> `data_to_send`.
    """

    def __init__(
        self, container: str, frame_size_max: int, message_size_max: int, channel_max: int, idle_timeout_ms: int
    ) -> None:
        self._connection = lib.pn_connection()
        self._transport = lib.pn_transport()
        self._collector = lib.pn_collector()
        lib.pn_transport_set_server(self._transport)
        lib.pn_transport_set_max_frame(self._transport, frame_size_max)
        lib.pn_transport_set_channel_max(self._transport, channel_max)
        lib.pn_transport_set_idle_timeout(self._transport, idle_timeout_ms)
        lib.pn_connection_collect(self._connection, self._collector)
        cproton.pn_connection_set_container(self._connection, container)
        lib.pn_transport_bind(self._transport, self._connection)
        self._tap = Tap(frame_size_max, Handles(channel_max))
        self._header_left = 8
        self._message_size_max = message_size_max
        self._buffer, self._buffer_pointer = _scratch(message_size_max + 1)
        self._links: dict[Any, Link] = {}
        self._sessions: dict[int, Any] = {}  # by the peer's channel, until it ends them
        self._facts: list[Fact] = []
        self._frame: Frame | None = None
        self._freed = False
        self.failed = False  # nothing more is read
        self.closed = False  # both sides have closed

    # -- bytes in

    def receive(self, data: bytes) -> None:
        """Read what the peer sent. Facts pile up until they are taken."""
        if self.failed:
            return
        if self._header_left:
            cut = min(self._header_left, len(data))
            self._header_left -= cut
            self._push(data, 0, cut)
            data = data[cut:]
        data, pieces = self._tap.walk(data)
        for start, end, frame in pieces:
            if isinstance(frame, Fault):
                self._fault(frame)
                if self.failed:
                    return
                continue
            self._frame = frame
            if frame is not None and frame.code == OPEN:
                self._facts.append(Opened(frame))
            self._push(data, start, end)
            if frame is not None and frame.code == FLOW:
                self._look_at_flow(frame)
            if self.failed:
                return

    def _push(self, data: bytes, start: int, end: int) -> None:
        view = memoryview(data)[start:end]
        while len(view):
            taken = lib.pn_transport_push(self._transport, ffi.from_buffer(view), len(view))
            self._read_events()
            if taken <= 0:
                self._went_silent()
                return
            view = view[taken:]

    def _went_silent(self) -> None:
        """Proton takes no more bytes. Where it says why, it has queued the CLOSE itself; else the frame was
        malformed."""
        condition = lib.pn_transport_condition(self._transport)
        if lib.pn_condition_is_set(condition):
            name = cproton.pn_condition_get_name(condition)
            kind = "framing" if name == "amqp:connection:framing-error" else "malformed-performative"
            detail = cproton.pn_condition_get_description(condition) or ""
        elif lib.pn_connection_state(self._connection) & lib.PN_REMOTE_CLOSED:
            self.failed = True
            return
        else:
            kind, detail = "malformed-performative", "a frame that cannot be decoded"
        self._fault(Fault(kind, detail))

    def _fault(self, fault: Fault, link: Link | None = None) -> None:
        if link is None and fault.channel is None:
            self.failed = True
        self._facts.append(Faulted(fault, link))  # type: ignore[arg-type]

    def _look_at_flow(self, frame: Frame) -> None:
        """What proton does not see of a FLOW: properties (a transaction to acquire under, W-11)."""
        properties = frame.field(_FLOW_PROPERTIES)
        if properties:
            for link in list(self._links.values()):
                at = (link.attach.channel, link.attach.field(_ATTACH_HANDLE))
                if isinstance(link, Outgoing) and link.alive and at == (frame.channel, frame.field(_FLOW_HANDLE)):
                    self._fault(Fault("transactional-acquisition", "flow with properties"), link)

    # -- proton's events to facts

    def _read_events(self) -> None:
        collector, delivery = self._collector, lib.PN_DELIVERY
        while True:
            event = _peek(collector)
            if not event:
                return
            if _type_of(event) == delivery:
                link = self._links.get(_delivery_link(_event_delivery(event)))
                if type(link) is Outgoing:
                    self._read_dispositions(link, event)
                elif self._frame is None and type(link) is Incoming:
                    self._read_transfers(link, event)
                else:
                    if type(link) is Incoming:
                        self._on_transfer(link, _event_delivery(event))
                    _pop(collector)
            else:
                self._on_event(event, _type_of(event))
                _pop(collector)

    # The two loops below carry every message: they stay with one link as long as its events last.

    def _read_transfers(self, link: Incoming, event: Any) -> None:
        """A plain run: every delivery is new and complete, its sender's own dispositions are frames of their own."""
        if link.broken:
            self._pass_over(link, _event_delivery(event))
            _pop(self._collector)
            return
        collector, kind, pointer = self._collector, lib.PN_DELIVERY, link._pointer
        buffer, scratch, size_max = self._buffer, self._buffer_pointer, len(self._buffer)
        fact = self._transfers_of(link)
        message, presettled, arrived = fact.messages.append, fact.presettled.append, link.arrived.append
        link.partial_reported = False
        while True:
            delivery = _event_delivery(event)
            if _delivery_link(delivery) != pointer:
                return
            size = _recv(pointer, scratch, size_max)
            if size >= size_max:
                if not fact.messages:
                    self._facts.pop()
                self._too_large(link)
                return  # the event stays, and is passed over with all that follow it
            message(bytes(buffer[:size]) if size > 0 else b"")
            presettled(_settled(delivery))
            arrived(delivery)
            _advance(pointer)
            _pop(collector)
            event = _peek(collector)
            if not event or _type_of(event) != kind:
                return

    def _read_dispositions(self, link: Outgoing, event: Any) -> None:
        """What consumers send most: deliveries accepted and settled, one after the other."""
        collector, kind, pointer = self._collector, lib.PN_DELIVERY, link._pointer
        take, seqs, eids = link.unsettled.pop, [], []
        while True:
            delivery = _event_delivery(event)
            if _delivery_link(delivery) != pointer:
                break
            if _remote_state(delivery) == _ACCEPTED and _settled(delivery):
                numbers = take(delivery, None)
                if numbers is not None:
                    seqs.append(numbers[0])
                    eids.append(numbers[1])
                    _settle(delivery)  # nothing will be said to it: the peer has settled
            else:
                if seqs:
                    self._facts.append(Dispositions(link, "accepted", True, seqs, eids))
                    seqs, eids = [], []
                self._on_disposition(link, delivery)
            _pop(collector)
            event = _peek(collector)
            if not event or _type_of(event) != kind:
                break
        if seqs:
            self._facts.append(Dispositions(link, "accepted", True, seqs, eids))

    def _transfers_of(self, link: Incoming, transactional: bool = False) -> Transfers:
        """The run of messages that this link is in, or a new one."""
        last = self._facts[-1] if self._facts else None
        if type(last) is not Transfers or last.link is not link or transactional or last.transactional:
            last = Transfers(link, transactional=transactional)
            self._facts.append(last)
        return last

    def _too_large(self, link: Incoming) -> None:
        if not link.broken:
            link.broken = True
            self._fault(Fault("message-too-large", f"more than {self._message_size_max} bytes"), link)

    def _on_transfer(self, link: Incoming, delivery: Any) -> None:
        """A delivery whose frame stood alone: it may be partial, aborted, or carry a state."""
        pointer = link._pointer
        if link.broken:
            self._pass_over(link, delivery)
            return
        if lib.pn_link_current(pointer) != delivery:
            return  # the publisher's own disposition for a delivery that is already ours
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
        fact = self._transfers_of(link, _remote_state(delivery) == _TRANSACTIONAL)
        fact.messages.append(bytes(self._buffer[:size]) if size > 0 else b"")
        fact.presettled.append(_settled(delivery))
        link.arrived.append(delivery)
        _advance(pointer)

    def _pass_over(self, link: Incoming, delivery: Any) -> None:
        """A transfer on a link that has been closed: its octets are not kept, however much comes."""
        if lib.pn_link_current(link._pointer) == delivery:
            while _recv(link._pointer, self._buffer_pointer, len(self._buffer)) > 0:
                pass
            if not _partial(delivery):
                _advance(link._pointer)

    def _on_partial(self, link: Incoming, delivery: Any) -> None:
        if lib.pn_delivery_pending(delivery) > self._message_size_max:
            self._too_large(link)
        elif link.reports_partial[_settled(delivery)] and not link.partial_reported:
            link.partial_reported = True
            link.arrived.append(delivery)
            self._facts.append(Partial(link, _settled(delivery)))

    def _on_disposition(self, link: Outgoing, delivery: Any) -> None:
        code = _remote_state(delivery)
        state = _STATES.get(code, "unknown")
        peer_settled = bool(_settled(delivery))
        if state == "modified":
            state = _modified(delivery)
        if state == "unstated" and not peer_settled:
            return  # it says nothing yet (1.3-O)
        numbers = link.unsettled.get(delivery)
        if numbers is None:
            self._on_second_disposition(link, delivery, state)
            return
        if state != "received" or peer_settled:
            link.stated(delivery, numbers[0], state, peer_settled)
        facts = self._facts
        last = facts[-1] if facts else None
        if (
            type(last) is not Dispositions
            or last.link is not link
            or last.state != state
            or last.peer_settled != peer_settled
            or last.repeated
        ):
            last = Dispositions(link, state, peer_settled)
            facts.append(last)
        last.seqs.append(numbers[0])
        last.eids.append(numbers[1])

    def _on_second_disposition(self, link: Outgoing, delivery: Any, state: str) -> None:
        """The peer speaks again of a delivery that it has stated and that waits for us: the same is harmless,
        another is not (H-9)."""
        earlier = link.waiting.get(delivery)
        if earlier is None:
            return
        if state not in ("unstated", "received", earlier[1]):
            self._fault(Fault("conflicting-outcome", f"{earlier[1]}, then {state}"), link)
        else:
            self._facts.append(Dispositions(link, earlier[1], False, [earlier[0]], [-1], repeated=True))

    def _on_event(self, event: Any, kind: int) -> None:
        if kind == lib.PN_LINK_FLOW:
            link = self._links.get(lib.pn_event_link(event))
            if isinstance(link, Outgoing):
                self._facts.append(Flowed(link))
        elif kind == lib.PN_LINK_REMOTE_OPEN:
            self._on_attach(lib.pn_event_link(event))
        elif kind in (lib.PN_LINK_REMOTE_CLOSE, lib.PN_LINK_REMOTE_DETACH):
            self._on_detach(lib.pn_event_link(event), kind == lib.PN_LINK_REMOTE_CLOSE)
        elif kind == lib.PN_SESSION_REMOTE_OPEN:
            self._on_begin(lib.pn_event_session(event))
        elif kind == lib.PN_SESSION_REMOTE_CLOSE:
            self._on_end(lib.pn_event_session(event))
        elif kind == lib.PN_CONNECTION_REMOTE_CLOSE:
            condition = lib.pn_connection_remote_condition(self._connection)
            self._facts.append(Closed(cproton.pn_condition_get_name(condition) or ""))
        elif kind == lib.PN_LINK_LOCAL_CLOSE or kind == lib.PN_LINK_LOCAL_DETACH:
            self._free_if_done(lib.pn_event_link(event))

    def _on_begin(self, session: Any) -> None:
        assert self._frame is not None and self._frame.code == BEGIN, "a session opened without a BEGIN of its own"
        self._sessions[self._frame.channel] = session
        # Answered before the next frame is read: after an END, proton no longer says whose BEGIN it answers.
        lib.pn_connection_open(self._connection)
        lib.pn_session_open(session)
        lib.pn_transport_pending(self._transport)

    def _on_attach(self, pointer: Any) -> None:
        frame = self._frame
        if frame is None or frame.code != ATTACH:
            raise AssertionError("a link opened without an ATTACH of its own")
        session = int(ffi.cast("uintptr_t", lib.pn_link_session(pointer)))
        maker = Outgoing if lib.pn_link_is_sender(pointer) else Incoming
        link = maker(pointer, frame, session)
        self._links[pointer] = link
        self._facts.append(Attached(link))

    def _on_detach(self, pointer: Any, closed: bool) -> None:
        link = self._links.get(pointer)
        if link is None:
            return
        if link.alive:
            self._facts.append(Detached(link, closed))  # type: ignore[arg-type]
        else:
            self._free_if_done(pointer)

    def _free_if_done(self, pointer: Any) -> None:
        both = lib.PN_LOCAL_CLOSED | lib.PN_REMOTE_CLOSED
        if pointer in self._links and lib.pn_link_state(pointer) & both == both:
            self._links.pop(pointer).free()

    def _on_end(self, session: Any) -> None:
        number = int(ffi.cast("uintptr_t", session))
        for pointer, link in list(self._links.items()):
            if link.session == number:
                if link.alive:
                    self._facts.append(Detached(link, False))  # type: ignore[arg-type]
                del self._links[pointer]
        self._sessions = {channel: other for channel, other in self._sessions.items() if other != session}
        lib.pn_session_close(session)

    # -- decisions in

    def take_facts(self) -> list[Fact]:
        facts, self._facts = self._facts, []
        return facts

    def open(self) -> None:
        lib.pn_connection_open(self._connection)

    def links(self) -> list[Link]:
        """Every link that is not freed."""
        return list(self._links.values())

    def end_session(self, channel: int, condition: str, description: str) -> list[Link]:
        """End the peer's session on that channel; the links that went with it. A second end does nothing."""
        session = self._sessions.get(channel)
        if session is None or lib.pn_session_state(session) & lib.PN_LOCAL_CLOSED:
            return []
        number = int(ffi.cast("uintptr_t", session))
        set_condition(lib.pn_session_condition(session), condition, description)
        lib.pn_session_close(session)
        return [link for link in self._links.values() if link.session == number and link.alive]

    def close(self, condition: str | None = None, description: str = "") -> None:
        """Send CLOSE, after an OPEN of ours if there was none yet."""
        lib.pn_connection_open(self._connection)
        if condition:
            set_condition(lib.pn_connection_condition(self._connection), condition, description)
        lib.pn_connection_close(self._connection)

    # -- bytes out

    def data_to_send(self) -> bytes | bytearray:
        """Everything that is due now; empty when there is nothing."""
        out: list[bytearray] = []
        self._read_events()
        while True:
            count = lib.pn_transport_pending(self._transport)
            if count <= 0:
                break
            piece = bytearray(count)
            lib.pn_transport_peek(self._transport, ffi.from_buffer(piece), count)
            lib.pn_transport_pop(self._transport, count)
            out.append(piece)
        self._read_events()
        return out[0] if len(out) == 1 else b"".join(out)

    @property
    def finished(self) -> bool:
        """Nothing will be sent any more: the socket may be closed."""
        return int(lib.pn_transport_pending(self._transport)) < 0

    def tick(self, now_ms: int) -> None:
        """Heartbeats and the peer's silence, on the caller's clock (monotonic milliseconds, never 0)."""
        lib.pn_transport_tick(self._transport, now_ms)

    def free(self) -> None:
        """Give everything back. Links forget their pointers first."""
        if self._freed:
            return
        self._freed = self.failed = True
        for link in self._links.values():
            link.forget()
            if isinstance(link, Outgoing):
                link.unsettled = {}
        self._links.clear()
        lib.pn_transport_unbind(self._transport)
        lib.pn_collector_release(self._collector)
        lib.pn_connection_release(self._connection)
        lib.pn_decref(self._transport)
        lib.pn_collector_free(self._collector)


@cache
def _scratch(size: int) -> tuple[memoryview, Any]:
    """One buffer for all engines: they live on one thread, and nothing stays in it."""
    buffer = memoryview(bytearray(size))
    return buffer, ffi.from_buffer(buffer)


def _modified(delivery: Any) -> str:
    disposition = lib.pn_delivery_remote(delivery)
    failed = lib.pn_disposition_is_failed(disposition)
    undeliverable = lib.pn_disposition_is_undeliverable(disposition)
    return "modified" + ("-failed" if failed else "") + ("-undeliverable" if undeliverable else "")
