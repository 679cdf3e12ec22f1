"""A peer's turn ends with a few frames that are no plain deliveries: between two of them others have theirs."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from gateway.attach.undecided_attaches import UNDECIDED_MAX
from gateway.session.connection import Connection
from mappings import load_tables
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.node import Node
from tests.kit.wire import frames
from tests.kit.wire.frames import AMQP_HEADER
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.kit.wire.scripted_realm import ScriptedRealm

TIMES = 300
PAIR = frames.begin(1) + frames.end(1)
EFFORT = 2 * 8 * TIMES
EFFORT_OF_A_TURN = 64


class Seen:
    """What each `receive` took, and in which turn of the loop."""

    def __init__(self, gateway: ScriptedGateway) -> None:
        self.efforts: list[int] = []
        self.at: list[int] = []
        self._turn = 0
        self._loop = gateway._loop
        gateway.do(self._count)

    def _count(self) -> None:
        self._turn += 1
        self._loop.call_soon(self._count)

    def note(self, effort: int) -> None:
        self.efforts.append(effort)
        self.at.append(self._turn)


class LookingUp(ScriptedRealm):
    """Knows of no node at once, and finds every one when it is asked."""

    def node(self, name: str) -> Node:
        return None  # type: ignore[return-value]

    def find_node(self, name: str, owner: object) -> None:
        self.answer("find", NodeFound(owner, super().node(name), "ready", ""))


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    with ScriptedGateway(load_tables(), LookingUp()) as gateway:
        yield gateway


@pytest.fixture
def seen(gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch) -> Seen:
    seen, receive = Seen(gateway), Connection.receive

    def noted(connection: Connection, data: bytes | memoryview, effort_max: int = 0) -> bool:
        heard = receive(connection, data, effort_max)
        seen.note(connection.engine.frame_reader.effort)
        return heard

    monkeypatch.setattr(Connection, "receive", noted)
    return seen


def all_taken(gateway: ScriptedGateway, seen: Seen) -> None:
    gateway.until(lambda: sum(seen.efforts) >= EFFORT)
    assert max(seen.efforts) <= EFFORT_OF_A_TURN
    busy = [at for at, effort in zip(seen.at, seen.efforts, strict=True) if effort]
    assert len(set(busy)) == len(busy) >= EFFORT // EFFORT_OF_A_TURN, "the loop had a turn between any two"


def test_a_loop_of_frames_is_cut_into_turns(gateway: ScriptedGateway, seen: Seen) -> None:
    with Peer(gateway.port) as peer:
        gateway.until(lambda: len(seen.efforts) > 0)
        peer.send(PAIR * TIMES)
        all_taken(gateway, seen)
        assert gateway.do(lambda: len(gateway.gateway.connections)) == 1


def test_who_hangs_up_behind_such_a_loop_is_worked_off_in_turns_too(gateway: ScriptedGateway, seen: Seen) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port)) as peer:
        peer.sendall(AMQP_HEADER + frames.open_("gone") + frames.begin() + PAIR * TIMES)
    all_taken(gateway, seen)
    gateway.until(lambda: not gateway.gateway.connections and not gateway.server.sockets)


@pytest.mark.parametrize("hangs_up", [False, True], ids=["stays", "hangs-up"])
def test_of_who_waits_for_the_realm_nothing_more_is_read(gateway: ScriptedGateway, seen: Seen, hangs_up: bool) -> None:
    """The relay looks a node up; what comes behind the message must not overtake it: what was read with it waits for
    its turn, the rest in the socket."""
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender(frames.target(None), 0, "relay"))
        peer.expect("attach")
        gateway.realm.holds.add("find")
        [(connection, port)] = gateway.do(lambda: [*gateway.server.sockets.items()])
        before = gateway.do(lambda: sum(seen.efforts))
        peer.send(frames.transfer(0, frames.message_to("q")) + PAIR * TIMES)
        gateway.until(lambda: port._gate_closed)
        for _ in range(20):
            gateway.do(lambda: None)
        for now_s in (1e9, 2e9):
            gateway.do(lambda now_s=now_s: connection.tick(now_s))  # type: ignore[misc]  # it is not silent: it is not read
        assert connection.waiting and not connection.closing
        assert gateway.do(lambda: sum(seen.efforts)) < before + EFFORT_OF_A_TURN + 8, "a turn ends behind a frame"
        if not hangs_up:
            gateway.do(gateway.realm.release)
            gateway.until(lambda: sum(seen.efforts) >= before + EFFORT)
            assert not connection.closing
    gateway.do(gateway.realm.release)
    gateway.until(lambda: not gateway.gateway.connections and not gateway.server.sockets)
    assert len(gateway.stored("q")) == 1


@pytest.mark.parametrize("has_link", [False, True], ids=["alone", "with-another-link"])
def test_what_a_peer_sent_that_has_gone_is_not_read_behind_attaches_that_wait(
    gateway: ScriptedGateway, seen: Seen, has_link: bool
) -> None:
    """They come to nothing without it. Where it has another link, the rest may say how that ended."""
    with Peer(gateway.port) as peer:
        if has_link:
            peer.send(frames.attach_sender("q", 99, "established"))
            peer.expect("attach")
        gateway.realm.holds.add("find")
        [(_, port)] = gateway.do(lambda: [*gateway.server.sockets.items()])
        before = gateway.do(lambda: sum(seen.efforts))
        attaches = [frames.attach_sender("q", at, f"link-{at}") for at in range(UNDECIDED_MAX + 4)]
        first = [frames.begin(2), *attaches]  # the turn with the one that waits has some more
        peer.send(b"".join(first) + PAIR * TIMES)
        gateway.until(lambda: port._gate_closed)
        assert gateway.do(lambda: port._ahead_bytes) > 0, "it was read with the attaches"
        gateway.do(port.abort)
        gateway.until(lambda: not gateway.server.sockets)
    efforts = gateway.do(lambda: sum(seen.efforts)) - before
    rest = efforts - 8 * len(first)
    assert rest == EFFORT if has_link else rest <= EFFORT_OF_A_TURN
    gateway.do(gateway.realm.release)
    gateway.until(lambda: not gateway.gateway.connections)
    assert gateway.gateway.links == 0


def test_attaches_of_a_peer_that_has_gone_end_what_is_read_of_it(gateway: ScriptedGateway, seen: Seen) -> None:
    """It hangs up first, and its attaches come then."""
    gateway.realm.holds.add("find")
    attaches = b"".join(frames.attach_sender("q", at, f"link-{at}") for at in range(UNDECIDED_MAX))
    with socket.create_connection(("127.0.0.1", gateway.port)) as peer:
        peer.sendall(AMQP_HEADER + frames.open_("gone") + frames.begin() + PAIR * TIMES + attaches + PAIR * TIMES)
    gateway.until(lambda: sum(seen.efforts) >= EFFORT and not gateway.server.sockets)
    assert sum(seen.efforts) <= EFFORT + 8 * (2 + UNDECIDED_MAX) + EFFORT_OF_A_TURN
    gateway.do(gateway.realm.release)


@pytest.mark.parametrize("end", ["stays", "hangs up", "is cut off"])
def test_who_attaches_in_a_loop_waits_for_the_realm(gateway: ScriptedGateway, end: str) -> None:
    """A few attaches are asked about at a time, and so the realm has no more to answer than it can."""
    count = 4 * UNDECIDED_MAX
    with Peer(gateway.port) as peer:
        gateway.realm.holds.add("find")
        peer.send(*(frames.attach_sender("q", handle, f"link-{handle}") for handle in range(count)))
        [(connection, port)] = gateway.do(lambda: [*gateway.server.sockets.items()])
        gateway.until(lambda: port._gate_closed)
        for _ in range(20):
            gateway.do(lambda: None)
        assert gateway.do(lambda: len(gateway.realm._held)) == UNDECIDED_MAX and connection.waiting
        if end == "is cut off":  # what was read is heard, and never carried out
            gateway.do(port.abort)
            gateway.until(lambda: not gateway.server.sockets)
        elif end == "stays":
            gateway.do(gateway.realm.release)
            assert [peer.expect("attach").field(0) for _ in range(count)] == [f"link-{at}" for at in range(count)]
            peer.stored("q", frames.message())
            assert not connection.waiting
    gateway.do(gateway.realm.release)
    gateway.until(lambda: not gateway.gateway.connections and not gateway.server.sockets)
    assert gateway.gateway.links == 0
