"""The witness: reads every byte that crosses the gateway's boundary, both ways, and says what it means.

It decodes frames with the tests' own codec and keeps its own session state, so that a mistake which the gateway and a
proton client share is still seen. One witness a connection. What it sees goes to `Sight`, which the checkers are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.simulation.bodies import marker_of
from tests.simulation.facts import Given, Publish, WireLink
from tests.wire.frames import STATES, Seen, parse
from transformers.amqp_types import Described

_STATE_NAMES = {code: name for name, code in STATES.items()}
_MODES = {"orders": "queue", "parcels": "queue"}


class Sight(Protocol):
    """Who wants to know. Called as the bytes pass, before the gateway acts on what it received."""

    def attached(self, link: WireLink) -> None: ...
    def published(self, publish: Publish) -> None: ...
    def told(self, publish: Publish, state: str) -> None: ...
    def granted(self, link: WireLink) -> None: ...
    def given(self, given: Given) -> None: ...
    def stated(self, given: Given, state: str) -> None: ...
    def contradicted(self, given: Given) -> None: ...
    def echoed(self, given: Given, state: str) -> None: ...
    def detached(self, link: WireLink) -> None: ...
    def flushed(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Session:
    """Handles and deliveries of one session; each side numbers its own."""

    theirs: dict[int, WireLink] = field(default_factory=dict)  # by the peer's handle
    ours: dict[int, WireLink] = field(default_factory=dict)  # by the gateway's
    named: dict[tuple[str, bool], WireLink] = field(default_factory=dict)
    published: dict[int, Publish] = field(default_factory=dict)
    given: dict[int, Given] = field(default_factory=dict)
    parts: dict[WireLink, tuple[Seen, bool, bytes]] = field(default_factory=dict)  # messages in several frames


class Witness:
    """One connection of one run of the gateway."""

    def __init__(self, sight: Sight, run: str) -> None:
        self._sight = sight
        self._run = run
        self._container = ""
        self._in = self._out = b""
        self._theirs: dict[int, _Session] = {}  # by the peer's channel
        self._ours: dict[int, _Session] = {}
        self.links: list[WireLink] = []

    def inbound(self, data: bytes) -> None:
        """The gateway is about to receive this."""
        self._in, seen = _frames(self._in + data)
        for frame in seen:
            getattr(self, f"_in_{frame.name}", _nothing)(frame)

    def outbound(self, data: bytes) -> None:
        """This leaves the gateway."""
        self._out, seen = _frames(self._out + data)
        for frame in seen:
            getattr(self, f"_out_{frame.name}", _nothing)(frame)

    def lost(self) -> None:
        for link in self.links:
            link.gone = True

    # -- from the peer

    def _in_open(self, frame: Seen) -> None:
        self._container = str(frame.field(0))

    def _in_begin(self, frame: Seen) -> None:
        self._theirs[frame.channel] = _Session()

    def _in_attach(self, frame: Seen) -> None:
        session = self._theirs[frame.channel]
        publishing = frame.field(2) is False
        terminus = (frame.field(6) if publishing else frame.field(5)).value
        node = str(terminus[0])
        durable = len(terminus) > 1 and bool(terminus[1])
        mode = "publish" if publishing else _MODES.get(node) or ("durable" if durable else "plain")
        link = WireLink(self._run, self._container, str(frame.field(0)), publishing, node, mode)
        session.theirs[frame.field(1)] = session.named[link.name, publishing] = link
        self.links.append(link)

    def _in_flow(self, frame: Seen) -> None:
        link = self._theirs[frame.channel].theirs.get(frame.field(4)) if frame.field(4) is not None else None
        if link is not None and not link.publishing:
            link.limit = (frame.field(5) or 0) + (frame.field(6) or 0)
            link.drain = bool(frame.field(8))

    def _in_transfer(self, frame: Seen) -> None:
        session = self._theirs[frame.channel]
        link = session.theirs[frame.field(0)]
        whole = self._whole(session, link, frame)
        if whole is None:
            return
        first, settled, payload = whole
        link.count += 1
        publish = Publish(link, first.field(1), payload, marker_of(payload), settled)
        session.published[publish.delivery] = publish
        if not link.gone:
            link.published.append(publish)
            self._sight.published(publish)

    def _in_disposition(self, frame: Seen) -> None:
        if frame.field(0) is not True:
            return
        session = self._theirs[frame.channel]
        state = _state(frame.field(4))
        for given in _range(session.given, frame):
            self._stated(given, state, bool(frame.field(3)))

    def _stated(self, given: Given, state: str, settled: bool) -> None:
        if state == "unstated" and not settled:
            return
        if given.stated is not None:
            waits = not given.told and not given.peer_settled and not given.link.gone
            if waits and state not in ("unstated", given.stated):
                given.link.conflict = True
                self._sight.contradicted(given)
            given.peer_settled |= settled
        elif not given.settled and not given.link.gone:
            given.stated, given.peer_settled = state, settled
            self._sight.stated(given, state)

    def _in_detach(self, frame: Seen) -> None:
        link = self._theirs[frame.channel].theirs.pop(frame.field(0), None)
        if link is not None:
            link.gone = True

    def _in_end(self, frame: Seen) -> None:
        for link in self._theirs[frame.channel].theirs.values():
            link.gone = True

    def _in_close(self, _: Seen) -> None:
        self.lost()

    # -- from the gateway

    def _out_begin(self, frame: Seen) -> None:
        self._ours[frame.channel] = self._theirs[frame.field(0)]

    def _out_attach(self, frame: Seen) -> None:
        session = self._ours[frame.channel]
        link = session.named[str(frame.field(0)), frame.field(2) is True]
        session.ours[frame.field(1)] = link
        terminus = frame.field(6) if link.publishing else frame.field(5)
        link.confirmed = isinstance(terminus, Described)
        self._sight.attached(link)

    def _out_flow(self, frame: Seen) -> None:
        link = self._ours[frame.channel].ours.get(frame.field(4)) if frame.field(4) is not None else None
        if link is None:
            return
        count = frame.field(5) or 0
        if link.publishing:
            link.limit = count + (frame.field(6) or 0)
            self._sight.granted(link)
        else:
            link.count = max(link.count, count)

    def _out_transfer(self, frame: Seen) -> None:
        session = self._ours[frame.channel]
        link = session.ours[frame.field(0)]
        whole = self._whole(session, link, frame)
        if whole is None:
            return
        first, settled, payload = whole
        store, eid = (int(number) for number in bytes(first.field(2)).split(b":"))
        link.count += 1
        given = Given(link, first.field(1), store, eid, payload, settled)
        session.given[given.delivery] = given
        link.given.append(given)
        self._sight.given(given)

    def _out_disposition(self, frame: Seen) -> None:
        session = self._ours[frame.channel]
        state = _state(frame.field(4))
        if frame.field(0) is True:
            for publish in _heard(_range(session.published, frame)):
                publish.told.append(state)
                self._sight.told(publish, state)
            return
        for given in _heard(_range(session.given, frame)):
            given.told.append(state)
            self._sight.echoed(given, state)

    def _out_detach(self, frame: Seen) -> None:
        link = self._ours[frame.channel].ours.pop(frame.field(0), None)
        if link is not None:
            link.condition = frame.condition
            link.shut = not link.gone
            link.gone = True
            self._sight.detached(link)

    def _out_end(self, frame: Seen) -> None:
        for link in self._ours[frame.channel].theirs.values():
            link.shut = link.shut or not link.gone
            link.gone = True

    def _out_close(self, _: Seen) -> None:
        for link in self.links:
            link.shut = link.shut or not link.gone
        self.lost()

    def _whole(self, session: _Session, link: WireLink, frame: Seen) -> tuple[Seen, bool, bytes] | None:
        """First frame, settled, payload; None while there is more to come."""
        first, settled, payload = session.parts.pop(link, (frame, False, b""))
        whole = (first, settled or bool(frame.field(4)), payload + frame.payload)
        if frame.field(5):
            session.parts[link] = whole
            return None
        return whole


def _frames(data: bytes) -> tuple[bytes, list[Seen]]:
    position, seen = 0, []
    if data.startswith(b"AMQP") and len(data) >= 8:
        data = data[8:]
    for frame, position in parse(data):  # noqa: B007
        seen.append(frame)
    return data[position:], seen


def _state(state: Any) -> str:
    if not isinstance(state, Described):
        return "unstated"
    name = _STATE_NAMES[int(state.descriptor)]
    if name == "rejected" and state.value and isinstance(state.value[0], Described):
        return f"rejected:{state.value[0].value[0]}"
    if name != "modified":
        return name
    fields = [*state.value, None, None]
    return name + ("-failed" if fields[0] else "") + ("-undeliverable" if fields[1] else "")


def _range(deliveries: dict[int, Any], frame: Seen) -> list[Any]:
    first = frame.field(1)
    last = first if frame.field(2) is None else frame.field(2)
    return [deliveries[number] for number in range(first, last + 1) if number in deliveries]


def _heard(deliveries: list[Any]) -> list[Any]:
    """Those that the peer still knows: proton settles, without a word, what a freed link had left."""
    return [delivery for delivery in deliveries if not delivery.link.gone]


def _nothing(_: Seen) -> None:
    """An OPEN of the gateway says nothing that matters here."""
