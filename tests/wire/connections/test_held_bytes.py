"""What peers make the gateway hold, over sockets: at its limits a link or a connection ends with a reason, a neighbour
is served on, and the process does not grow beyond them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gateway.quotas.held_bytes import DELIVERY_BYTES
from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

REFUSED = "amqp:resource-limit-exceeded"
MIB = 1024 * 1024
PART = b"x" * 20_000
SMALL = {
    "message_size_bytes": 65_536,
    "held_bytes": 262_144,
    "held_bytes_per_connection": 65_536,
    "write_buffer_bytes": 65_536,
    "connections": 100,
}
LARGE = {"message_size_bytes": MIB, "held_bytes": 64 * MIB, "held_bytes_per_connection": 48 * MIB, "connections": 500}
ROOM = 100_000_000  # for what is no peer's
NODES = {"create_on_attach": ["any.*"]}


@pytest.fixture(params=["embedded", "kafka"])
def realm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def peers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(gateway: GatewayProcess, peers: ExitStack) -> Peer:
    return peers.enter_context(Peer(gateway.port))


def begin(peer: Peer, number: int, parts: int) -> None:
    """A message of so many parts, on a link of its own, that does not end."""
    peer.publisher("any.held", handle=number)
    peer.send(*(frames.transfer(number, PART, number, more=True) for _ in range(parts)))


def is_served(gateway: GatewayProcess, node: str = "any.neighbour") -> None:
    """A message in several frames, which come one by one, is accepted, and is given to a consumer."""
    message = frames.message(b"y" * 12_000)
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        for at in range(2):
            peer.send(frames.transfer(0, message[4_000 * at : 4_000 * (at + 1)], more=True))
            peer.publisher(node, handle=10 + at)  # what came before it was read
        peer.send(frames.transfer(0, message[8_000:]))
        assert peer.outcomes(1) == {0: "accepted"}
        peer.consumer(node, credit=1, handle=2)
        [seen] = peer.receive(1, handle=2)
        assert seen.payload == message
        peer.settle([seen.field(1)], frames.state("accepted"), settled=False)
        assert peer.outcomes(1) == {seen.field(1): "accepted"}


def told(peer: Peer, name: str, count: int) -> None:
    """It has been sent so many frames of that name."""
    until(
        lambda: sum(seen.name == name for seen in peer.seen) >= count,
        f"{count} of {name}",
        pause=lambda: peer.read(0.1),
    )


def reason(peer: Peer, name: str) -> tuple[str | None, str]:
    """Condition and description."""
    seen = peer.expect(name)
    return seen.condition, seen.field(2 if name == "detach" else 0).value[1]


def test_messages_in_part_end_a_link_at_the_share_and_at_the_sum(
    new_gateway: StartGateway, peers: ExitStack, realm: str
) -> None:
    gateway = new_gateway(realm, limits=SMALL, nodes=NODES)
    first, second, third = (connect(gateway, peers) for _ in range(3))
    begin(first, 0, 2)
    begin(first, 1, 2)
    condition, words = reason(first, "detach")
    assert condition == REFUSED and "limits.held_bytes_per_connection, 65536 octets" in words
    is_served(gateway)
    begin(second, 0, 3)
    begin(third, 0, 3)
    condition, words = reason(second, "detach")
    assert condition == REFUSED and "limits.held_bytes, 262144 octets of all peers" in words
    is_served(gateway)


def test_what_a_consumer_does_not_settle_is_held_back_at_the_share(
    new_gateway: StartGateway, peers: ExitStack, realm: str
) -> None:
    gateway = new_gateway(realm, limits=SMALL, nodes=NODES)
    peer, most = connect(gateway, peers), SMALL["held_bytes_per_connection"] // DELIVERY_BYTES
    peer.stored("any.unsettled", *[frames.message(b"%d" % number) for number in range(2 * most)])
    peer.consumer("any.unsettled", credit=2 * most)
    came = peer.receive(most - 20)
    is_served(gateway)
    for _ in range(3):  # what came with the same octets is done in that turn, what they led to in the next
        peer.send(frames.begin(7), frames.end(7))
    told(peer, "end", 3)
    more = sum(seen.name == "transfer" for seen in peer.seen)
    assert len(came) + more <= most + 1
    peer.seen = [seen for seen in peer.seen if seen.name == "transfer"]
    peer.settle([seen.field(1) for seen in came], frames.state("accepted"))
    assert len(peer.receive(most)) == most, "as many again"


def test_a_flood_of_messages_in_part_takes_no_more_memory_than_the_limit(
    new_gateway: StartGateway, peers: ExitStack, realm: str
) -> None:
    """500 links of a connection, each with most of a megabyte and more to come."""
    gateway = new_gateway(realm, limits=LARGE, nodes=NODES)
    is_served(gateway)
    before, hog = gateway.rss_bytes(), connect(gateway, peers)
    for number in range(500):
        hog.send(frames.attach_sender(frames.target("any.held", capability="queue"), number, f"held {number}"))
        hog.send(*[frames.transfer(number, b"x" * 60_000, number, more=True)] * 16)
    hog.send(frames.attach_sender(frames.target("any.held", capability="queue"), 500, "last"))
    told(hog, "attach", 501)
    assert gateway.rss_bytes() - before < LARGE["held_bytes_per_connection"] + ROOM
    ended = [seen.condition for seen in hog.seen if seen.name == "detach"]
    assert 400 < len(ended) < 500 and {*ended} == {REFUSED}
    is_served(gateway)


def test_who_reads_nothing_is_closed_when_all_is_used_up_and_the_memory_stays_within_it(
    new_gateway: StartGateway, peers: ExitStack, realm: str
) -> None:
    """100 consumers with more credit than they read."""
    gateway = new_gateway(realm, limits=LARGE, nodes=NODES)
    is_served(gateway)
    before, hogs = gateway.rss_bytes(), [connect(gateway, peers) for _ in range(100)]
    for number, hog in enumerate(hogs):
        hog.send(frames.attach_receiver(frames.source("any.news", capability="topic"), mode=1), frames.flow(1, 10_000))
        if not number:
            hog.expect("attach")
    with Peer(gateway.port) as publisher:
        publisher.stored("any.news", *[frames.message(b"z" * 60_000)] * 200, kind="channel")
        is_served(gateway)
        assert gateway.rss_bytes() - before < LARGE["held_bytes"] + ROOM
    gateway.await_log("too-much-held")
    is_served(gateway)
