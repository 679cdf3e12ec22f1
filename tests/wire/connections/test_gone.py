"""A connection that has gone leaves nothing behind, not even work for the garbage collector: that looks seldom (what a
long-lived connection leaves in cycles might stay for hours), and stops every connection while it looks."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.session.gateway import Gateway
from mappings import load_tables
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld
from tests.kit.wire import frames
from tests.kit.wire.conversation import settings_of

TABLES = load_tables()
MESSAGE = frames.message()
TURNS = 100  # milliseconds until what was asked of the realm is done


class Peer:
    """A connection without a socket, to a gateway on a real realm."""

    def __init__(self, gateway: Gateway, realm: RealmProcess) -> None:
        self.connection = gateway.connect()
        self._gateway, self._realm = gateway, realm
        self.say(frames.AMQP_HEADER, frames.open_("peer"), frames.begin())

    def say(self, *pieces: bytes) -> None:
        self.connection.receive(b"".join(pieces))
        for _ in range(TURNS):
            self._gateway.poll()
            self._gateway.touched.clear()
            self.connection.data_to_send()
            self._realm.world.pass_time()


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def publishes(peer: Peer) -> None:
    peer.say(frames.attach_sender("q"))
    peer.say(frames.transfer(0, MESSAGE), frames.transfer(1, MESSAGE))


def consumes(peer: Peer) -> None:
    peer.say(frames.attach_sender("q"))
    peer.say(*(frames.transfer(number, MESSAGE) for number in range(5)))
    peer.say(frames.attach_receiver("q"), frames.flow(1, 3))
    peer.say(frames.disposition(0, 0, frames.state("accepted")))
    peer.say(frames.flow(1, 9, 3))


def relays(peer: Peer) -> None:
    peer.say(frames.attach_sender(None))
    peer.say(frames.transfer(0, frames.message_to("q")))


def transacts(peer: Peer) -> None:
    peer.say(frames.attach_sender(frames.COORDINATOR, 7), frames.attach_sender("q"))
    peer.say(frames.declare(0))
    peer.say(frames.transfer(0, MESSAGE))


def is_refused(peer: Peer) -> None:
    peer.say(frames.attach_sender("missing"), frames.attach_receiver("missing", 1))


def detaches(peer: Peer) -> None:
    consumes(peer)
    peer.say(frames.detach(1), frames.detach(0))


def ends_its_session(peer: Peer) -> None:
    consumes(peer)
    peer.say(frames.end())


def breaks_the_protocol(peer: Peer) -> None:
    publishes(peer)
    peer.say(b"\xff" * 16)


def says_goodbye(peer: Peer) -> None:
    consumes(peer)
    peer.say(frames.close())


def says_nothing(_: Peer) -> None:
    """It has opened its connection, and a session."""


LIVES: list[Callable[[Peer], None]] = [
    publishes,
    consumes,
    relays,
    transacts,
    is_refused,
    detaches,
    ends_its_session,
    breaks_the_protocol,
    says_goodbye,
    says_nothing,
]


@pytest.mark.parametrize("lives", LIVES, ids=lambda lives: lives.__name__)
def test_nothing_leads_back_to_a_connection_that_has_gone(lives: Callable[[Peer], None]) -> None:
    realm = RealmProcess(SimulatedWorld("simulated"), "gone").open()
    realm.create("q", "queue")
    gateway = Gateway(settings_of(TABLES, (), {}), realm.realm, TABLES, realm.clock)
    left = [*remains(gateway, realm, lives)]
    pass_time(gateway, realm)
    assert not [ref() for ref in left if ref() is not None]
    assert not (
        gateway.connections
        or gateway.link_names
        or gateway.publishers
        or gateway.links
        or gateway.opened
        or gateway.ready
        or gateway.touched
    )
    realm.close()


def remains(gateway: Gateway, realm: RealmProcess, lives: Callable[[Peer], None]) -> list[weakref.ref[Any]]:
    """What there was of it, just before its socket was lost."""
    peer = Peer(gateway, realm)
    lives(peer)
    engine = peer.connection.engine
    links = [part for link in engine.links() for part in (link, link.owner) if part is not None]
    left = [weakref.ref(target) for target in (peer.connection, engine, *links)]
    gateway.disconnect(peer.connection)
    return left


def pass_time(gateway: Gateway, realm: RealmProcess) -> None:
    for _ in range(TURNS):
        gateway.poll()
        gateway.touched.clear()
        realm.world.pass_time()
