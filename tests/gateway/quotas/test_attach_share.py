"""A holder has so many attaches undecided at once, over all its connections; who waits goes on one by one."""

from __future__ import annotations

from collections.abc import Iterator

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


class Client:
    """A connection that attaches as long as it is read."""

    def __init__(self, share: AttachShare, holder: str) -> None:
        self.holder, self.waiting, self.begun = holder, False, 0
        self.undecided = UndecidedAttaches(share)
        self.open: list[Attach] = []
        self._is_busy = False

    def wait(self) -> None:
        self.waiting = True

    def resume(self) -> None:
        self.waiting = False
        self.attach()

    def attach(self) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        while not self.waiting and self.begun < 40:
            self.begun += 1
            self.open.append(Attach(self))
            self.undecided.add(self.open[-1])
        self._is_busy = False

    def decide(self) -> None:
        self.undecided.discard(self.open.pop(0))


class Attach:
    def __init__(self, connection: Client) -> None:
        self.connection = connection

    def coordinate(self) -> None:
        """None of these is a control link's."""


def test_one_connection_has_as_many_as_before() -> None:
    client = Client(AttachShare(), "ann")
    client.attach()
    assert (client.begun, client.waiting) == (UNDECIDED_MAX, True)
    client.decide()
    assert (client.begun, client.waiting) == (UNDECIDED_MAX + 1, True)


def test_many_connections_of_one_holder_share_and_others_do_not_wait() -> None:
    share = AttachShare()
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
                most = max(most, sum(len(peer.open) for peer in clients))
    assert most == begun
    assert [client.begun for client in clients] == [40] * 50 and not any(client.waiting for client in clients)


def test_those_that_wait_go_on_in_their_order() -> None:
    share = AttachShare()
    clients = [Client(share, "ann") for _ in range(10)]
    for client in clients:
        client.attach()
    late = [client for client in clients if client.begun == 1]
    assert len(late) >= 5
    first = clients[0]
    while late[0].begun == 1:
        first.decide()
    assert [client.begun for client in late[1:]] == [1] * (len(late) - 1)


class LookingUp(ScriptedRealm):
    """Finds every node when it is asked, which it notes."""

    def __init__(self) -> None:
        super().__init__()
        self.sought: list[str] = []

    def find_node(self, name: str, owner: object) -> None:
        self.sought.append(name)
        self.answer("find", NodeFound(owner, super().node(name), "ready", ""))

    def node(self, name: str) -> Node:
        return None  # type: ignore[return-value]


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    with ScriptedGateway(load_tables(), LookingUp()) as gateway:
        yield gateway


def test_the_realm_is_asked_for_a_share_and_in_the_end_for_all(gateway: ScriptedGateway) -> None:
    realm = gateway.realm
    assert isinstance(realm, LookingUp)
    realm.holds.add("find")
    peers = [Peer(gateway.port) for _ in range(10)]
    try:
        for number, peer in enumerate(peers):
            peer.send(*(frames.attach_sender(f"q{number}", at, f"link-{number}-{at}") for at in range(UNDECIDED_MAX)))
        gateway.until(lambda: len(gateway.gateway.connections) == 10 and len(realm.sought) >= HOLDER_MAX)
        for _ in range(20):
            gateway.do(lambda: None)
        assert len(realm.sought) <= HOLDER_MAX + 10
        gateway.do(realm.release)
        for peer in peers:
            for _ in range(UNDECIDED_MAX):
                peer.expect("attach")
        assert len(realm.sought) == 10 * UNDECIDED_MAX
    finally:
        for peer in peers:
            peer.close()
