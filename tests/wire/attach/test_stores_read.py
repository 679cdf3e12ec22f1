"""How many stores are read for consumers, over a socket: one too many is refused, and what ends makes room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.wire.conftest import serve


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Eight stores at most, of which peers of one address have six."""
    admin = {"listen": "http://127.0.0.1:0"}
    yield from serve(tmp_path_factory, limits={"stores_read": 8}, nodes={"create_on_attach": ["*"]}, admin=admin)


def test_a_consumer_of_one_store_too_many_is_refused_and_the_others_go_on(few: GatewayProcess) -> None:
    few.command("node", "create", "wide", "--partitions", "4")
    watch = Watch.of(few)
    with Peer(few.port) as peer, Peer(few.port) as other:
        peer.consumer("wide", handle=0, name="wide")
        for number in range(2):
            peer.consumer(f"q{number}", handle=number + 1, name=f"q{number}")
        assert watch.metrics()["realmgate_stores_read", ()] == 6
        peer.send(frames.attach_receiver("q2", 3, "q2"))
        assert peer.refused() == "amqp:resource-limit-exceeded"
        other.consumer("q1")
        peer.consumer("q1", handle=4, name="q1-too")
        assert watch.metrics()["realmgate_stores_read", ()] == 6, "that is read already"
        peer.send(frames.detach(0))
        peer.expect("detach")
        peer.consumer("q2", credit=1, handle=0, name="q2-again")
        assert watch.metrics()["realmgate_stores_read", ()] == 3
        peer.stored("q2", frames.message())
        assert peer.next_frame("transfer", lambda seen: seen.field(0) == 0, HANG_S).payload == frames.message()
    watch.until_zero("realmgate_stores_read")


def test_attaches_that_come_at_once_are_no_way_around(few: GatewayProcess) -> None:
    """All of them are asked of the realm before the first one is attached."""
    for number in range(6):
        few.command("node", "create", f"at-once-{number}", "--partitions", "3")
    watch = Watch.of(few)
    with Peer(few.port) as peer:
        names = [f"at-once-{number}" for number in range(6)]
        peer.send(*(frames.attach_receiver(name, handle, name) for handle, name in enumerate(names)))
        while sum(seen.name in ("attach", "detach") for seen in peer.seen) < 10:
            assert peer.read(HANG_S)
        conditions = [seen.condition for seen in peer.seen if seen.name == "detach"]
        assert conditions == ["amqp:resource-limit-exceeded"] * 4
        assert watch.metrics()["realmgate_stores_read", ()] == 6
    watch.until_zero("realmgate_stores_read")


def test_on_kafka_the_limit_is_one_of_threads_and_descriptors(new_gateway: StartGateway) -> None:
    """30 queues, of which 18 may be read: what docs/configuration.md says that a store takes, and not more."""
    gateway = new_gateway("kafka", limits={"stores_read": 24}, nodes={"create_on_attach": ["*"]})
    names = [f"q{number}" for number in range(30)]
    with Peer(gateway.port) as peer:
        for handle, name in enumerate(names):
            peer.publisher(name, handle=handle)
        threads, files = taken(gateway)
        peer.send(*(frames.attach_receiver(name, 100 + handle, f"from {name}") for handle, name in enumerate(names)))
        until(lambda: refused(peer) == 12, "12 refused", pause=lambda: peer.read(0.1))
        read = [seen.field(0).removeprefix("from ") for seen in peer.seen if seen.name == "attach" and seen.field(5)]
        assert len(read) == 18
        peer.seen.clear()
        peer.send(*(frames.flow(100 + names.index(name), 1) for name in read))
        for name in read:
            peer.stored(name, frames.message())
            peer.next_frame("transfer", lambda seen: True, HANG_S)
        more_threads, more_files = taken(gateway)
        assert 18 <= more_threads - threads <= 18 * 5, (threads, more_threads)
        assert 18 <= more_files - files <= 18 * 10, (files, more_files)
        peer.send(*(frames.detach(100 + names.index(name)) for name in read))
        until(lambda: taken(gateway)[0] < threads + 18, "the threads of the stores that are not read any more")


def refused(peer: Peer) -> int:
    return sum(seen.condition == "amqp:resource-limit-exceeded" for seen in peer.seen if seen.name == "detach")


def taken(gateway: GatewayProcess) -> tuple[int, int]:
    """Threads and descriptors of its process."""
    process = Path(f"/proc/{gateway.pid}")
    return len([*(process / "task").iterdir()]), len([*(process / "fd").iterdir()])
