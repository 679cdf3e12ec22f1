"""The engine: proton as a sans-IO machine. Bytes in, facts out; decisions in, bytes out. One a connection.

The files of this folder are the fence: in a gateway nothing outside them touches proton, and no buffer of proton's
leaves uncopied. Frames are pushed as the frame reader cuts them, and what proton says of each piece is read before
the next one goes in. Proton reports a malformed performative by going
silent (`semantics.md` 4.2): here that is a fault like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cproton
from cproton import ffi, lib

from gateway.amqp.binding import at
from gateway.amqp.deliveries import Deliveries
from gateway.amqp.ended_sessions import EndedSessions
from gateway.amqp.facts import Asked, Attached, Closed, Detached, Fact, Flowed, Opened, SessionEnded
from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_ends import Link, Outgoing, set_condition
from gateway.amqp.link_owner import UNOWNED
from gateway.amqp.output import Output
from gateway.amqp.proton_data import error, offer_to_connection, say_of_connection
from gateway.frames.endpoints import Endpoints
from gateway.frames.frame_reader import FrameReader, TransferRun
from gateway.frames.frames import ATTACH, BEGIN, FLOW, OPEN, TRANSFER, Fault, Frame
from gateway.frames.multi_transfer import Part
from gateway.frames.stated_in_transactions import Stated, stated_by
from transformers.codec import Symbol

_OPEN_WITHOUT_CONTAINER = b"\x00\x00\x00\x10\x02\x00\x00\x00\x00\x53\x10\xc0\x03\x01\xa1\x00"
_ATTACH_HANDLE, _FLOW_HANDLE, _FLOW_DRAIN, _FLOW_ECHO, _FLOW_PROPERTIES = 1, 4, 8, 9, 10
_TRANSFER_HANDLE = 0
_TRANSACTION = "txn-id"  # among the properties of a flow


class Engine:
    """One connection's AMQP, server side, from behind SASL on.

    `receive` -> `take_facts` -> (decisions through the links and `close`) -> `data_to_send`.
    """

    def __init__(
        self,
        container: str,
        frame_size_max: int,
        message_size_max: int,
        channel_max: int,
        idle_timeout_ms: int,
        late_max: int,
        handles_max: int,
        capabilities: Sequence[str] = (),
        opening: Callable[[Frame], Sequence[tuple[Symbol, Any]]] | None = None,
    ) -> None:
        """`handles_max`: links of one session. `opening` gives the properties of our OPEN, when the peer's is read."""
        self._connection = lib.pn_connection()
        self._transport = lib.pn_transport()
        self._collector = lib.pn_collector()
        lib.pn_transport_set_server(self._transport)
        lib.pn_transport_set_max_frame(self._transport, frame_size_max)
        lib.pn_transport_set_channel_max(self._transport, channel_max)
        lib.pn_transport_set_idle_timeout(self._transport, idle_timeout_ms)
        lib.pn_connection_collect(self._connection, self._collector)
        cproton.pn_connection_set_container(self._connection, container)
        if capabilities:
            offer_to_connection(self._connection, capabilities)
        lib.pn_transport_bind(self._transport, self._connection)
        self._handle_max = handles_max - 1
        self._endpoints = Endpoints(channel_max, handles_max)
        self.frame_reader = FrameReader(frame_size_max, message_size_max, self._endpoints)
        self._opening = opening or _no_properties
        self._header_left = 8
        self._opened = False
        self._links: dict[Any, Link] = {}
        self._attached = 0  # links, ever
        self._on_session: dict[int, int] = {}  # links, by session
        self._sessions: dict[int, Any] = {}  # by the peer's channel, until it ends them
        self._ended = EndedSessions()
        self._deliveries = Deliveries(self._collector, self._links, message_size_max, late_max, self._on_event)
        self.in_part = self._deliveries.in_part
        self._freed = False
        self._asking: Frame | None = None  # the FLOW that is pushed now, where it may want an answer
        self._output = Output(self._transport)

    # -- bytes in

    def receive(self, data: bytes | memoryview, effort_max: int = 0) -> None:
        """Read what the peer sent. Facts pile up until they are taken. What `frame_reader` leaves unread at
        `effort_max` is to be given again."""
        deliveries = self._deliveries
        if deliveries.failed:
            self.frame_reader.effort, self.frame_reader.unread = 0, b""
            return
        if self._header_left:
            cut = min(self._header_left, len(data))
            self._header_left -= cut
            self._push(data, 0, cut)
            data = data[cut:]
        for octets, start, end, frame in self.frame_reader.walk(data, effort_max):
            before = len(deliveries.facts)
            if type(frame) is TransferRun:
                deliveries.begin_run(frame)
                self._push(octets, start, end)
                deliveries.end_run()
                self.frame_reader.effort += len(deliveries.facts) - before
                if deliveries.failed:
                    return
                continue
            if isinstance(frame, Fault):
                self._deliveries.fault(frame, session=None if frame.channel is None else self.session(frame.channel))
                if self._deliveries.failed:
                    return
                continue
            stated, frame = (frame, None) if type(frame) is Stated else (None, frame)
            part, frame = (frame, frame.frame) if type(frame) is Part else (None, frame)
            assert not isinstance(frame, TransferRun | Part | Stated)
            self._deliveries.frame, self._deliveries.part = frame, part
            if part is not None and part.fault is not None:
                link = self._link_at(part.frame.channel, part.frame.field(_TRANSFER_HANDLE))
                self._deliveries.end(link, part.fault, part.delivery.tag)
            if frame is not None and frame.code == OPEN:
                self._opened = True
                self._deliveries.facts.append(Opened(frame))
                if properties := self._opening(frame):
                    say_of_connection(self._connection, properties)
            if frame is not None and frame.code == FLOW:
                self._look_at_flow(frame)  # first: nothing may go out under a transaction that is not there
                self._push_flow(frame, octets, start, end)
            else:
                self._push(octets, start, end)
                self.frame_reader.effort += len(deliveries.facts) - before if frame is None else 0
            if stated is not None or (stated := stated_by(frame)) is not None:
                deliveries.compare(stated, self.session)
            if self._deliveries.failed:
                return

    def _link_at(self, channel: int, handle: int) -> Link | None:
        """By the peer's channel and handle."""
        at = channel, handle
        return next((link for link in self._links.values() if link.alive and _place(link) == at), None)

    def _push(self, data: bytes | memoryview, start: int, end: int) -> None:
        view = memoryview(data)[start:end]
        while view:
            taken = lib.pn_transport_push(self._transport, ffi.from_buffer(view), len(view))
            self._deliveries.read()
            if taken <= 0:
                self._went_silent()
                return
            view = view[taken:]
        if lib.pn_transport_capacity(self._transport) < 0:  # it choked on the last of it
            self._went_silent()

    def _went_silent(self) -> None:
        """Proton takes no more bytes. Where it says why, it has written a CLOSE itself, whose condition AMQP may not
        define: the table decides which condition the peer gets. Else the frame was malformed."""
        condition = lib.pn_transport_condition(self._transport)
        if lib.pn_condition_is_set(condition):
            name = cproton.pn_condition_get_name(condition)
            kind = "framing" if name == "amqp:connection:framing-error" else "malformed-performative"
            detail = cproton.pn_condition_get_description(condition) or ""
            self._output.hold_close()
        elif lib.pn_connection_state(self._connection) & lib.PN_REMOTE_CLOSED:
            self._deliveries.failed = True
            return
        else:
            kind, detail = "malformed-performative", "a frame that cannot be decoded"
        self._deliveries.fault(Fault(kind, detail))

    def _push_flow(self, frame: Frame, octets: bytes | memoryview, start: int, end: int) -> None:
        """Proton answers no `echo`, and a drain only where there is credit to be used up (U-4, U-5)."""
        self._asking = frame if frame.field(_FLOW_ECHO) is True or frame.field(_FLOW_DRAIN) is True else None
        self._push(octets, start, end)
        self._asking = None
        if frame.field(_FLOW_ECHO) is True and frame.field(_FLOW_HANDLE) is None:
            self._deliveries.facts.append(Asked(frame.channel))

    def _on_flow(self, link: Link | None) -> None:
        if isinstance(link, Outgoing):
            self._deliveries.facts.append(Flowed(link))
        asking = self._asking
        if asking is None or link is None or _place(link) != (asking.channel, asking.field(_FLOW_HANDLE)):
            return  # proton says of others, too, that their credit has changed
        self._asking = None
        if asking.field(_FLOW_ECHO) is True or (isinstance(link, Outgoing) and link.credit <= 0):
            self._deliveries.facts.append(Asked(asking.channel, link))  # type: ignore[arg-type]

    def _look_at_flow(self, frame: Frame) -> None:
        """What proton does not see of a FLOW: a transaction to acquire under (W-11). Other properties say nothing that
        is known here, and are passed over."""
        properties = frame.field(_FLOW_PROPERTIES)
        if properties is not None and properties.get(_TRANSACTION) is not None:
            link = self._link_at(frame.channel, frame.field(_FLOW_HANDLE))
            if isinstance(link, Outgoing):
                self._deliveries.fault(Fault("transactional-acquisition", "a flow with a txn-id"), link)

    # -- proton's events to facts, but for deliveries

    def _on_event(self, event: Any, kind: int) -> None:
        if kind == lib.PN_LINK_FLOW:
            self._on_flow(self._links.get(lib.pn_event_link(event)))
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
            self._deliveries.facts.append(Closed(cproton.pn_condition_get_name(condition) or ""))
        elif kind == lib.PN_LINK_LOCAL_CLOSE or kind == lib.PN_LINK_LOCAL_DETACH:
            self._free_if_done(lib.pn_event_link(event))

    def _on_begin(self, session: Any) -> None:
        frame = self._deliveries.frame
        assert frame is not None and frame.code == BEGIN, "a session opened without a BEGIN of its own"
        self._sessions[frame.channel] = session
        if len(self._sessions) + len(self._ended) > lib.pn_transport_get_channel_max(self._transport) + 1:
            self._ended.answer_all()  # each channel of ours is taken
            lib.pn_transport_pending(self._transport)
        # Answered before the next frame is read: after an END, proton no longer says whose BEGIN it answers.
        lib.pn_connection_open(self._connection)
        self._output.flush()
        lib.pn_session_open(session)
        self._output.flush_begin(self._handle_max)

    def _on_attach(self, pointer: Any) -> None:
        frame = self._deliveries.frame
        assert frame is not None and frame.code == ATTACH, "a link opened without an ATTACH of its own"
        session = at(lib.pn_link_session(pointer))
        link = (Outgoing if lib.pn_link_is_sender(pointer) else Incoming)(pointer, frame, session, self._output)
        if isinstance(link, Outgoing):
            link.numbers = self._endpoints.sessions[frame.channel]
        else:
            link.forget_unfinished = self.in_part.take
        self._links[pointer] = link
        self._attached = link.ordinal = self._attached + 1
        self._on_session[session] = self._on_session.get(session, 0) + 1
        self._deliveries.facts.append(Attached(link))

    def _on_detach(self, pointer: Any, closed: bool) -> None:
        link = self._links.get(pointer)
        if link is None:
            return
        link.left = True
        if link.alive:
            self._deliveries.facts.append(Detached(link, closed))  # type: ignore[arg-type]
        else:
            self._free_if_done(pointer)

    def _free_if_done(self, pointer: Any) -> None:
        link = self._links.get(pointer)
        if link is not None and link.left and not link.alive:
            del self._links[pointer]
            self._on_session[link.session] -= 1
            link.free()

    def _on_end(self, session: Any) -> None:
        number = at(session)
        gone = [pointer for pointer, link in self._links.items() if link.session == number]
        links = [self._links.pop(pointer) for pointer in gone]
        self._on_session.pop(number, None)
        self._sessions = {channel: other for channel, other in self._sessions.items() if other != session}
        self._ended.add(session, links)
        self._deliveries.facts.append(SessionEnded(number, tuple(links)))  # type: ignore[arg-type]

    # -- decisions in

    @property
    def unsent(self) -> int:
        """Octets not written yet: those of this turn, and messages for which the peer's sessions have no room."""
        octets = self._output.size
        if self._output.keeps:
            kept = sum(int(lib.pn_session_outgoing_bytes(session)) for session in self._sessions.values())
            self._output.keeps = kept > 0
            octets += kept
        return octets

    def take_facts(self) -> list[Fact]:
        facts, self._deliveries.facts = self._deliveries.facts, []
        return facts

    def open(self) -> None:
        lib.pn_connection_open(self._connection)

    def links_on(self, session: int) -> int:
        """How many links that session has, with those that only one side has closed."""
        return self._on_session.get(session, 0)

    def unfinished(self, session: int, transaction: bytes) -> bool:
        """Whether a message is here in part only, on that session and in that transaction."""
        here = [link for link in self._links.values() if isinstance(link, Incoming) and link.session == session]
        return any(link.unfinished is not None and link.unfinished.transaction == transaction for link in here)

    def links(self) -> list[Link]:
        """Every link that is not freed."""
        return list(self._links.values())

    def session(self, channel: int | None) -> int | None:
        """The number of the peer's session on that channel, as its links have it."""
        session = None if channel is None else self._sessions.get(channel)
        return None if session is None else at(session)

    def tell_session(self, channel: int) -> None:
        """Where the peer's session on that channel stands, though nothing has changed."""
        session = self._sessions.get(channel)
        if session is not None and not lib.pn_session_state(session) & lib.PN_LOCAL_CLOSED:
            self._output.tell_flow(session)

    def end_session(self, channel: int, condition: str, description: str) -> None:
        """End the peer's session on that channel, whose links have ended. A second end does nothing."""
        session = self._sessions.get(channel)
        if session is None or lib.pn_session_state(session) & lib.PN_LOCAL_CLOSED:
            return
        set_condition(lib.pn_session_condition(session), condition, description)
        lib.pn_session_close(session)
        self._endpoints.discards.add(channel)
        cut = [link for link in self._links.values() if link.session == at(session) and isinstance(link, Outgoing)]
        if half_sent := [link for link in cut if link.is_half_sent]:
            self._output.flush()
            for link in half_sent:  # what would open its window is not heard: the END would never go out
                flow = link.let_go()
                self._push(flow, 0, len(flow))
            self._output.flush_but(TRANSFER)

    def answer_end(self, session: int) -> None:
        """The peer has ended that session, and what went with it is done. A second answer does nothing."""
        self._ended.answer(session)

    def close(self, condition: str | None = None, description: str = "") -> None:
        """Send CLOSE, after an OPEN of ours if there was none yet."""
        lib.pn_connection_open(self._connection)
        if not self._opened and not self._header_left:  # proton sends no CLOSE to a peer without an OPEN
            self._push(_OPEN_WITHOUT_CONTAINER, 0, len(_OPEN_WITHOUT_CONTAINER))
            self._opened = True
        if condition:
            set_condition(lib.pn_connection_condition(self._connection), condition, description)
        lib.pn_connection_close(self._connection)
        self._output.say_close(error(condition, description) if condition else None)

    # -- bytes out

    def data_to_send(self) -> list[bytes | bytearray]:
        """Everything that is due now, in pieces; empty when there is nothing."""
        self._deliveries.read()
        pieces = self._output.take()
        self._deliveries.read()
        self._ended.free()
        return pieces

    def flush(self) -> None:
        """What was decided so far is written ahead of what will be (W-9)."""
        self._output.flush()

    @property
    def finished(self) -> bool:
        """Nothing will be sent any more: the socket may be closed."""
        return int(lib.pn_transport_pending(self._transport)) < 0

    def beat(self) -> None:
        """An empty frame, behind everything that was decided so far."""
        self._output.beat()

    def free(self) -> None:
        """Give everything back. Links forget their pointers first."""
        if self._freed:
            return
        self._freed = self._deliveries.failed = self._output.closed = True
        for link in [*self._links.values(), *self._ended.links()]:
            link.forget()
            link.owner = UNOWNED
            if isinstance(link, Outgoing):
                link.unsettled = {}
        self._links.clear()
        self._ended.clear()
        self._opening = _no_properties  # nothing here leads back to itself: what has gone is no work for the collector
        self._deliveries.free()
        lib.pn_transport_unbind(self._transport)
        lib.pn_collector_release(self._collector)
        lib.pn_connection_release(self._connection)
        lib.pn_decref(self._connection)
        lib.pn_decref(self._transport)
        lib.pn_collector_free(self._collector)


def _no_properties(_: Frame) -> Sequence[tuple[Symbol, Any]]:
    return ()


def _place(link: Link) -> tuple[int, Any]:
    """Channel and handle, as its peer has them."""
    return link.attach.channel, link.attach.field(_ATTACH_HANDLE)
