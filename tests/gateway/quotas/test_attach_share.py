"""A holder has so many attaches undecided at once, over all its connections; who waits goes on one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.attach.undecided_attaches import UNDECIDED_MAX, UndecidedAttaches
from gateway.quotas.attach_share import HOLDER_MAX, AttachShare
from mappings import load_tables
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.node import Node
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.kit.wire.scripted_realm import ScriptedRealm

BROKEN, WRONG = "broken", "wrong"


class Client:
    """A connection that attaches as long as it is read."""

    def __init__(self, share: AttachShare[Any], holder: str) -> None:
        self.holder, self.waiting, self.begun = holder, False, 0
        self.undecided = UndecidedAttaches(share)
        self.open: list[Attach] = []

    def wait(self) -> None:
        self.waiting = True

    def resume(self) -> None:
        self.waiting = False
        self.attach()

    def attach(self) -> None:
        while not self.waiting and self.begun < 40:
            self.begun += 1
            self.open.append(Attach(self))
            self.undecided.add(self.open[-1])

    def decide(self) -> None:
        self.undecided.discard(self.open.pop(0))


class Attach:
    def __init__(self, connection: Client) -> None:
        self.connection = connection

    def coordinate(self) -> None:
        """None of these is a control link's."""


def turn(share: AttachShare[Any]) -> None:
    while (client := share.next()) is not None:
        client.undecided.go_on(client)
    assert not share.is_due


def test_one_connection_has_as_many_as_before() -> None:
    client = Client(AttachShare(), "ann")
    client.attach()
    assert (client.begun, client.waiting) == (UNDECIDED_MAX, True)
    client.decide()
    assert (client.begun, client.waiting) == (UNDECIDED_MAX + 1, True)


def test_many_connections_of_one_holder_share_and_others_do_not_wait() -> None:
    share = AttachShare[Any]()
    clients = [Client(share, "ann") for _ in range(50)]
    for client in clients:
        client.attach()
    begun = sum(client.begun for client in clients)
    assert begun < HOLDER_MAX + len(clients), "each of those that came late has one"
    assert all(client.waiting for client in clients)
    other = Client(share, "ben")
    other.attach()
    assert other.begun == UNDECIDED_MAX
    most = begun
    while any(client.open for client in clients):
        for client in clients:
            if client.open:
                client.decide()
                turn(share)
                most = max(most, sum(len(peer.open) for peer in clients))
    assert most == begun
    assert [client.begun for client in clients] == [40] * 50 and not any(client.waiting for client in clients)


def test_those_that_wait_go_on_in_their_order() -> None:
    share = AttachShare[Any]()
    clients = [Client(share, "ann") for _ in range(10)]
    for client in clients:
        client.attach()
    late = [client for client in clients if client.begun == 1]
    assert len(late) >= 5
    while late[0].begun == 1:
        clients[0].decide()
        turn(share)
    assert [client.begun for client in late[1:]] == [1] * (len(late) - 1)


class LookingUp(ScriptedRealm):
    """Finds every node when it is asked, which it notes."""

    def __init__(self) -> None:
        super().__init__()
        self.sought: list[str] = []

    def find_node(self, name: str, owner: object) -> None:
        self.sought.append(name)
        if name == WRONG:
            raise ZeroDivisionError
        answer: Any = "an answer that no table knows" if name == BROKEN else "ready"
        self.answer("find", NodeFound(owner, super().node(name), answer, ""))

    def node(self, name: str) -> Node:
        return None  # type: ignore[return-value]


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    with ScriptedGateway(load_tables(), LookingUp()) as gateway:
        yield gateway


@pytest.fixture
def peers(gateway: ScriptedGateway) -> Iterator[Callable[[int], list[Peer]]]:
    opened: list[Peer] = []

    def more(count: int) -> list[Peer]:
        opened.extend(Peer(gateway.port) for _ in range(count))
        return opened[-count:]

    yield more
    for peer in opened:
        peer.close()


def realm_of(gateway: ScriptedGateway) -> LookingUp:
    assert isinstance(gateway.realm, LookingUp)
    return gateway.realm


def until_all_wait(gateway: ScriptedGateway, count: int) -> None:
    gateway.until(lambda: sum(connection.waiting for connection in gateway.gateway.connections) == count)


def test_the_realm_is_asked_for_a_share_and_in_the_end_for_all(
    gateway: ScriptedGateway, peers: Callable[[int], list[Peer]]
) -> None:
    realm = realm_of(gateway)
    realm.holds.add("find")
    clients = peers(10)
    for number, peer in enumerate(clients):
        peer.send(*(frames.attach_sender(f"q{number}", at, f"link-{number}-{at}") for at in range(UNDECIDED_MAX)))
    until_all_wait(gateway, 10)
    assert HOLDER_MAX <= len(realm.sought) <= HOLDER_MAX + 10
    gateway.do(realm.release)
    for peer in clients:
        for _ in range(UNDECIDED_MAX):
            peer.expect("attach")
    assert len(realm.sought) == 10 * UNDECIDED_MAX


def test_what_asks_the_realm_nothing_counts_for_nothing_and_is_carried_out_once(
    gateway: ScriptedGateway, peers: Callable[[int], list[Peer]]
) -> None:
    """A relay is confirmed at once. As the last one that a connection may have undecided it was counted, decided, and
    what came behind it carried out twice."""
    realm = realm_of(gateway)
    realm.holds.add("find")
    [peer] = peers(1)
    peer.send(*(frames.attach_sender("q", at, f"link-{at}") for at in range(UNDECIDED_MAX - 1)))
    gateway.until(lambda: len(realm.sought) == UNDECIDED_MAX - 1)
    relay = frames.attach_sender(frames.target(None), 50, "relay")
    peer.send(relay + frames.transfer(0, frames.message_to("q"), 50))
    gateway.until(lambda: len(realm.sought) == UNDECIDED_MAX)  # the message's node, too
    gateway.do(realm.release)
    gateway.until(lambda: len(gateway.stored("q")) > 0)
    for _ in range(20):
        gateway.do(lambda: None)
    assert len(gateway.stored("q")) == 1


def test_many_that_wait_go_on_one_after_another(gateway: ScriptedGateway, peers: Callable[[int], list[Peer]]) -> None:
    """Each with a control link behind its attach, which waits for that and asks nothing."""
    realm = realm_of(gateway)
    realm.holds.add("find")
    clients = peers(HOLDER_MAX + 100)
    for peer in clients:
        peer.send(frames.attach_sender("q", 0, "link"), frames.attach_sender(frames.COORDINATOR, 1, "control"))
    until_all_wait(gateway, 101)
    gateway.do(realm.release)
    for peer in clients:
        for _ in range(2):
            peer.expect("attach")


def test_an_attach_of_which_we_are_wrong_takes_nothing_for_ever(peers: Callable[[int], list[Peer]]) -> None:
    for peer in peers(HOLDER_MAX + 1):
        peer.send(frames.attach_sender(BROKEN, 0, "link"))
        assert peer.closed()
    [peer] = peers(1)
    peer.send(frames.attach_sender("q", 0, "link"))
    peer.expect("attach")


def test_what_came_behind_an_attach_of_which_we_are_wrong_was_not_counted_and_is_not_given_back(
    gateway: ScriptedGateway, peers: Callable[[int], list[Peer]]
) -> None:
    [stays, peer] = peers(2)
    stays.publisher("q")
    peer.send(frames.attach_sender(WRONG, 0, "link"), frames.attach_sender("q", 1, "behind"))
    assert peer.closed()
    gateway.until(lambda: len(gateway.gateway.connections) == 1)
    assert gateway.gateway.shares.links.used == 1
