"""Foreign clients by TLS and WebSocket, on both realms: rhea by each, Qpid JMS by TLS with a certificate instead of a
password."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import jms, rhea
from tests.kit.patience import HANG_S
from tests.kit.processes.certificates import Authority, openssl
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway

COUNT = 40


class World:
    """A gateway with every kind of listener."""

    def __init__(self, directory: Path, realm: dict[str, Any]) -> None:
        self.authority = Authority(directory / "ours")
        server = self.authority.sign("server", "/CN=localhost", "IP:127.0.0.1")
        feed = self.authority.sign("feed", "/CN=feed")
        self.store = directory / "feed.p12"
        out = ["-out", str(self.store), "-passout", "pass:secret"]
        openssl("pkcs12", "-export", "-in", str(feed.certificate), "-inkey", str(feed.key), *out)
        self.trusted = directory / "trust.p12"
        options = ["-file", str(self.authority.certificate), "-keystore", str(self.trusted), "-storetype", "PKCS12"]
        keytool = ["keytool", "-importcert", "-noprompt", "-alias", "ca", *options, "-storepass", "secret"]
        subprocess.run(keytool, check=True, capture_output=True, timeout=HANG_S)
        (directory / "users.yaml").write_text('users: {feed: {certificates: ["subject:CN=feed"]}}\n')
        files = {"certificate": server.certificate, "key": server.key, "client_ca": self.authority.certificate}
        self.gateway: GatewayProcess = make_gateway(
            directory,
            realm,
            tls={name: str(path) for name, path in files.items()},
            security={"sasl": ["EXTERNAL", "ANONYMOUS"], "users": "users.yaml"},
        )
        self.gateway.more = ["amqps", "ws", "wss"]
        self.gateway.start()


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("transports")
    if request.param == "kafka":
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"t{uuid.uuid4().hex[:8]}")
    else:
        realm = embedded_realm(directory)
    world = World(directory, realm)
    yield world
    world.gateway.end_well()


def test_rhea(world: World) -> None:
    """Each way once in each direction, around in a ring."""
    schemes = ("ws", "wss", "amqps")
    for sending, receiving in zip(schemes, schemes[1:] + schemes[:1], strict=True):
        for mode, scheme in (("send", sending), ("receive", receiving)):
            port = world.gateway.ports[scheme]
            trusted = world.authority.certificate
            report = rhea(mode, port, f"by-{sending}", COUNT, f"{scheme}://127.0.0.1", trusted)
            assert report["accepted" if mode == "send" else "distinct"] == COUNT, report


def test_qpid_jms_by_certificate(world: World) -> None:
    world.gateway.command("node", "create", "of-feed", "--kind", "queue")
    world.gateway.command("acl", "grant", "user:feed", "publish", "--node", "of-feed")
    stores = (
        f"transport.trustStoreLocation={world.trusted}&transport.trustStorePassword=secret"
        f"&transport.keyStoreLocation={world.store}&transport.keyStorePassword=secret"
    )
    url = f"amqps://127.0.0.1:{world.gateway.ports['amqps']}?{stores}&amqp.saslMechanisms=EXTERNAL"
    assert jms("send", url, "of-feed", "0", "10") == "accepted 10"
