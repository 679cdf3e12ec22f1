"""A connection of an AMQP 1.0 client, over proton's blocking one: send a message and get its outcome, receive one and
state an outcome.

It is no part of the engine, and runs in a process of its own: the one place outside `gateway.amqp` that imports proton.
Receivers ask for the settle mode second: what is printed is what the peer settled with, not only what was asked.
Errors: `ClientProblem`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from proton import Delivery, Link, Message, ProtonException, SSLDomain, Timeout
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, BlockingReceiver, BlockingSender, ConnectionClosed, LinkDetached

from gateway.cli.client.peer_address import PeerAddress

NO_ANSWER: Final = "no answer"
_STATES: Final[dict[int, str]] = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}
_STATED: Final = {"accept": Delivery.ACCEPTED, "release": Delivery.RELEASED, "reject": Delivery.REJECTED}


class ClientProblem(Exception):
    """The connection or the link is not to be had. `refused`: the peer answered, and refused the link."""

    def __init__(self, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


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


@contextmanager
def connected(address: PeerAddress, timeout_s: float) -> Iterator[BlockingConnection]:
    """Raises ClientProblem, also for what goes wrong inside."""
    try:
        connection = BlockingConnection(address.url, timeout=timeout_s, **_login(address))
        try:
            yield connection
        finally:
            _close(connection)
    except LinkDetached as error:
        raise ClientProblem(str(error), refused=True) from None
    except ConnectionClosed as error:
        raise ClientProblem(f"{address.url}: {error}") from None
    except (ProtonException, OSError) as error:
        raise ClientProblem(f"{address.url}: {error or type(error).__name__}; does a peer listen there?") from None


def _login(address: PeerAddress) -> dict[str, Any]:
    options: dict[str, Any] = {"reconnect": False}
    if address.user is not None:
        options |= {"user": address.user, "password": address.password, "allowed_mechs": "PLAIN"}
    if address.ca is not None:
        if not address.ca.is_file():
            raise ClientProblem(f"--ca: there is no {address.ca}")
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(address.ca))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        options["ssl_domain"] = domain
    return options


def _close(connection: BlockingConnection) -> None:
    """A peer that has gone needs no close, and the first error is the one to report."""
    try:
        connection.close()
    except (ProtonException, OSError):
        return


def made(text: str, message_id: str, subject: str | None, properties: dict[str, str], durable: bool) -> Message:
    """A message whose body is a text."""
    return Message(body=text, id=message_id, subject=subject, properties=properties or None, durable=durable)


def send(sender: BlockingSender, message: Message, timeout_s: float) -> Outcome:
    """Waits for the outcome."""
    delivery = sender.link.send(message)
    assert isinstance(delivery, Delivery)  # of a message, not of octets
    outcome = _awaited(sender, delivery, timeout_s)
    delivery.settle()
    return outcome


class _Second(LinkOption):
    """The receiver settles after the sender."""

    def apply(self, link: Link) -> None:
        link.snd_settle_mode = Link.SND_UNSETTLED
        link.rcv_settle_mode = Link.RCV_SECOND


def receiver(connection: BlockingConnection, node: str) -> BlockingReceiver:
    """It asks for one message at a time, so that no other one is taken from the node."""
    return connection.create_receiver(node, credit=0, options=_Second())


def receive(link: BlockingReceiver, count: int, stated: str, timeout_s: float) -> Iterator[Received]:
    """At most `count` messages; ends after `timeout_s` altogether. `stated`: accept, release, reject."""
    deadline_s = time.monotonic() + timeout_s
    for _ in range(count):
        try:
            message = link.receive(timeout=max(0.0, deadline_s - time.monotonic()))
        except Timeout:
            return
        unsettled = link.fetcher.unsettled if link.fetcher is not None else None
        if not unsettled:
            yield Received("", message, Outcome("settled"))
            continue
        delivery = unsettled.popleft()
        delivery.update(_STATED[stated])
        outcome = _awaited(link, delivery, timeout_s)
        delivery.settle()
        yield Received(delivery.tag, message, outcome)


def _awaited(link: BlockingSender | BlockingReceiver, delivery: Delivery, timeout_s: float) -> Outcome:
    try:
        link.connection.wait(lambda: delivery.settled, timeout=timeout_s)
    except Timeout:
        return Outcome(NO_ANSWER)
    if not delivery.settled:
        return Outcome(NO_ANSWER)
    condition = delivery.remote.condition if delivery.remote_state == Delivery.REJECTED else None
    name = _STATES.get(delivery.remote_state, "settled")
    return Outcome(name, condition.name, condition.description or "") if condition else Outcome(name)
