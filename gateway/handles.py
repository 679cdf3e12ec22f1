"""The sessions and link handles that the peer has open, read off its frames, so that a frame for a link that is not
there (P-5), for one whose name is taken in that session, or for a second session on its channel (P-3), ends its session
before an engine sees it and closes the whole connection. A transfer from a peer that receives on its link is for no
link either. And their order: OPEN comes first and once, CLOSE last; proton takes them as they come. A peer that opens
more sessions or links than it lets us answer is told so: proton says nothing more, of anything.

Source: semantics 2.P-3, 2.P-5, 4.2; AMQP 1.0 part 2 sections 2.4.1, 2.5.1, 2.6.2. May import: `gateway.frames`.
"""

from __future__ import annotations

from gateway.frames import ATTACH, BEGIN, CLOSE, DETACH, END, FLOW, OPEN, TRANSFER, Fault, Frame

_HANDLE_AT = {ATTACH: 1, FLOW: 4, TRANSFER: 0, DETACH: 0}
_NAME_AT, _ROLE_AT = 0, 2
_CHANNEL_MAX_AT, _HANDLE_MAX_AT = 3, 4  # in OPEN and in BEGIN


class _Session:
    """The links of one session: name and role of each by handle, which of them are taken, and how many the peer lets us
    answer."""

    __slots__ = ("links", "links_max", "names")

    def __init__(self, links_max: int) -> None:
        self.links_max = links_max
        self.links: dict[int, tuple[str, bool]] = {}
        self.names: set[tuple[str, bool]] = set()


class Handles:
    """One connection's. What concerns a channel that was not begun is left to the engine."""

    def __init__(self, channel_max: int, handles_max: int = 512) -> None:
        """`handles_max`: of one session, with those of links that were refused and not detached yet."""
        self._channel_max = channel_max
        self._handles_max = handles_max
        self._theirs_max = channel_max  # the highest channel on which the peer lets us begin
        self._opened = self._closed = False
        self.discards: set[int] = set()  # channels of sessions that we have ended and the peer has not
        self._sessions: dict[int, _Session] = {}  # by channel

    def attached(self, channel: int, handle: int) -> bool:
        session = self._sessions.get(channel)
        return session is None or handle in session.links

    def transferred(self, channel: int, handle: int) -> Fault | None:
        """What is wrong with a transfer on it. Where the peer receives, proton would make a delivery of ours of it."""
        session = self._sessions.get(channel)
        if session is None or handle not in session.links:
            return None if session is None else unattached(channel, handle)
        receives = session.links[handle][1]
        return unattached(channel, handle, " to send on") if receives else None

    def see(self, frame: Frame) -> Fault | None:
        """Keep up with a frame; what is wrong with it."""
        code, channel = frame.code, frame.channel
        if (code == OPEN) == self._opened or self._closed or (code == OPEN and channel):
            return Fault("out-of-order", f"performative 0x{code:x}: OPEN comes first, on channel 0, and CLOSE last")
        self._opened, self._closed = True, code == CLOSE
        if code == OPEN:
            self._theirs_max = _bound(frame.field(_CHANNEL_MAX_AT), self._channel_max)
        elif code == BEGIN:
            if channel > self._channel_max:
                return Fault("framing", f"channel {channel}, above the channel-max of {self._channel_max}")
            if channel in self._sessions:
                return Fault("session-in-use", f"channel {channel} has a session already", channel)
            if len(self._sessions) > self._theirs_max:
                return Fault("framing", f"channel {channel}: we may begin no more by its channel-max")
            links_max = _bound(frame.field(_HANDLE_MAX_AT), self._handles_max - 1) + 1
            self._sessions[channel] = _Session(links_max)
        elif code == END:
            self._sessions.pop(channel, None)
            self.discards.discard(channel)
        elif code in _HANDLE_AT:
            return self._see_handle(frame, frame.field(_HANDLE_AT[code]))
        return None

    def _see_handle(self, frame: Frame, handle: object) -> Fault | None:
        code, channel = frame.code, frame.channel
        if handle is None and code == FLOW:
            return None  # of the session
        if not isinstance(handle, int):
            return Fault("malformed-performative", f"performative 0x{code:x} without a handle")
        session = self._sessions.get(channel)
        if code == TRANSFER:
            return self.transferred(channel, handle)
        if code != ATTACH:
            if not self.attached(channel, handle):
                return unattached(channel, handle)
            if session is not None and code == DETACH:
                session.names.remove(session.links.pop(handle))
            return None
        name, role = frame.field(_NAME_AT), frame.field(_ROLE_AT)
        if not isinstance(name, str) or not isinstance(role, bool):
            return Fault("malformed-performative", "an attach without a name or a role")
        if session is not None:
            if handle in session.links:
                return Fault("handle-in-use", f"handle {handle} on channel {channel}", channel)
            if (name, role) in session.names:
                return Fault("link-name-in-use", f"{name[:200]!r} is attached on channel {channel} already", channel)
            if len(session.links) >= session.links_max:
                return Fault("too-many-links", f"more than {session.links_max} handles on channel {channel}", channel)
            session.links[handle] = name, role
            session.names.add((name, role))
        return None


def _bound(said: object, most: int) -> int:
    return min(said, most) if isinstance(said, int) else most


def unattached(channel: int, handle: int, purpose: str = "") -> Fault:
    return Fault("unattached-handle", f"no link{purpose} has handle {handle} on channel {channel}", channel)
