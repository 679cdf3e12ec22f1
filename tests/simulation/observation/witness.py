"""The witness: reads every byte that crosses the gateway's boundary, both ways, and says what it means.

It decodes frames with the tests' own codec and keeps its own session state, so that a mistake which the gateway and a
proton client share is still seen. One witness a connection. What it sees goes to `Observer`, which the checkers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from tests.kit.wire.frames import STATES, Seen, parse
from tests.simulation.observation.facts import Given, Publish, Transaction, WireLink
from tests.simulation.peers.bodies import marker_of
from transformers.codec import Described, decode

_STATE_NAMES = {code: name for name, code in STATES.items()}
QUEUES = ("orders", "parcels")
_MODES = dict.fromkeys(QUEUES, "queue")
_NOT_KEPT = ("amqp:resource-limit-exceeded", "amqp:transaction:unknown-id")  # an outcome inside a transaction
_TRANSACTIONAL, _COORDINATOR, _DISCHARGE = 0x34, 0x30, 0x32


class Observer(Protocol):
    """It gets each fact. Called as the bytes pass, before the gateway acts on what it received."""

    def attached(self, link: WireLink) -> None: ...
    def published(self, publish: Publish) -> None: ...
    def told(self, publish: Publish, state: str) -> None: ...
    def granted(self, link: WireLink) -> None: ...
    def given(self, given: Given) -> None: ...
    def stated(self, given: Given, state: str) -> None: ...
    def contradicted(self, given: Given) -> None: ...
    def echoed(self, given: Given, state: str) -> None: ...
    def detached(self, link: WireLink) -> None: ...
    def declared(self, transaction: Transaction) -> None: ...
    def promised(self, publish: Publish) -> None: ...
    def discharged(self, transaction: Transaction) -> None: ...
    def answered(self, transaction: Transaction) -> None: ...
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
    transaction: Transaction | None = None  # the open one
    requests: dict[int, tuple[WireLink, Transaction | None]] = field(default_factory=dict)  # declares have none


class Witness:
    """One connection of one run of the gateway."""

    def __init__(self, observer: Observer, run: str, places: Iterator[int] | None = None) -> None:
        """`places`: numbers for all messages of a world, in the order in which they are published."""
        self._observer = observer
        self._places = count() if places is None else places
        self._run = run
        self._container = ""
        self._in = self._out = b""
        self._theirs: dict[int, _Session] = {}  # by the peer's channel
        self._ours: dict[int, _Session] = {}
        self.links: list[WireLink] = []
        self.transactions: list[Transaction] = []

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
        """The network has lost the connection."""
        for link in self.links:
            link.broken = not link.gone
            link.gone = True

    def _all_end(self) -> None:
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
        if publishing and frame.field(6).descriptor == _COORDINATOR:
            node, mode = "", "control"
        else:
            node, durable = str(terminus[0]), len(terminus) > 1 and bool(terminus[1])
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
        if link.mode == "control":
            self._requested(session, link, first.field(1), payload)
            return
        publish = Publish(link, first.field(1), payload, marker_of(payload), settled, next(self._places))
        session.published[publish.delivery] = publish
        if not link.gone:
            self._post(session, publish, first.field(7))
            link.published.append(publish)
            self._observer.published(publish)

    def _post(self, session: _Session, publish: Publish, state: Any) -> None:
        if isinstance(state, Described) and state.descriptor == _TRANSACTIONAL:
            publish.inside, publish.transaction = True, _open_in(session, state)
            if publish.transaction is not None:
                publish.transaction.posted.append(publish)

    def _requested(self, session: _Session, link: WireLink, delivery: int, payload: bytes) -> None:
        """A declare or a discharge is about to be received."""
        request = decode(payload)[0].value
        transaction = None
        if request.descriptor == _DISCHARGE and not link.gone:
            transaction = session.transaction
            if transaction is not None and transaction.identity != request.value[0]:
                transaction = None
            if transaction is not None:
                session.transaction = None
                transaction.asked = "rollback" if request.value[1:2] == [True] else "commit"
                for publish in transaction.posted:
                    publish.place = next(self._places)
                self._observer.discharged(transaction)
        session.requests[delivery] = (link, transaction)

    def _in_disposition(self, frame: Seen) -> None:
        if frame.field(0) is not True:
            return
        session = self._theirs[frame.channel]
        outcome = frame.field(4)
        if isinstance(outcome, Described) and outcome.descriptor == _TRANSACTIONAL:
            for given in _range(session.given, frame):
                self._retire(session, given, outcome, bool(frame.field(3)))
            return
        state = _state(outcome)
        for given in _range(session.given, frame):
            self._stated(given, state, bool(frame.field(3)))

    def _retire(self, session: _Session, given: Given, state: Described, settled: bool) -> None:
        """An outcome inside a transaction; one that is not there ends the link."""
        if given.stated is not None or given.settled or given.link.gone:
            return
        transaction = _open_in(session, state)
        if transaction is None:
            given.link.conflict = True
            return
        if given.transaction is not None and given.transaction.asked == "commit":
            return  # it is in the transaction in which it was stated first, and in no other (H-9)
        given.transaction, given.inside, given.peer_settled = transaction, _state(state.value[1]), settled
        transaction.retired.append(given)

    def _stated(self, given: Given, state: str, settled: bool) -> None:
        if state == "unstated" and not settled:
            return
        if given.stated is not None:
            waits = not given.told and not given.peer_settled and not given.link.gone
            if waits and state not in ("unstated", given.stated):
                given.link.conflict = True
                self._observer.contradicted(given)
            given.peer_settled |= settled
        elif not given.settled and not given.link.gone:
            given.stated, given.peer_settled = state, settled
            self._observer.stated(given, state)

    def _in_detach(self, frame: Seen) -> None:
        session = self._theirs[frame.channel]
        link = session.theirs.pop(frame.field(0), None)
        if link is not None:
            link.gone = True
            _roll_back(session, link)

    def _in_end(self, frame: Seen) -> None:
        self._theirs[frame.channel].transaction = None
        for link in self._theirs[frame.channel].theirs.values():
            link.gone = True

    def _in_close(self, _: Seen) -> None:
        self._all_end()

    # -- from the gateway

    def _out_begin(self, frame: Seen) -> None:
        self._ours[frame.channel] = self._theirs[frame.field(0)]

    def _out_attach(self, frame: Seen) -> None:
        session = self._ours[frame.channel]
        link = session.named[str(frame.field(0)), frame.field(2) is True]
        session.ours[frame.field(1)] = link
        terminus = frame.field(6) if link.publishing else frame.field(5)
        link.confirmed = isinstance(terminus, Described)
        self._observer.attached(link)

    def _out_flow(self, frame: Seen) -> None:
        link = self._ours[frame.channel].ours.get(frame.field(4)) if frame.field(4) is not None else None
        if link is None:
            return
        count = frame.field(5) or 0
        if link.publishing:
            link.limit = count + (frame.field(6) or 0)
            self._observer.granted(link)
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
        self._observer.given(given)

    def _out_disposition(self, frame: Seen) -> None:
        session = self._ours[frame.channel]
        outcome = frame.field(4)
        state = _state(outcome)
        if frame.field(0) is True:
            for link, transaction in _range(session.requests, frame):
                self._answered(session, link, transaction, outcome)
            for publish in _heard(_range(session.published, frame)):
                if state.startswith("transactional "):
                    publish.promised = state.partition(" ")[2]
                    publish.closed = frame.field(3) is True
                    self._observer.promised(publish)
                else:
                    publish.told.append(state)
                    self._observer.told(publish, state)
            return
        for given in _heard(_range(session.given, frame)):
            if given.transaction is not None and given.stated is None and state == given.inside:
                given.stated = given.inside  # its transaction was committed, and there is no control link to say so
            given.told.append(state)
            self._observer.echoed(given, state)

    def _answered(self, session: _Session, link: WireLink, transaction: Transaction | None, outcome: Any) -> None:
        if link.gone:
            return
        if transaction is None:
            if isinstance(outcome, Described) and outcome.descriptor == STATES["declared"]:
                session.transaction = Transaction(link, bytes(outcome.value[0]))
                self.transactions.append(session.transaction)
                self._observer.declared(session.transaction)
            return
        transaction.answer = _state(outcome)
        self._observer.answered(transaction)
        for given in transaction.retired:
            if given.transaction is transaction:
                _conclude(given, bool(transaction.done))

    def _out_detach(self, frame: Seen) -> None:
        link = self._ours[frame.channel].ours.pop(frame.field(0), None)
        if link is not None:
            link.condition = frame.condition
            link.shut = not link.gone
            link.gone = True
            link.conflict |= link.condition in _NOT_KEPT
            _roll_back(self._ours[frame.channel], link)
            self._observer.detached(link)

    def _out_end(self, frame: Seen) -> None:
        for link in self._ours[frame.channel].theirs.values():
            link.shut = link.shut or not link.gone
            link.gone = True

    def _out_close(self, _: Seen) -> None:
        for link in self.links:
            link.shut = link.shut or not link.gone
        self._all_end()

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
    if name == "transactional":
        return f"transactional {_state(state.value[1] if len(state.value) > 1 else None)}"
    if name == "rejected" and state.value and isinstance(state.value[0], Described):
        return f"rejected:{state.value[0].value[0]}"
    if name != "modified":
        return name
    fields = [*state.value, None, None]
    return name + ("-failed" if fields[0] else "") + ("-undeliverable" if fields[1] else "")


def _open_in(session: _Session, state: Described) -> Transaction | None:
    """The session's open transaction, where that is the one that a state names."""
    transaction = session.transaction
    known = transaction is not None and transaction.identity == state.value[0] and not transaction.control.gone
    return transaction if known else None


def _roll_back(session: _Session, control: WireLink) -> None:
    """An open transaction ends with its control link; and a rollback without an answer gets none."""
    ended = [request for link, request in session.requests.values() if link is control and request is not None]
    ended = [request for request in ended if request.asked == "rollback" and not request.answer]
    if session.transaction is not None and session.transaction.control is control:
        ended.append(session.transaction)
        session.transaction = None
    for given in [given for transaction in ended for given in transaction.retired]:
        if given.transaction in ended:
            _conclude(given, False)


def _conclude(given: Given, done: bool) -> None:
    """Its transaction has ended: what was stated inside of it counts, or was never said."""
    if done:
        given.stated = given.inside
    elif given.peer_settled:
        given.stated = "rolled-back"
    else:
        given.transaction, given.inside = None, ""


def _range(deliveries: dict[int, Any], frame: Seen) -> list[Any]:
    first = frame.field(1)
    last = first if frame.field(2) is None else frame.field(2)
    return [deliveries[number] for number in range(first, last + 1) if number in deliveries]


def _heard(deliveries: list[Any]) -> list[Any]:
    """Those that the peer still knows: proton settles, without a word, what a freed link had left."""
    return [delivery for delivery in deliveries if not delivery.link.gone]


def _nothing(_: Seen) -> None:
    """An OPEN of the gateway says nothing that matters here."""
