"""One gateway a realm for the clients that need none of their own: they keep apart by the names of their nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.processes.artemis import Artemis, start_artemis
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, start_gateway
from tests.kit.processes.rabbitmq import RabbitMQ

LARGEST = 16 << 20  # octets of a message, by default


@pytest.fixture(scope="session", params=["embedded", "kafka"])
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A real gateway process with every default; nodes are made on attach. It must end in order: exit code 0."""
    directory = tmp_path_factory.mktemp(f"gateway-{request.param}")
    if request.param == "kafka":
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), "gateway")
    else:
        realm = embedded_realm(directory)
    gateway = start_gateway(directory, realm)
    yield gateway
    code = gateway.stop()
    assert code == 0, f"the gateway ended with {code}:\n{gateway.log()}"


@pytest.fixture(scope="module")
def artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Artemis]:
    """The broker that applications leave."""
    broker = start_artemis(tmp_path_factory.mktemp("artemis") / "broker")
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    """Another one; a test that uses it is marked `NEEDS_RABBITMQ`."""
    node = RabbitMQ(tmp_path_factory.mktemp("rabbitmq") / "node")
    node.start()
    yield node
    node.stop()
