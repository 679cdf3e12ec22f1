"""What the release before this one cannot read: it refuses the realm, and says so. Soon after it need not read it, and
serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from native_backend.log.port import Log
from tests.deploy.previous.release import Release
from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.realm.worlds import SqliteWorld
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

ACCEPTED = frames.state("accepted")
COUNT = 20


@pytest.fixture
def new(tmp_path: Path) -> GatewayProcess:
    return make_gateway(tmp_path / "new", embedded_realm(tmp_path))


def store(gateway: GatewayProcess, text: bytes) -> None:
    """One by one, so that the topic can end before any of them."""
    with Peer(gateway.port) as peer:
        for number in range(COUNT):
            peer.stored("orders", frames.message(text + b"%d" % number))


def take(gateway: GatewayProcess, text: bytes) -> None:
    """They are given in order, and acknowledged."""
    with Peer(gateway.port) as peer:
        peer.consumer("orders", credit=COUNT)
        deliveries = peer.receive(COUNT)
        for number, seen in enumerate(deliveries):
            assert seen.payload.endswith(frames.message(text + b"%d" % number)), seen
        peer.settle([seen.field(1) for seen in deliveries], ACCEPTED, settled=False)
        assert set(peer.outcomes(COUNT).values()) == {"accepted"}


def test_a_topic_that_became_shorter_gives_the_earlier_release_all_that_was_stored_since(
    tmp_path: Path, previous: Release, new: GatewayProcess
) -> None:
    """It would take the note of it for the end of events, and never give those that have their EIDs now. So a snapshot
    follows the note at once; where it is missing, as after a kill between the two, that release refuses the realm."""
    old, world = previous.gateway(tmp_path / "old", embedded_realm(tmp_path)), SqliteWorld(tmp_path / "realm")
    try:
        new.start()
        store(new, b"before ")
        take(new, b"before ")
        assert new.stop() == 0
        world.cut({("um.node.orders", 0): 2})
        log = world.open()
        earlier = snapshot(log)
        new.start()
        store(new, b"after ")
        until(lambda: snapshot(log) != earlier, "the snapshot")
        new.kill()

        key, later = snapshot(log)
        log.control.put("um.state", key, None)
        log.control.put("um.state", *earlier)
        old.launch()
        assert old.await_exit() == 2
        assert "the journal has records of version 2; this release knows 1" in old.log()
        log.control.put("um.state", key, later)
        world.close()
        old.start()
        take(old, b"after ")
        assert old.stop() == 0
    finally:
        new.kill()
        old.kill()


def snapshot(log: Log) -> tuple[bytes, bytes]:
    """Key and value of the queue's."""
    first, end = log.control.bounds("um.state", 0)
    records = log.control.read_range("um.state", 0, first, end - first)
    pairs = zip(records.keys, records.values, strict=True)
    return [(key, value) for key, value in pairs if key and value and b"queue" in key][-1]
