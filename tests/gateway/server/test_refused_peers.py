"""Who was turned away, and why, stands in the log and in the metrics: each user, not the first one only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import proton
import pytest
from proton.utils import BlockingConnection, LinkDetached, SendException

from tests.kit.patience import until
from tests.kit.processes.admin_pages import Samples, Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer

USERS = ("ann", "ben", "cay", "dan")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("refused")
    write_users(directory / "users.yaml", **{name: [] for name in USERS})
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    admin = {"listen": "http://127.0.0.1:0"}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, admin=admin, nodes={})
    try:
        gateway.command("node", "create", "orders", "--kind", "queue")
        for name in ("cay", "dan"):
            gateway.command("acl", "grant", f"user:{name}", "publish", "--node", "orders")
        gateway.command("acl", "grant", "user:unknown", "publish", "--node", "orders")
        yield gateway
    finally:
        code = gateway.stop()
    assert code == 0, gateway.log()


def errors(samples: Samples, node: str, rule: str) -> list[float]:
    """By the order of the labels' names: class, code, condition, node, rule."""
    return [
        number for (name, labels), number in samples.items()
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
    samples = Watch.of(gateway).metrics()
    assert errors(samples, "orders", "attached.access-denied-refused") == [6]
    assert samples["realmgate_peer_faults_total", ("access-denied",)] == 6


def test_passwords_of_few_rounds_are_named(gateway: GatewayProcess) -> None:
    words = "4 users have passwords with fewer than 100,000 rounds"
    assert len(said(gateway, words, "'ann', 'ben', 'cay', 'dan'")) == 1
    assert [words in warning for warning in Watch.of(gateway).health()["warnings"]] == [True]


def test_an_attach_to_no_node_is_named(gateway: GatewayProcess) -> None:
    with Peer(gateway.port, container="lost-application") as peer:
        for handle in range(3):
            peer.send(frames.attach_sender("no-such-node", handle, f"link-{handle}"))
            assert peer.refused() == "amqp:not-found"
    [line] = said(gateway, "refused attach", "'no-such-node'")
    assert all(word in line for word in ("'lost-application'", "amqp:not-found", "from 127.0.0.1", "attach.")), line
    assert sum(errors(Watch.of(gateway).metrics(), "", "attach.refuse-an-unknown-node")) == 3


def test_every_failed_login_is_counted_and_each_user_named(gateway: GatewayProcess) -> None:
    for name in ("ann", "ben", "unknown"):
        with pytest.raises(proton.ConnectionException):
            connect(gateway, "wrong", "PLAIN", user=name)
        assert len(said(gateway, "failed-login", f"user '{name}' from 127.0.0.1")) == 1
    assert Watch.of(gateway).metrics()["realmgate_peer_faults_total", ("failed-login",)] == 3


def test_each_program_that_is_refused_is_named(gateway: GatewayProcess) -> None:
    """Without a login all of them are one user. A fault, too."""
    for container in ("one", "other"):
        with Peer(gateway.port, container=container) as peer:
            peer.send(frames.attach_sender("not-here-either"))
            assert peer.refused() == "amqp:not-found"
            peer.send(frames.attach_sender("not-here", handle=0))
            assert peer.expect("close").condition == "amqp:session:handle-in-use"
    for container in ("one", "other"):
        assert len(said(gateway, "refused attach", "'not-here-either'", f"'{container}'")) == 1
        assert len(said(gateway, "peer fault handle-in-use", f"'{container}'")) == 1
    listed = json.loads(gateway.command("decisions", "list", "--what", "attach", "--json"))
    assert sorted(entry["container"] for entry in listed if entry.get("node") == "not-here-either") == ["one", "other"]


def test_publishers_that_lose_their_right_are_named(gateway: GatewayProcess) -> None:
    """Both users, of one container."""
    connections: list[BlockingConnection] = []
    for name in ("cay", "dan"):
        connections.append(connect(gateway, PASSWORD, "PLAIN", user=name))
        sender = connections[-1].create_sender("orders")
        assert sender.send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED
        gateway.command("acl", "revoke", f"user:{name}", "publish", "--node", "orders")
        with pytest.raises((LinkDetached, SendException)):
            while True:  # until it has been noticed
                sender.send(proton.Message(body="two"))
        until(partial(said, gateway, "access denied: ", f"user '{name}'"), "its line")
        [line] = said(gateway, "access denied: ", f"user '{name}'")
        assert "node 'orders'" in line and "from 127.0.0.1" in line
        assert "more of this kind" not in line, "at once, and not in the sum of the next minute"
    samples = Watch.of(gateway).metrics()
    assert errors(samples, "orders", "published.access-denied-rejected") == [2]
    for connection in connections:
        connection.close()
