"""One gateway a realm for the clients that need none of their own: they keep apart by the names of their nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway_process import GatewayProcess, embedded_realm, kafka_realm, start_gateway

LARGEST = 8_000_000


@pytest.fixture(scope="session", params=["embedded", "kafka"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A real gateway process with every default but for the size of messages; nodes are made on attach. It must end in
    order: exit code 0."""
    directory = tmp_path_factory.mktemp(f"house-{request.param}")
    if request.param == "kafka":
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), "house")
        realm["client"] = {"message.max.bytes": str(LARGEST + 1000)}
    else:
        realm = embedded_realm(directory)
    gateway = start_gateway(directory, realm, limits={"message_size_bytes": LARGEST})
    yield gateway
    code = gateway.stop()
    assert code == 0, f"the gateway ended with {code}:\n{gateway.log()}"
