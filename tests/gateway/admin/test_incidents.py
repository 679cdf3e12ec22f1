"""Incidents as operators have them: each is really made, and one command names node, who it was, the rule or the cause,
and what to do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import proton
import pytest

from native_backend.log.open import open_embedded
from native_backend.nodes.metadata_writer import realm_metadata
from tests.gateway.logins import PASSWORD, connect, write_users
from tests.kit.processes.admin_pages import DEADLINE_S, Watch
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import error
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("incidents")
    write_users(directory / "users.yaml", ann=[], ben=[])
    gateway = start_gateway(
        directory,
        embedded_realm(directory),
        security={"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True},
        admin={"listen": "http://127.0.0.1:0"},
        nodes={},
        limits={"message_size_bytes": 20_000},
    )
    yield gateway
    assert gateway.stop() == 0, gateway.log()
    assert "Traceback" not in gateway.log(), gateway.log()


def shows(gateway: GatewayProcess, *command: str, words: tuple[str, ...]) -> None:
    """The command prints all these words, as soon as the gateway has the fact."""
    place = (
        ["--gateway", Watch.of(gateway).url] if command[0] in ("errors", "denials", "links") else
        ["--config", str(gateway.config_path)]
    )  # fmt: skip
    end = time.monotonic() + DEADLINE_S
    while True:
        done = subprocess.run(
            [REALMGATE, *command, *place], capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        missing = [each for each in words if each not in done.stdout + done.stderr]
        if not missing:
            return
        assert time.monotonic() < end, (missing, done.stdout, done.stderr)


def test_a_misspelt_queue(gateway: GatewayProcess) -> None:
    with Peer(gateway.port, container="shop") as peer:
        peer.send(frames.attach_sender("oders", 7, "to-oders"))
        assert peer.refused() == "amqp:not-found"
    words = ("oders", "shop", "attach.refuse-an-unknown-node", "realmgate node create oders")
    shows(gateway, "errors", "--since", "10m", "--node", "oders", words=words)


def test_a_message_that_is_too_large(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "letters")
    with Peer(gateway.port, container="large") as peer:
        peer.publisher("letters")
        half = frames.message(bytes(15_000))
        peer.send(frames.transfer(0, half, 0, more=True), frames.transfer(0, half, 0))
        assert peer.detached() == "amqp:link:message-size-exceeded"
    words = ("letters", "large", "fault.message-too-large", "raise limits.message_size_bytes")
    shows(gateway, "errors", "--container", "large", words=words)


def test_the_second_denial_of_a_process(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "guarded")
    gateway.command("acl", "grant", "user:ben", "publish", "--node", "guarded")
    for _ in range(2):
        connection = connect(gateway, PASSWORD, "PLAIN", user="ann")
        with pytest.raises(proton.utils.LinkDetached, match="unauthorized-access"):
            connection.create_sender("guarded")
        connection.close()
    rule = "attached.access-denied-refused"
    words = ("ann", "guarded", rule, "realmgate acl grant user:ann publish --node guarded")
    shows(gateway, "denials", "--since", "10m", words=words)


def test_a_wrong_password(gateway: GatewayProcess) -> None:
    with pytest.raises(proton.ConnectionException):
        connect(gateway, f"{PASSWORD}?", "PLAIN", user="ben")
    words = ("ben", "failed-login", "127.0.0.1", "correct the password")
    shows(gateway, "errors", "--user", "ben", words=words)


def test_a_full_node(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "small", "--capacity-events", "2", "--honour-capacity", "true")
    with Peer(gateway.port, container="filler") as peer:
        peer.publisher("small")
        assert len(peer.outcomes(len(peer.publish(*[MESSAGE] * 5)))) == 5
    remedy = "realmgate node set small capacity-events=N"
    words = ("small", "filler", "published.capacity-reached-rejected", "amqp:resource-limit-exceeded", remedy)
    shows(gateway, "errors", "--node", "small", words=words)


def test_a_consumer_that_holds_messages_and_one_that_asks_for_none(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "held")
    with Peer(gateway.port, container="holder") as holder, Peer(gateway.port, container="slow") as slow:
        holder.stored("held", *[MESSAGE] * 20)
        holder.consumer("held", credit=5)
        assert len(holder.receive(5)) == 5
        slow.consumer("held", credit=1)
        assert len(slow.receive(1)) == 1
        slow.settle([0], frames.state("accepted"))
        words = ("held", "holder", "slow", "UNSETTLED", "OLDEST", "NO CREDIT", "accepted 1")
        shows(gateway, "links", "--node", "held", words=words)


def test_a_consumer_that_rejects_with_a_reason(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "dead")
    gateway.command("node", "create", "jobs", "--dead-letter", "dead")
    with Peer(gateway.port, container="rejecter") as peer:
        peer.stored("jobs", MESSAGE)
        peer.consumer("jobs", credit=1)
        [seen] = peer.receive(1)
        reason = error("app:bad", "cannot parse order 4711")
        peer.settle([seen.field(1)], frames.state("rejected", reason))
    words = ("rejected", "jobs", "app:bad", "cannot parse order 4711")
    shows(gateway, "queue", "peek", "dead", words=words)


def test_a_topic_that_was_deleted(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "gone")
    log = open_embedded(Path(gateway.settings["realm"]["path"]))
    log.control.delete_topics([realm_metadata(log, "um").nodes["gone"].topic])
    log.close()
    shows(gateway, "node", "list", words=("gone", "topic missing", "realmgate node delete"))
