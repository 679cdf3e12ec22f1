"""A connection of an AMQP 1.0 client over a blocking socket: send a message and get its outcome, receive one and state
an outcome. proton turns frames into octets; the socket and the login are `gateway.cli.client.login`'s.

It is no part of the engine, and runs in a process of its own: the one place outside `gateway.amqp` that imports proton.
Receivers ask for the settle mode second: what is printed is what the peer settled with, not only what was asked.
Seconds. Errors: `ClientProblem`.
"""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from proton import (
    Collector,
    Condition,
    Connection,
    Delivery,
    Endpoint,
    Link,
    Message,
    ProtonException,
    Session,
    Terminus,
    Transport,
)

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.login import logged_in
from gateway.cli.client.peer_address import PeerAddress

_PIECE: Final = 65_536
_TICK_S: Final = 1.0  # heartbeats are due
_AT_ONCE_S: Final = 0.001
_CLOSE_S: Final = 2.0
NO_ANSWER: Final = "no answer"
_STATES: Final[dict[int, str]] = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}
_STATED: Final = {"accept": Delivery.ACCEPTED, "release": Delivery.RELEASED, "reject": Delivery.REJECTED}


@dataclass(frozen=True, slots=True)
class Outcome:
    """`name`: accepted, rejected, released, modified, settled (without a state), no answer. Condition and text of a
    rejection; empty where there is none."""

    name: str
    condition: str = ""
    text: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.name, self.condition, self.text) if part)


@dataclass(frozen=True, slots=True)
class Received:
    """A message, its delivery tag, and how it was settled."""

    tag: str
    message: Message
    outcome: Outcome


class Peer:
    """The other side of one open connection."""

    def __init__(self, opened: socket.socket, url: str, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._socket, self.url = opened, url
        self.beside: Peer | None = None
        """A connection that must not fall silent while this one is waited for."""
        self.silent_until_s = time.monotonic() + _TICK_S
        self._collector, self._transport, self._connection = Collector(), Transport(), Connection()
        self._connection.container = str(uuid.uuid4())
        self._connection.hostname = urlsplit(url).hostname or ""
        self._connection.collect(self._collector)
        self._transport.bind(self._connection)
        self._connection.open()
        self.session = self._connection.session()
        self.session.open()
        if not self.wait(lambda: not self._connection.state & Endpoint.REMOTE_UNINIT, timeout_s):
            raise ClientProblem(f"{url}: no answer to OPEN within {timeout_s:g} s")

    def wait(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        """False: not within that time. Raises ClientProblem."""
        until_s = time.monotonic() + timeout_s
        while not reached():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            if self._connection.state & Endpoint.REMOTE_CLOSED:
                raise ClientProblem(f"{self.url}: the peer closed the connection{_why(self._connection)}")
            if self.session.state & Endpoint.REMOTE_CLOSED and self.session.state & Endpoint.LOCAL_ACTIVE:
                raise ClientProblem(f"{self.url}: the peer ended the session{_why(self.session)}")
            self._send()
            self._receive(min(left_s, _TICK_S))
            if self.beside is not None and time.monotonic() >= self.beside.silent_until_s:
                self.beside.keep_alive()
        self._send()
        return True

    def keep_alive(self) -> None:
        """Reads what is there, and lets the peer hear that this side lives. Raises ClientProblem."""
        self.silent_until_s = time.monotonic() + _TICK_S
        self._send()
        self._receive(_AT_ONCE_S)

    def attach(self, link: Link, node: str) -> None:
        """Until the peer has. Raises ClientProblem."""
        link.open()
        if not self.wait(lambda: not link.state & Endpoint.REMOTE_UNINIT, self.timeout_s):
            raise ClientProblem(f"{self.url}: no answer to the attach of a link to {node} within {self.timeout_s:g} s")
        terminus = link.remote_target if link.is_sender else link.remote_source
        is_refused = not terminus.address and terminus.type != Terminus.COORDINATOR
        if is_refused:  # the DETACH with the reason comes next
            self.wait(lambda: bool(link.state & Endpoint.REMOTE_CLOSED), self.timeout_s)
        self.check(link, node)

    def check(self, link: Link, node: str) -> None:
        """Raises ClientProblem if the peer has ended the link."""
        if link.state & Endpoint.REMOTE_CLOSED:
            raise ClientProblem(f"{node}: the peer refuses the link{_why(link)}", refused=True)

    @property
    def product(self) -> str:
        """What the peer says it is, empty where it does not."""
        return str((self._connection.remote_properties or {}).get("product", ""))

    def close(self) -> None:
        """A peer that has gone needs no close, and the first error is the one to report."""
        with suppress(ClientProblem, ProtonException, OSError):
            self._connection.close()
            self.wait(lambda: bool(self._connection.state & Endpoint.REMOTE_CLOSED), min(_CLOSE_S, self.timeout_s))
        self._transport.unbind()
        self._socket.close()

    def _send(self) -> None:
        self._transport.tick(time.monotonic())
        self._socket.settimeout(self.timeout_s)
        while (count := self._transport.pending()) > 0:
            octets = self._transport.peek(min(count, _PIECE)) or b""
            self._socket.sendall(octets)
            self._transport.pop(len(octets))

    def _receive(self, timeout_s: float) -> None:
        room = self._transport.capacity()
        self._socket.settimeout(timeout_s)
        try:
            octets = self._socket.recv(min(room, _PIECE)) if room > 0 else b""
        except TimeoutError:
            return
        if octets:
            self._transport.push(octets)
        while self._collector.peek():  # what happened is read off the endpoints
            self._collector.pop()
        condition = self._transport.condition
        if condition is not None or not octets:
            raise ClientProblem(f"{self.url}: the connection broke off{_words(condition)}")


def _why(endpoint: Connection | Session | Link) -> str:
    return _words(endpoint.remote_condition)


def _words(condition: Condition | None) -> str:
    """`: amqp:not-found: there is no such node`."""
    if condition is None:
        return ""
    return "".join(f": {part}" for part in (condition.name, condition.description) if part)


@contextmanager
def connected(address: PeerAddress, timeout_s: float) -> Iterator[Peer]:
    """Raises ClientProblem, also for what goes wrong inside."""
    opened = logged_in(address, timeout_s)
    try:
        peer = Peer(opened, address.url, timeout_s)
        try:
            yield peer
        finally:
            peer.close()
    except ProtonException as error:
        raise ClientProblem(f"{address.url}: {error}") from None
    except OSError as error:
        raise ClientProblem(f"{address.url}: {error.strerror or error or type(error).__name__}") from None
    finally:
        opened.close()


def made(text: str, message_id: str, subject: str | None, properties: dict[str, str], durable: bool) -> Message:
    """A message whose body is a text."""
    return Message(body=text, id=message_id, subject=subject, properties=properties or None, durable=durable)


@dataclass(frozen=True, slots=True)
class Attached:
    """A link to a node."""

    peer: Peer
    link: Any  # proton's sender or receiver
    node: str


def sender(peer: Peer, node: str) -> Attached:
    link = peer.session.sender(str(uuid.uuid4()))
    link.target.address = node
    peer.attach(link, node)
    return Attached(peer, link, node)


def send(to: Attached, message: Message, timeout_s: float) -> Outcome:
    """Waits for the outcome. Raises ClientProblem."""
    delivery = to.link.send(message)
    outcome = _awaited(to, delivery, timeout_s)
    delivery.settle()
    return outcome


def receiver(peer: Peer, node: str) -> Attached:
    """It asks for one message at a time, so that no other one is taken from the node, and settles after the sender."""
    link = peer.session.receiver(str(uuid.uuid4()))
    link.source.address = node
    link.snd_settle_mode, link.rcv_settle_mode = Link.SND_UNSETTLED, Link.RCV_SECOND
    peer.attach(link, node)
    return Attached(peer, link, node)


def receive(at: Attached, count: int, stated: str, timeout_s: float) -> Iterator[Received]:
    """At most `count` messages; ends after `timeout_s` altogether. `stated`: accept, release, reject."""
    until_s = time.monotonic() + timeout_s
    for _ in range(count):
        at.link.flow(1)
        if not at.peer.wait(lambda: _has_come(at), until_s - time.monotonic()):
            return
        message = Message()
        delivery = message.recv(at.link)
        assert delivery is not None
        if delivery.settled:
            yield Received("", message, Outcome("settled"))
            continue
        delivery.update(_STATED[stated])
        outcome = _awaited(at, delivery, timeout_s)
        delivery.settle()
        yield Received(delivery.tag, message, outcome)


def _has_come(at: Attached) -> bool:
    delivery = at.link.current
    if delivery is not None and delivery.readable and not delivery.partial:
        return True
    at.peer.check(at.link, at.node)
    return False


def _awaited(at: Attached, delivery: Delivery, timeout_s: float) -> Outcome:
    def ended() -> bool:
        if not delivery.settled:
            at.peer.check(at.link, at.node)
        return bool(delivery.settled)

    if not at.peer.wait(ended, timeout_s):
        return Outcome(NO_ANSWER)
    condition = delivery.remote.condition if delivery.remote_state == Delivery.REJECTED else None
    name = _STATES.get(delivery.remote_state, "settled")
    return Outcome(name, condition.name, condition.description or "") if condition else Outcome(name)
