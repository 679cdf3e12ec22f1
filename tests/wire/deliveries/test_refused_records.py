"""What a publisher hears of a message that its broker does not take: one answer for that message, and the link goes
on. The broker refuses it for real: a compacted topic takes no record without a key."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from mappings.compiler.table_set import SHIPPED
from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess, kafka_realm, start_gateway
from tests.kit.rewriting import rewrite
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.transacting import Transacting
from transformers.codec import Symbol

KEYED = frames.annotated({Symbol("x-opt-kafka-key"): "k"})
KEYLESS = frames.message(b"keyless")
INVALID = ("amqp:precondition-failed", "invalid-rejected", None)
FULL = ("amqp:resource-limit-exceeded", "capacity-reached-rejected", 5000)


@pytest.fixture(scope="module")
def gateway(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """With tables of its own, which say what the shipped ones say, and the native errors beside them."""
    directory = tmp_path_factory.mktemp("refused")
    shutil.copytree(SHIPPED / "tables", directory / "ours" / "tables")
    shutil.copy(SHIPPED / "errors.yaml", directory / "ours")
    realm = kafka_realm(kafka_bootstrap, f"t{uuid.uuid4().hex[:8]}")
    gateway = start_gateway(directory, realm, mappings={"dir": "ours"}, transformer="complete")
    yield gateway
    gateway.end_well()


@pytest.fixture(scope="module")
def node(gateway: GatewayProcess, kafka_bootstrap: str) -> str:
    """On a compacted topic of two partitions. Each test takes what it has stored."""
    name = f"n{uuid.uuid4().hex[:8]}"
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.create_topics([NewTopic(name, 2, 1, topic_configs={"cleanup.policy": "compact"})])
    admin.close()
    gateway.command("node", "create", name, "--topic", name)
    return name


def reload(gateway: GatewayProcess, errors: str) -> None:
    words = "errors.yaml are active"
    before = gateway.log().count(words)
    rewrite(gateway.config_path.parent / "ours" / "errors.yaml", errors)
    os.kill(gateway.pid, signal.SIGHUP)
    until(lambda: gateway.log().count(words) > before, "the other native errors")


@pytest.fixture
def is_capacity(gateway: GatewayProcess) -> Iterator[None]:
    """The operator of this Kafka says by INVALID_RECORD that a quota is used up."""
    shipped = (SHIPPED / "errors.yaml").read_text(encoding="utf-8")
    moved = shipped.replace("[INVALID_RECORD, POLICY_VIOLATION]", "[POLICY_VIOLATION]", 1)
    full = "- id: full\n    kafka: []"
    assert moved != shipped and moved.count(full) == 1
    reload(gateway, moved.replace(full, "- id: full\n    kafka: [INVALID_RECORD]"))
    yield
    reload(gateway, shipped)


def refusal(seen: Seen) -> tuple[str, str, int | None]:
    """Condition, rule and time to wait; the native code is the broker's."""
    assert isinstance(seen.state, str) and seen.state.startswith("rejected:") and seen.field(3) is True, seen
    condition, _, info = seen.field(4).value[0].value
    details: dict[str, Any] = {str(key): value for key, value in info.pairs}
    assert details["native-code"] == "INVALID_RECORD", details
    return str(condition), details["rule"].removeprefix("published."), details.get("retry-after-ms")


def accepted(peer: Transacting, count: int) -> None:
    for _ in range(count):
        assert set(peer.outcomes(len(peer.publish(KEYED))).values()) == {"accepted"}


def refused(peer: Transacting) -> tuple[str, str, int | None]:
    """By itself; the link goes on."""
    accepted(peer, 2)
    peer.publish(KEYLESS)
    reason = refusal(peer.expect("disposition"))
    accepted(peer, 2)
    return reason


def took(gateway: GatewayProcess, node: str, count: int) -> None:
    """So much is there, and no more."""
    with Transacting(gateway.port) as peer:
        peer.consumer(node, credit=count)
        peer.settle([seen.field(1) for seen in peer.receive(count)], frames.state("accepted"), settled=False)
        assert set(peer.outcomes(count).values()) == {"accepted"}
        peer.credit(5, drain=True)
        assert peer.drained()


def test_a_message_that_the_broker_refuses_is_answered_alone_and_the_link_goes_on(
    gateway: GatewayProcess, node: str
) -> None:
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        assert refused(peer) == INVALID
    took(gateway, node, 4)


def test_a_code_that_the_tables_call_capacity_is_answered_so_and_the_link_goes_on(
    gateway: GatewayProcess, node: str, is_capacity: None
) -> None:
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        assert refused(peer) == FULL
    took(gateway, node, 4)


def test_what_lies_beside_it_in_a_request_is_stored_or_comes_back(gateway: GatewayProcess, node: str) -> None:
    """The broker refuses the whole request; what can keep its place is sent again inside. The rest comes back: where
    the driver's library made two requests of them, and the second is stored, the refused one too (ADR 0084)."""
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        sent = [KEYED] * 10 + [KEYLESS] + [KEYED] * 9
        outcomes = peer.outcomes(len(peer.publish(*sent)))
        if (answer := outcomes.pop(10)) == "released":
            [answer] = peer.outcomes(len(peer.publish(KEYLESS))).values()
        assert answer == "rejected:amqp:precondition-failed"
        assert set(outcomes.values()) <= {"accepted", "released"}
        accepted(peer, 1)
    took(gateway, node, [*outcomes.values()].count("accepted") + 1)


@pytest.mark.parametrize("errors", ["shipped", "is_capacity"])
def test_a_commit_with_such_a_message_is_refused_and_the_control_link_goes_on(
    gateway: GatewayProcess, node: str, errors: str, request: pytest.FixtureRequest
) -> None:
    if errors != "shipped":
        request.getfixturevalue(errors)
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        peer.control()
        for messages, outcome in (([KEYED, KEYLESS], "rejected:amqp:transaction:rollback"), ([KEYED], "accepted")):
            transaction = peer.declare()
            peer.post(transaction, *messages)
            peer.dispositions(len(messages))
            assert peer.discharge(transaction) == outcome
        accepted(peer, 1)
    took(gateway, node, 2)
