"""docs/how-to/upgrade-and-rollback.md under load, with the release before this one: out, what only the new release
knows is set, and back. What the clients noted agrees at the end, and reconciliation finds nothing."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from proton import Message
from proton.reactor import DurableSubscription
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

from tests.deploy.previous.release import Release
from tests.kit.patience import HANG_S
from tests.kit.processes.broker import free_port
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway, reconciled
from tests.kit.wire.failover import NODE, Traffic
from tests.kit.wire.logins import PASSWORD, write_users

WAITS = "this gateway listens when that one ends"
NEWS = "news"
Make = Callable[..., GatewayProcess]


@pytest.fixture(params=["embedded", "kafka"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """`make(port)`, `make(port, previous)`: a gateway of one realm, of this release or that one, not started."""
    made: list[GatewayProcess] = []
    realm = embedded_realm(tmp_path)
    if request.param == "kafka":
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"t{uuid.uuid4().hex[:8]}")
    write_users(tmp_path / "users.yaml", alice=[], bob=[])
    security = {"sasl": ["PLAIN"], "users": "../users.yaml", "plain_without_tls": True, "bare_amqp": True}

    def gateway(port: int, release: Release | None = None) -> GatewayProcess:
        begin = make_gateway if release is None else release.gateway
        made.append(begin(tmp_path / f"gateway-{len(made)}", realm, security=security))
        made[-1].port = port
        return made[-1]

    yield gateway
    for process in made:
        process.kill()


def stand_by(gateway: GatewayProcess) -> None:
    gateway.launch()
    gateway.await_log(WAITS)


def hand_over(serving: GatewayProcess, waiting: GatewayProcess, traffic: Traffic) -> None:
    """The one that serves ends in order, the standby serves, and the clients go on."""
    assert serving.stop() == 0, serving.log()
    waiting.await_ready()
    traffic.await_progress()


@pytest.mark.timeout(1200)  # seven starts, and a Spark
def test_an_upgrade_and_a_roll_back_under_load_lose_nothing(make: Make, previous: Release) -> None:
    first, second = free_port(), free_port()
    old, new = make(first, previous), make(second)
    old.start()
    traffic = Traffic([first, second])
    traffic.await_progress()
    stand_by(new)
    hand_over(old, new, traffic)
    new_too = make(first)
    stand_by(new_too)

    new.command("node", "create", NEWS, "--kind", "channel")
    new.command("node", "set", NODE, "attempts=7")
    new.command("node", "create", "letters", "--kind", "queue")
    new.command("acl", "grant", "user:bob", "subscribe,any-durable", "--node", "letters")
    assert durable_messages(new, "alice") == []
    with pytest.raises(LinkDetached, match="unauthorized"):
        durable_messages(new, "bob")
    publish_news(new, 3)

    assert new_too.stop() == 0, new_too.log()
    old = make(first, previous)
    stand_by(old)
    hand_over(new, old, traffic)
    shown = previous.run("node", "show", NODE, "--config", old.config_path)
    assert shown.returncode == 0 and re.search(r"\battempts\W+7\b", shown.stdout), shown
    refused = previous.run("node", "set", "letters", "attempts=7", "--config", old.config_path)
    assert refused.returncode != 0 and "acl grants any-durable to user:bob" in refused.stderr, refused
    assert durable_messages(old, "alice", take=1) == ["0"]
    assert durable_messages(old, "bob", take=1) == ["1"], "as the page says: an old release knows no owner"
    assert durable_messages(old, "alice", take=1) == ["2"]
    agree(traffic)
    assert old.stop() == 0, old.log()
    reconcile(new)


def agree(traffic: Traffic) -> None:
    """Every accepted message came, and none came again after the answer to its acknowledgement."""
    assert traffic.finish() == set()
    assert traffic.given_after_their_end() == set()
    assert traffic.received.keys() <= traffic.sent.keys()


def subscribe(gateway: GatewayProcess, user: str) -> tuple[BlockingConnection, BlockingReceiver]:
    """All users call themselves and their links the same."""
    connection = BlockingConnection(
        f"amqp://{gateway.address}", timeout=HANG_S, user=user, password=PASSWORD, allowed_mechs="PLAIN",
        allow_insecure_mechs=True, sasl_enabled=True, reconnect=False, container_id="desk",
    )  # fmt: skip
    try:
        return connection, connection.create_receiver(NEWS, credit=1, name="dsub", options=DurableSubscription())
    except BaseException:
        connection.close()
        raise


def durable_messages(gateway: GatewayProcess, user: str, take: int = 0) -> list[str]:
    """The next ones of the durable, acknowledged."""
    connection, receiver = subscribe(gateway, user)
    bodies = []
    for _ in range(take):
        bodies.append(str(receiver.receive(HANG_S).body))
        receiver.accept()
    receiver.link.detach()
    connection.close()
    return bodies


def publish_news(gateway: GatewayProcess, count: int) -> None:
    connection = BlockingConnection(f"amqp://{gateway.address}", timeout=HANG_S, sasl_enabled=False)
    sender = connection.create_sender(NEWS)
    for number in range(count):
        sender.send(Message(body=str(number), durable=True))
    connection.close()


def reconcile(gateway: GatewayProcess) -> None:
    done = reconciled(gateway.config_path, gateway.config_path.with_name("report"))
    assert (done.returncode, "Verdict: CLEAN" in done.stdout) == (0, True), done.stdout + done.stderr
