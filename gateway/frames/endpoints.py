"""The sessions and link handles that the peer has open, and the delivery-ids of each session, read off its frames: a
frame for a link or a session that is not there (P-5), for one whose name is taken in that session, for a second session
on its channel (P-3), or about a delivery that was never sent is a fault before an engine sees it. An engine would close
the connection for it. A transfer from a peer that receives on its link is for no link either. And their order: OPEN
comes first and once, CLOSE last; proton takes them as they come. A peer that opens more sessions or links than it lets
us answer gets an error: proton alone would write no frame any more.

Source: semantics 2.P-3, 2.P-5, 4.2; AMQP 1.0 part 2 sections 2.4.1, 2.5.1, 2.6.2, 2.7.5, 2.7.6.
"""

from __future__ import annotations

from typing import Final

from gateway.frames.frames import ATTACH, BEGIN, CLOSE, DETACH, DISPOSITION, END, FLOW, OPEN, TRANSFER, Fault, Frame
from gateway.frames.multi_transfer import MultiTransfer
from gateway.frames.plain_frames import ANY_ID

_HANDLE_AT: Final = {ATTACH: 1, FLOW: 4, TRANSFER: 0, DETACH: 0}
_NAME_AT, _ROLE_AT = 0, 2
_CHANNEL_MAX_AT, _HANDLE_MAX_AT = 3, 4  # in OPEN and in BEGIN
_REMOTE_CHANNEL_AT: Final = 0
_ID_AT: Final = 1  # in a transfer
_DISPOSITION_ROLE_AT, _FIRST_AT, _LAST_AT = 0, 1, 2
_IDS: Final = 1 << 32  # they are counted round (part 2, 2.8.10: RFC 1982)
_BACK_MAX: Final = (1 << 31) - 1


class Session:
    """One of the peer's: its links, name and role of each by handle; and the delivery-ids of both ways."""

    __slots__ = ("given", "links", "links_max", "names", "next_id", "sent", "unfinished")

    def __init__(self, links_max: int) -> None:
        self.links_max = links_max
        self.links: dict[int, tuple[str, bool]] = {}
        self.names: set[tuple[str, bool]] = set()
        self.unfinished: dict[int, MultiTransfer] = {}  # by handle: the message that is here in part
        self.next_id = ANY_ID  # of what the peer sends
        self.sent = 0  # deliveries of the peer so far: their ids end before that
        self.given = 0  # deliveries that were given to be sent to the peer: their ids begin at 0

    def sends_on(self, handle: int) -> bool:
        """The peer, on a link of that handle."""
        return handle in self.links and not self.links[handle][1]


class Endpoints:
    """One connection's."""

    def __init__(self, channel_max: int, handles_max: int = 1024) -> None:
        """`handles_max`: of one session, with those of links that were refused and not detached yet. Our BEGIN says the
        highest, one less."""
        self._channel_max = channel_max
        self._handles_max = handles_max
        self._theirs_max = channel_max  # the highest channel on which the peer lets us begin
        self._opened = self._closed = False
        self.discards: set[int] = set()  # channels of sessions that have ended for us, and for the peer have not
        self.sessions: dict[int, Session] = {}  # by channel

    def misplaced(self, frame: Frame) -> Fault | None:
        """What may not come now, or not there, whatever it says."""
        code, channel = frame.code, frame.channel
        if code == OPEN and channel:
            return Fault("framing", f"OPEN on channel {channel}: it comes on channel 0")
        if (code == OPEN) == self._opened or self._closed:
            return Fault("out-of-order", f"performative 0x{code:x}: OPEN comes first, and CLOSE last")
        if channel not in self.sessions and code not in (OPEN, BEGIN, CLOSE):
            return Fault("out-of-order", f"performative 0x{code:x} on channel {channel}, which has no session")
        return None

    def see(self, frame: Frame) -> Fault | None:
        """Keep up with a frame that is in its place and whose fields are valid; what is wrong with it."""
        code, channel = frame.code, frame.channel
        self._opened, self._closed = True, code == CLOSE
        if code == OPEN:
            self._theirs_max = _bound(frame.field(_CHANNEL_MAX_AT), self._channel_max)
        elif code == BEGIN:
            return self._see_begin(frame)
        elif code == END:
            self.sessions.pop(channel, None)
            self.discards.discard(channel)
        elif code == ATTACH:
            return self._see_attach(frame, self.sessions[channel])
        elif code == DISPOSITION:
            return _see_disposition(frame, self.sessions[channel])
        elif code in _HANDLE_AT:
            return self._see_handle(frame, self.sessions[channel])
        return None

    def _see_begin(self, frame: Frame) -> Fault | None:
        channel = frame.channel
        if frame.field(_REMOTE_CHANNEL_AT) is not None:
            return Fault("invalid-field-of-connection", "begin.remote-channel is set, and answers no BEGIN of ours")
        if channel > self._channel_max:
            return Fault("framing", f"channel {channel}, above the channel-max of {self._channel_max}")
        if channel in self.sessions:
            return Fault("session-in-use", f"channel {channel} has a session already", channel)
        if len(self.sessions) > self._theirs_max:
            return Fault("framing", f"channel {channel}: we may begin no more by its channel-max")
        self.sessions[channel] = Session(_bound(frame.field(_HANDLE_MAX_AT), self._handles_max - 1) + 1)
        return None

    def _see_handle(self, frame: Frame, session: Session) -> Fault | None:
        code, channel, handle = frame.code, frame.channel, frame.field(_HANDLE_AT[frame.code])
        if handle is None:
            return None  # a flow of the session
        if handle not in session.links:
            return _unattached(channel, handle)
        if code == TRANSFER:
            return _see_transfer(frame, handle, session)
        if code == DETACH:
            session.names.remove(session.links.pop(handle))
            session.unfinished.pop(handle, None)
        return None

    def _see_attach(self, frame: Frame, session: Session) -> Fault | None:
        channel, handle = frame.channel, frame.field(_HANDLE_AT[ATTACH])
        name, role = frame.field(_NAME_AT), frame.field(_ROLE_AT)
        if handle >= self._handles_max:
            return Fault("framing", f"handle {handle}, above the handle-max of {self._handles_max - 1}")
        if handle in session.links:
            return Fault("handle-in-use", f"handle {handle} on channel {channel}", channel)
        if (name, role) in session.names:
            return Fault("link-name-in-use", f"{name[:200]!r} is attached on channel {channel} already", channel)
        if len(session.links) >= session.links_max:
            return Fault("too-many-links", f"more than {session.links_max} handles on channel {channel}", channel)
        session.links[handle] = name, role
        session.names.add((name, role))
        return None


def _see_transfer(frame: Frame, handle: int, session: Session) -> Fault | None:
    """Where the peer receives, proton would make a delivery of ours of it; and the connection would end for an id that
    is not the next one."""
    if not session.sends_on(handle):
        return _unattached(frame.channel, handle, " to send on")
    if handle not in session.unfinished:
        number, awaited = frame.field(_ID_AT), session.next_id
        if number is None or awaited not in (ANY_ID, number):
            due = "" if awaited == ANY_ID else f", {awaited} is next"
            return Fault("delivery-id-out-of-order", f"transfer.delivery-id is {number}{due}", frame.channel)
        session.next_id = (number + 1) % _IDS
        session.sent += 1
    return None


def _see_disposition(frame: Frame, session: Session) -> Fault | None:
    """Of what the peer was sent, or of what it has sent."""
    first, last = frame.field(_FIRST_AT), frame.field(_LAST_AT)
    last = first if last is None else last
    ours = frame.field(_DISPOSITION_ROLE_AT)
    behind, known = (session.given, session.given) if ours else (max(session.next_id, 0), session.sent)
    known = min(known, _BACK_MAX)
    if (last - first) % _IDS <= _BACK_MAX and all((behind - 1 - number) % _IDS < known for number in (first, last)):
        return None
    return Fault("disposition-out-of-range", f"deliveries {first} to {last}, {behind % _IDS} is next", frame.channel)


def _bound(stated: int | None, most: int) -> int:
    return most if stated is None else min(stated, most)


def _unattached(channel: int, handle: int, purpose: str = "") -> Fault:
    return Fault("unattached-handle", f"no link{purpose} has handle {handle} on channel {channel}", channel)
