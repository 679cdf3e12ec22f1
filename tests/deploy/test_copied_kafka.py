"""docs/how-to/back-up-and-restore.md, a copy of a whole Kafka: gateways and broker end in order, `log.dirs` is copied,
a broker starts from the copy, and a gateway on it goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.processes.broker import Broker, start_broker
from tests.kit.processes.gateway import GatewayProcess, kafka_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

ACCEPTED = frames.state("accepted")
DURABLE = frames.source("news", durable=2, capability="topic")
STORED = [b"%d" % number for number in range(20)]
Start = Callable[[Broker], GatewayProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """A gateway on the realm of that broker; none outlives the test."""
    made: list[GatewayProcess] = []

    def gateway(broker: Broker) -> GatewayProcess:
        directory = broker.directory.with_name(f"gateway-{broker.directory.name}")
        made.append(start_gateway(directory, kafka_realm(broker.bootstrap, "um")))
        return made[-1]

    yield gateway
    for process in made:
        process.kill()


@pytest.fixture
def brokers() -> Iterator[list[Broker]]:
    up: list[Broker] = []
    yield up
    for broker in up:
        broker.stop()


def copy_of(broker: Broker, directory: Path) -> Broker:
    """What is in its `log.dirs`, and the address of its controller, which stands in them. A port of its own."""
    directory.mkdir()
    shutil.copytree(broker.directory / "data", directory / "data")
    shutil.copy(broker.directory / "controller-port", directory)
    return start_broker(directory)


@pytest.mark.timeout(1200)  # two brokers, two gateways
def test_a_copy_of_a_whole_kafka_is_the_realm(tmp_path: Path, brokers: list[Broker], start: Start) -> None:
    brokers.append(start_broker(tmp_path / "first"))
    gateway = start(brokers[0])
    with Peer(gateway.port, container="reader") as peer:
        peer.consumer(DURABLE, name="durably", handle=2)
        for node, kind in (("orders", "queue"), ("news", "channel")):
            peer.stored(node, *(frames.message(body) for body in STORED), kind=kind)
        peer.consumer("orders", credit=10)
        acknowledge(peer, [seen.field(1) for seen in peer.receive(10)][::2])
    assert gateway.stop() == 0, gateway.log()
    brokers[0].stop()
    brokers.append(copy_of(brokers[0], tmp_path / "second"))
    assert brokers[1].bootstrap != brokers[0].bootstrap

    copy = start(brokers[1])
    with Peer(copy.port, container="reader") as peer:
        peer.stored("orders", frames.message(b"later"))
        peer.consumer("orders", credit=20)
        left = [*STORED[1:10:2], *STORED[10:], b"later"]
        deliveries = peer.receive(len(left))
        for seen, body in zip(deliveries, left, strict=True):
            assert seen.payload.endswith(frames.message(body)), seen
        acknowledge(peer, [seen.field(1) for seen in deliveries])
        peer.consumer(DURABLE, name="durably", handle=2, credit=20)
        news = peer.receive(20, handle=2)
        for seen, body in zip(news, STORED, strict=True):
            assert seen.payload.endswith(frames.message(body)), seen
        acknowledge(peer, [seen.field(1) for seen in news])
    assert copy.stop() == 0, copy.log()
    assert "Traceback" not in copy.log() and "ERROR" not in copy.log(), copy.log()


def acknowledge(peer: Peer, deliveries: list[int]) -> None:
    peer.settle(deliveries, ACCEPTED, settled=False)
    assert set(peer.outcomes(len(deliveries)).values()) == {"accepted"}
