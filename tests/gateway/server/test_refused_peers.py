"""Who was turned away, and why, stands in the log and in the metrics: each user, not the first one only."""

from __future__ import annotations

from collections.abc import Iterator

import proton
import pytest
from proton.utils import BlockingConnection, LinkDetached, SendException

from tests.gateway.logins import PASSWORD, connect, write_users
from tests.kit.processes.admin_pages import Samples, Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

USERS = ("ann", "ben", "cay")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("refused")
    write_users(directory / "users.yaml", **{name: [] for name in USERS})
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    admin = {"listen": "http://127.0.0.1:0"}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, admin=admin, nodes={})
    try:
        gateway.command("node", "create", "orders", "--kind", "queue")
        gateway.command("acl", "grant", "user:cay", "publish", "--node", "orders")
        gateway.command("acl", "grant", "user:nobody", "publish", "--node", "orders")
        yield gateway
    finally:
        code = gateway.stop()
    assert code == 0, gateway.log()


def errors(found: Samples, node: str, rule: str) -> list[float]:
    """By the order of the labels' names: class, code, condition, node, rule."""
    return [
        number for (name, labels), number in found.items()
        if name == "realmgate_errors_total" and labels[3:] == (node, rule)
    ]  # fmt: skip


def said(gateway: GatewayProcess, *words: str) -> list[str]:
    return [line for line in gateway.log_path.read_text().splitlines() if all(word in line for word in words)]


def test_every_user_that_is_denied_is_named(gateway: GatewayProcess) -> None:
    for name in ("ann", "ben"):
        connection = connect(gateway, PASSWORD, "PLAIN", user=name)
        for attempt in range(3):
            with pytest.raises(LinkDetached, match="unauthorized-access"):
                connection.create_sender("orders", name=f"{name}-{attempt}")
        connection.close()
        [line] = said(gateway, "access-denied", f"user '{name}'")
        assert all(word in line for word in ("'orders'", "container '", "from 127.0.0.1", "not-granted")), line
    found = Watch.of(gateway).metrics()
    assert errors(found, "orders", "attached.access-denied-refused") == [6]
    assert found["realmgate_peer_faults_total", ("access-denied",)] == 6


def test_an_attach_to_no_node_is_named(gateway: GatewayProcess) -> None:
    with Peer(gateway.port, container="lost-application") as peer:
        for handle in range(3):
            peer.send(frames.attach_sender("no-such-node", handle, f"link-{handle}"))
            assert peer.refused() == "amqp:not-found"
    [line] = said(gateway, "refused attach", "'no-such-node'")
    assert all(word in line for word in ("'lost-application'", "amqp:not-found", "from 127.0.0.1", "attach.")), line
    assert sum(errors(Watch.of(gateway).metrics(), "", "attach.refuse-an-unknown-node")) == 3


def test_every_failed_login_is_counted_and_each_user_named(gateway: GatewayProcess) -> None:
    for name in ("ann", "ben", "nobody-we-know"):
        with pytest.raises(proton.ConnectionException):
            connect(gateway, "wrong", "PLAIN", user=name)
        assert len(said(gateway, "failed-login", f"user '{name}' from 127.0.0.1")) == 1
    assert Watch.of(gateway).metrics()["realmgate_peer_faults_total", ("failed-login",)] == 3


def test_a_publisher_that_loses_its_right_is_named(gateway: GatewayProcess) -> None:
    connection: BlockingConnection = connect(gateway, PASSWORD, "PLAIN", user="cay")
    sender = connection.create_sender("orders")
    assert sender.send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED
    gateway.command("acl", "revoke", "user:cay", "publish", "--node", "orders")
    with pytest.raises((LinkDetached, SendException)):
        while True:  # until it has been noticed
            sender.send(proton.Message(body="two"))
    gateway.await_log("access denied: ")
    [line] = said(gateway, "access denied: ")
    assert "node 'orders'" in line
    found = Watch.of(gateway).metrics()
    assert errors(found, "orders", "published.access-denied-rejected") == [1]
    connection.close()
