"""A client made of a real proton engine: it connects, publishes, consumes, and states outcomes, as the walk tells it.

It keeps to the protocol, because proton does. Links have stable names, so that a durable is found again.
"""

from __future__ import annotations

from random import Random
from typing import Any

from proton import Collector, Connection, Disposition, Event, Link, Terminus, Transport

from tests.simulation.peers import bodies
from tests.simulation.peers.control import Control
from tests.simulation.peers.network import Network, Wire

_OUTCOMES = {"accepted": Disposition.ACCEPTED, "rejected": Disposition.REJECTED, "released": Disposition.RELEASED}
_REMOTE_CLOSED = {Event.LINK_REMOTE_CLOSE, Event.LINK_REMOTE_DETACH}


class Client:
    """One application: at most one connection at a time, two sessions, a handful of links."""

    def __init__(self, name: str, random: Random, frame_bytes: int) -> None:
        self.name = name
        self._random = random
        self._frame_bytes = frame_bytes
        self.wire: Wire | None = None
        self.senders: dict[str, Any] = {}
        self.receivers: dict[str, Any] = {}
        self.durables: dict[str, str] = {}  # link name -> node, of every durable it ever had
        self.held: list[tuple[Any, Any]] = []  # (link, delivery) not stated yet
        self.asked: list[Any] = []  # stated, and waits for the gateway
        self.sent: dict[Any, str] = {}  # unsettled publishes -> marker
        self.controls: list[Control] = []  # at most one a session
        self.concluding: list[Any] = []  # stated inside a transaction that has ended, as far as the client knows
        self._tags = 0

    # -- the connection

    def connect(self, network: Network, gateway: Any) -> None:
        self._transport, self._connection, self._collector = Transport(), Connection(), Collector()
        self._transport.max_frame_size = self._frame_bytes
        self._connection.container = self.name
        self._connection.hostname = "realm"
        self._connection.collect(self._collector)
        self._transport.bind(self._connection)
        self._connection.open()
        self._sessions = [self._connection.session(), self._connection.session()]
        for session in self._sessions:
            session.open()
        self.wire = network.connect(self, gateway)
        self.flush()

    def receive(self, wire: Wire, data: bytes) -> None:
        while data:
            room = self._transport.capacity()
            if room <= 0:
                break
            self._transport.push(data[:room])
            data = data[room:]
            self._read()
        self.flush()

    def closed(self, wire: Wire) -> None:
        """The connection is gone, and all that was known of it."""
        self.let_go()

    def let_go(self) -> None:
        if self.wire is None:
            return
        self.wire = None
        for table in (self.senders, self.receivers, self.sent):
            table.clear()
        for pile in (self.held, self.asked, self.controls, self.concluding):
            pile.clear()
        self._transport.unbind()

    def close(self) -> None:
        """Say goodbye in order."""
        self._connection.close()
        self.flush()

    def flush(self) -> None:
        if self.wire is None:
            return
        self._read()
        while (count := self._transport.pending()) > 0:
            self.wire.to_gateway += self._transport.peek(count) or b""
            self._transport.pop(count)
        if self._transport.closed:
            self.wire.client_ending = True

    # -- links

    def publish_to(self, name: str, node: str, mode: int) -> None:
        sender = self._session().sender(name)
        sender.target.address = node
        sender.snd_settle_mode = mode
        sender.open()
        self.senders[name] = sender

    def consume_from(self, name: str, node: str, *, durable: bool, settled: bool, second: bool) -> None:
        receiver = self._session().receiver(name)
        receiver.source.address = node
        if durable:
            receiver.source.durability = Terminus.DELIVERIES
            receiver.source.expiry_policy = Terminus.EXPIRE_NEVER
            self.durables[name] = node
        receiver.snd_settle_mode = Link.SND_SETTLED if settled else Link.SND_MIXED
        receiver.rcv_settle_mode = Link.RCV_SECOND if second else Link.RCV_FIRST
        receiver.open()
        self.receivers[name] = receiver

    def leave(self, name: str, *, for_good: bool) -> None:
        """Detach a link; what it holds is left to the gateway."""
        link = self.senders.pop(name, None) or self.receivers.pop(name, None)
        self._forget(link)
        if for_good:
            link.close()
        else:
            link.detach()

    def _session(self) -> Any:
        """Mostly one where a transaction can be, where there is one."""
        if self.controls and self._random.random() < 0.9:
            return self.controls[0].session
        return self._random.choice(self._sessions)

    def _forget(self, link: Any) -> None:
        self.held = [(owner, delivery) for owner, delivery in self.held if owner != link]
        for control in self.controls:
            control.retired = [(owner, delivery) for owner, delivery in control.retired if owner != link]
        self.concluding = [delivery for delivery in self.concluding if delivery.link != link]
        self._without_control([control for control in self.controls if control.link == link])
        self.asked = [delivery for delivery in self.asked if delivery.link != link]
        self.sent = {delivery: marker for delivery, marker in self.sent.items() if delivery.link != link}

    # -- publishing

    def publish(
        self, name: str, payload: bytes, *, settled: bool, control: Control | None = None, identity: bytes = b""
    ) -> None:
        """Inside the transaction of that identity, where a control link is given."""
        sender = self.senders[name]
        self._tags += 1
        delivery = sender.delivery(f"t{self._tags}")
        if control is not None:
            control.mark(delivery, identity)
        sender.send(payload)
        if settled:
            delivery.settle()
        else:
            sender.advance()
            self.sent[delivery] = bodies.marker_of(payload)

    # -- transactions

    def control(self, name: str) -> None:
        """Open a control link on a session that has none."""
        free = [session for session in self._sessions if all(entry.session != session for entry in self.controls)]
        if free:
            self.controls.append(Control(self._random.choice(free), name))

    def leave_control(self, control: Control) -> None:
        self._without_control([control])
        control.link.close()

    def _ended(self, control: Control, *, known: bool, done: bool) -> None:
        """What it retired: settled by the gateway soon, or the client's as before; not `known`: one of the two."""
        retired, control.retired = control.retired, []
        if done or not known:
            self.concluding += [delivery for _, delivery in retired]
        else:
            self.held += retired

    # -- consuming

    def state(self, delivery: Any, state: str, *, settle: bool) -> None:
        """Give a held delivery its outcome; `unstated` settles without one."""
        if state in _OUTCOMES:
            delivery.update(_OUTCOMES[state])
        elif state != "unstated":
            delivery.local.failed = "failed" in state
            delivery.local.undeliverable = "undeliverable" in state
            delivery.update(Disposition.MODIFIED)
        if settle:
            delivery.settle()
        else:
            self.asked.append(delivery)

    def contradict(self, delivery: Any) -> None:
        """Say of a delivery that waits for the gateway something else than before."""
        other = Disposition.REJECTED if delivery.local_state == Disposition.ACCEPTED else Disposition.ACCEPTED
        delivery.update(other)

    # -- what the gateway says

    def _read(self) -> None:
        while (event := self._collector.peek()) is not None:
            kind = event.type
            if kind == Event.DELIVERY:
                self._on_delivery(event.link, event.delivery)
            elif kind in _REMOTE_CLOSED:
                self._on_detach(event.link, kind == Event.LINK_REMOTE_CLOSE)
            elif kind == Event.SESSION_REMOTE_CLOSE:
                self._end(event.session)
            elif kind == Event.CONNECTION_REMOTE_CLOSE:
                self._connection.close()
            self._collector.pop()

    def _without_control(self, gone: list[Control]) -> None:
        for control in gone:
            self.controls.remove(control)
            self._ended(control, known=control.asked != "commit", done=False)

    def _on_delivery(self, link: Any, delivery: Any) -> None:
        if link.is_sender:
            control = next((entry for entry in self.controls if entry.link == link), None)
            if control is not None:
                if delivery.updated and delivery.settled:
                    request = control.asked
                    done = control.answered(delivery)
                    if request in ("commit", "rollback"):
                        self._ended(control, known=True, done=done)
                return
            if delivery.updated and delivery.settled:
                self.sent.pop(delivery, None)
                delivery.settle()
            return
        if delivery.readable and not delivery.partial and link.current == delivery:
            link.recv(delivery.pending)
            link.advance()
            if delivery.settled:
                delivery.settle()
            else:
                self.held.append((link, delivery))
        elif delivery.settled:
            for pile in (self.asked, self.concluding):
                if delivery in pile:
                    pile.remove(delivery)
                    delivery.settle()

    def _on_detach(self, link: Any, for_good: bool) -> None:
        self._forget(link)
        for table in (self.senders, self.receivers):
            for name in [name for name, known in table.items() if known == link]:
                del table[name]
        if link.state & Link.LOCAL_ACTIVE:
            if for_good:
                link.close()
            else:
                link.detach()

    def end_session(self) -> None:
        """End one session, with the links in it."""
        self._end(self._session())

    def _end(self, session: Any) -> None:
        if session not in self._sessions:
            return  # the answer to our own END
        for table in (self.senders, self.receivers):
            for name in [name for name, link in table.items() if link.session == session]:
                self._forget(table.pop(name))
        self._without_control([control for control in self.controls if control.session == session])
        session.close()
        fresh = self._connection.session()
        fresh.open()
        self._sessions[self._sessions.index(session)] = fresh
