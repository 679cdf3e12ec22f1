"""The gateway on a Kafka that demands proof: SASL_SSL with SCRAM and PLAIN, mTLS; with the rights that the how-to lists
and no others; and nowhere a password."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from native_backend.publish.event_sizes import UNKNOWN_BYTES
from reconciliation.model.settings import load_realm
from reconciliation.read import offsets
from tests.deploy.secured import Right, Secured, certificate, start_secured
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, reconciled, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

pytestmark = pytest.mark.timeout(600)  # a node with keys takes its time on a busy machine
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "security.md"
_RESOURCES = {"topic": "TOPIC", "group": "GROUP", "transactional-id": "TRANSACTIONAL_ID"}


def rights_of_the_how_to() -> list[Right]:
    """From its kafka-acls lines."""
    rights = []
    text = HOW_TO.read_text().replace("\\\n", "")
    for line in re.findall(r"^kafka-acls .*--resource-pattern-type prefixed.*$", text, re.MULTILINE):
        resource = next(ours for theirs, ours in _RESOURCES.items() if f"--{theirs} um." in line)
        words = re.findall(r"--operation (\w+)", line)
        rights += [(resource, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).upper()) for word in words]
    return rights


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    node = start_secured(tmp_path_factory.mktemp("secured"))
    yield node
    node.stop()


def entry(kafka: Secured, way: str) -> tuple[str, dict[str, Any]]:
    """Where to, and `realm.client`."""
    if way == "mTLS":
        return kafka.mtls, certificate(kafka.tls, "gateway")
    return kafka.sasl, {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": way,
        "sasl.username": "gateway",
        "sasl.password": {"file": str(kafka.tls / "gateway.password")},
        "ssl.ca.location": str(kafka.tls / "ca.pem"),
    }


def realm(kafka: Secured, way: str, prefix: str, **client: str) -> dict[str, Any]:
    bootstrap, settings = entry(kafka, way)
    return {"kind": "kafka", "bootstrap": bootstrap, "prefix": prefix, "client": {**settings, **client}}


def flow(gateway: GatewayProcess) -> None:
    """Nodes made both ways, published to, consumed from, acknowledged one by one; a durable."""
    gateway.command("node", "create", "orders")
    with Peer(gateway.port) as peer:
        peer.consumer(frames.source("prices", durable=2, capability="topic"), handle=3, name="durably", credit=1)
        peer.stored("prices", frames.message(b"price"), kind="channel")
        [price] = peer.receive(1, handle=3)
        assert price.payload == frames.message(b"price")
        peer.stored("orders", *(frames.message(b"%d" % number) for number in range(3)))
        peer.consumer("orders", credit=2)
        assert [seen.payload for seen in peer.receive(2)] == [frames.message(b"0"), frames.message(b"1")]
        peer.settle([1, 2], frames.state("accepted"), settled=False)
        assert peer.outcomes(2) == {1: "accepted", 2: "accepted"}


def test_the_main_path_with_the_rights_of_the_how_to(kafka: Secured, tmp_path: Path) -> None:
    prefix = "um-all"
    kafka.grant(rights_of_the_how_to(), f"{prefix}.")
    gateway = start_gateway(tmp_path, realm(kafka, "SCRAM-SHA-512", prefix, debug="security,conf"))
    flow(gateway)
    gateway.kill()
    gateway.start()
    with Peer(gateway.port) as peer:
        peer.consumer("orders", credit=1)  # for the one; what is published below is not for it
        assert peer.receive(1)[0].payload == frames.message(b"2")
        peer.publisher("orders")
        kafka.deny(("TOPIC", "WRITE"), f"{prefix}.node.orders")
        outcome = "accepted"
        while outcome == "accepted":  # Kafka tells its parts of a new right in its own time
            number = peer.publish(frames.message(b"more"))[0]
            outcome = str(peer.outcomes(1)[number])
        assert outcome == "rejected:amqp:unauthorized-access"  # P-R2a
        assert peer.detached(0) == "amqp:unauthorized-access"
    gateway.command("node", "set", "prices", "partitions=2")
    gateway.command("node", "delete", "prices", "--yes")
    no_secret_told(kafka, gateway)


def test_without_the_right_to_read_settings_a_message_may_be_as_large_as_every_topic_takes(
    kafka: Secured, tmp_path: Path
) -> None:
    prefix = "um-unread"
    rights = [right for right in rights_of_the_how_to() if right != ("TOPIC", "DESCRIBE_CONFIGS")]
    assert len(rights) < len(rights_of_the_how_to())
    kafka.grant(rights, f"{prefix}.")
    gateway = start_gateway(tmp_path, realm(kafka, "mTLS", prefix))
    flow(gateway)
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender("orders", 5))
        assert peer.expect("attach").field(10) == UNKNOWN_BYTES
    no_secret_told(kafka, gateway, debug=False)


@pytest.mark.parametrize("way", ["PLAIN", "mTLS"])
def test_other_ways_in(kafka: Secured, tmp_path: Path, way: str) -> None:
    prefix = f"um-{way.lower()}"
    kafka.grant(rights_of_the_how_to(), f"{prefix}.")
    gateway = start_gateway(tmp_path, realm(kafka, way, prefix, debug="security,conf"))
    with Peer(gateway.port) as peer:
        peer.stored("orders", frames.message(b"one"))
        peer.consumer("orders", credit=1)
        assert peer.receive(1)[0].payload == frames.message(b"one")
        peer.settle([0], frames.state("accepted"), settled=False)
        assert peer.outcomes(1) == {0: "accepted"}
    no_secret_told(kafka, gateway)


def no_secret_told(kafka: Secured, gateway: GatewayProcess, debug: bool = True) -> None:
    assert gateway.stop() == 0, gateway.log()
    log = gateway.log_path.read_text()
    assert ("security.protocol" in log) == debug, "librdkafka told its configuration"
    assert kafka.password not in log and "PRIVATE KEY" not in log
    assert "Traceback" not in log


def test_kafkas_own_lists_of_the_amqp_user(kafka: Secured, tmp_path: Path) -> None:
    """Write to publish, Read to consume; a change closes the link; it needs Describe on the cluster to start."""
    prefix = "um-lists"
    kafka.grant(rights_of_the_how_to(), f"{prefix}.")
    topic = f"{prefix}.node.orders"
    kafka.allow(("TOPIC", "WRITE"), topic, "ANONYMOUS")
    lists = {"security": {"kafka_acls": True}}
    done = command(tmp_path, realm(kafka, "mTLS", prefix), "serve", **lists)
    assert (done.returncode, "ClusterAuthorizationFailed" in done.stderr) == (2, True), done.stderr
    kafka.allow(("BROKER", "DESCRIBE"), "kafka-cluster")
    gateway = start_gateway(tmp_path, realm(kafka, "mTLS", prefix), **lists)
    with Peer(gateway.port) as peer:
        peer.publisher("orders")
        peer.publish(frames.message(b"one"))
        assert peer.outcomes(1) == {0: "accepted"}
        peer.send(frames.attach_receiver("orders", 5))
        assert peer.refused() == "amqp:unauthorized-access"
        kafka.allow(("TOPIC", "READ"), topic, "*")
        with Peer(gateway.port) as other:
            attached_until_allowed(other, "orders")
            other.credit(1, handle=9)
            assert other.receive(1, handle=9)[0].payload == frames.message(b"one")
            kafka.deny(("TOPIC", "READ"), topic, "ANONYMOUS")
            assert other.expect("disposition", 60).state == "rejected:amqp:unauthorized-access"
            assert other.detached(9) == "amqp:unauthorized-access"  # S-R1a
        peer.publish(frames.message(b"two"))
        assert peer.outcomes(1) == {1: "accepted"}, "Write is not Read"
    no_secret_told(kafka, gateway, debug=False)


def attached_until_allowed(peer: Peer, node: str) -> None:
    deadline = time.monotonic() + HANG_S
    for number in itertools.count():
        peer.send(frames.attach_receiver(node, 9, f"attempt-{number}"))
        attached = peer.expect("attach")
        if attached.field(5) is not None:
            peer.delivered[9], peer.gateway_handles[9] = 0, attached.field(1)
            return
        peer.expect("detach")
        peer.send(frames.detach(9))
        assert time.monotonic() < deadline, "the new right was not seen"
        time.sleep(0.2)


def command(directory: Path, settings: dict[str, Any], *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    config = directory / "gateway.yaml"
    config.write_text(yaml.safe_dump({"listen": ["amqp://127.0.0.1:0"], "realm": settings, **more}))
    return subprocess.run(
        [REALMGATE, *words, "--config", config], capture_output=True, text=True, timeout=100, check=False
    )


def test_a_wrong_password_is_described_soon_and_once(kafka: Secured, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("not the password")
    settings = realm(kafka, "SCRAM-SHA-512", "um-wrong")
    settings["client"]["sasl.password"] = {"file": "wrong"}
    done = command(tmp_path, settings, "serve")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"realmgate: the realm on Kafka at {kafka.sasl}: refused: ")
    assert "invalid credentials" in last and "realm.client" in last
    assert done.stderr.count("\n") < 10, "it is not told at each attempt"
    assert "not the password" not in done.stderr


def test_missing_rights_are_described(kafka: Secured, tmp_path: Path) -> None:
    done = command(tmp_path, realm(kafka, "mTLS", "um-nothing"), "serve")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"realmgate: the realm on Kafka at {kafka.mtls}: refused: ")


def test_an_unknown_authority(kafka: Secured, tmp_path: Path) -> None:
    settings = realm(kafka, "PLAIN", "um-ca")
    settings["client"]["ssl.ca.location"] = str(kafka.tls / "gateway.pem")
    done = command(tmp_path, settings, "node", "list")
    assert done.returncode == 2
    assert "certificate" in done.stderr.splitlines()[-1]


def test_what_the_reconciliation_may_not_read_makes_it_incomplete(kafka: Secured, tmp_path: Path) -> None:
    prefix = "um-unseen"
    kafka.grant(rights_of_the_how_to(), f"{prefix}.")
    gateway = start_gateway(tmp_path, realm(kafka, "SCRAM-SHA-512", prefix))
    with Peer(gateway.port) as peer:
        peer.stored("orders", frames.message(b"seen"))
        peer.stored("secret", frames.message(b"1"), frames.message(b"2"))
    assert gateway.stop() == 0, gateway.log()
    kafka.deny(("TOPIC", "READ"), f"{prefix}.node.secret")
    settings = load_realm(gateway.config_path)
    until_s = time.monotonic() + HANG_S
    while not offsets.extent_of(settings.bootstrap, settings.prefix, settings.client).unread:
        assert time.monotonic() < until_s, "Kafka tells its parts of a new right in its own time"
        time.sleep(0.1)
    out = tmp_path / "report"
    done = reconciled(gateway.config_path, out)
    assert done.returncode == 1, done.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["verdict"], manifest["complete"]) == ("incomplete", False)
    why = "we may not read this topic: grant Read on it; 2 publishes could be compared with nothing"
    assert f"{prefix}.node.secret: {why}" in done.stdout
    books = {row["node"]: (row["accepted"], row["stored"], row["unread"]) for row in manifest["balance"]["nodes"]}
    assert books == {"orders": (1, 1, 0), "secret": (2, 0, 2)}
