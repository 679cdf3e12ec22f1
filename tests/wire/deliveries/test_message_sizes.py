"""How large a message may be: what is announced to publishers and holds for each of them, on each realm and however
many stores a node has; and that no consumer is sent a larger one than it takes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from native_backend.publish.event_sizes import AROUND_BYTES, KEPT_S
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.frames import count_and_first, without_header
from tests.kit.wire.peer import Peer
from transformers.codec import UInt

MIB = 1 << 20
PARTITIONS = (1, 2, 3)
PREFIX = f"t{uuid.uuid4().hex[:8]}"
SIZE = 10  # in an attach
TOO_LARGE = "amqp:link:message-size-exceeded"
ACCEPTED = frames.state("accepted")
SMALL, LARGE = (
    frames.message(b"small", frames.header(first=True)),
    frames.message(b"l" * 900, frames.header(first=True)),
)
TAKES = 500


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def realm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """With every default."""
    directory = tmp_path_factory.mktemp("sizes")
    kept = embedded_realm(directory)
    if request.param == "kafka":
        kept = kafka_realm(request.getfixturevalue("kafka_bootstrap"), PREFIX)
    gateway = start_gateway(directory, kept)
    yield gateway
    gateway.end_well()


@pytest.fixture(scope="module")
def on_kafka(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    gateway = start_gateway(tmp_path_factory.mktemp("sizes"), kafka_realm(kafka_bootstrap, f"{PREFIX}k"))
    yield gateway
    gateway.end_well()


def made(realm: GatewayProcess, kind: str = "queue", partitions: int = 1) -> str:
    name = f"n{uuid.uuid4().hex[:8]}"
    realm.command("node", "create", name, "--kind", kind, "--partitions", str(partitions))
    return name


def message(size: int) -> bytes:
    """So many octets, all told."""
    around = len(frames.message(b"x" * 300)) - 300
    whole = frames.message((b"0123456789" * (size // 10 + 1))[: size - around])
    assert len(whole) == size
    return whole


def split(payload: bytes, number: int, handle: int = 0, size: int = 60_000) -> bytes:
    """In as many transfers as it takes."""
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    first = frames.transfer(number, parts[0], handle, more=len(parts) > 1)
    more = [[UInt(handle), None, None, None, None, at < len(parts)] for at in range(2, len(parts) + 1)]
    return first + b"".join(frames.frame(frames.TRANSFER, *transfer) for transfer in zip(more, parts[1:], strict=True))


def announced(peer: Peer, node: str, handle: int = 0) -> int:
    """The max-message-size that a publisher is told."""
    peer.send(frames.attach_sender(node, handle, f"to-{handle}-{uuid.uuid4().hex}"))
    attached = peer.expect("attach")
    peer.gateway_handles[handle] = attached.field(1)
    peer.expect("flow")
    return int(attached.field(SIZE))


# -- to us


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_the_largest_message_that_is_announced_goes_through_and_one_octet_more_ends_its_link(
    realm: GatewayProcess, partitions: int
) -> None:
    """In several hundred transfers each way."""
    node = made(realm, partitions=partitions)
    with Peer(realm.port) as peer:
        assert announced(peer, node) == 16 * MIB
        largest = message(16 * MIB)
        peer.send(split(largest, 0))
        assert peer.outcomes(1, 60.0) == {0: "accepted"}
        peer.consumer(node, credit=1, handle=5)
        assert peer.receive(1, 5, 60.0)[0].payload == largest
        peer.settle([0], ACCEPTED)
        peer.send(split(message(16 * MIB + 1), 1))
        assert peer.next_frame("detach", lambda _: True, 30.0).condition == TOO_LARGE
        peer.send(frames.detach(0))
        assert announced(peer, node, 3) == 16 * MIB


def test_a_transaction_takes_a_message_of_the_largest_size(realm: GatewayProcess) -> None:
    node = made(realm)
    with Peer(realm.port) as peer:
        peer.send(frames.attach_sender(frames.COORDINATOR, 7, "control"))
        peer.expect("attach")
        announced(peer, node)
        peer.send(frames.declare(0))
        txn = peer.expect("disposition").field(4).value[0]
        payload = message(15 * MIB)
        parts = [payload[at : at + 60_000] for at in range(0, len(payload), 60_000)]
        state = frames.in_transaction(txn)
        peer.send(
            *(
                frames.transfer(1, part, more=at < len(parts), state=state)
                if at == 1
                else frames.frame(
                    frames.TRANSFER, [UInt(0), None, None, None, None, at < len(parts), None, state], part
                )
                for at, part in enumerate(parts, 1)
            )
        )
        assert peer.next_frame("disposition", lambda _: True, 60.0).state == "transactional accepted"
        peer.send(frames.discharge(2, txn))
        assert peer.next_frame("disposition", lambda seen: seen.field(1) == 2, 60.0).state == "accepted"
        peer.consumer(node, credit=1, handle=5)
        assert peer.receive(1, 5, 60.0)[0].payload == payload


def limit(bootstrap: str, node: str, size: int) -> None:
    """As an operator sets it."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    topic = ConfigResource(ConfigResourceType.TOPIC, f"{PREFIX}k.node.{node}", {"max.message.bytes": str(size)})
    admin.alter_configs([topic])
    admin.close()


def hears_of(peer: Peer, node: str, size: int) -> None:
    """Soon."""
    end = time.monotonic() + HANG_S * KEPT_S
    handle = 20
    while announced(peer, node, handle) != size:
        assert time.monotonic() < end, "an operator's setting is not told"
        peer.send(frames.detach(handle))
        peer.next_frame("detach", lambda _: True, 20.0)
        time.sleep(0.2)


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_on_kafka_a_publisher_hears_what_its_nodes_topic_takes_and_that_holds(
    on_kafka: GatewayProcess, kafka_bootstrap: str, partitions: int
) -> None:
    node, size = made(on_kafka, partitions=partitions), 100_000 - AROUND_BYTES
    limit(kafka_bootstrap, node, 100_000)
    with Peer(on_kafka.port) as peer:
        hears_of(peer, node, size)
        peer.send(split(message(size), 0, 20))
        assert peer.outcomes(1) == {0: "accepted"}
        peer.send(split(message(size + 1), 1, 20))
        assert peer.next_frame("detach", lambda _: True, 20.0).condition == TOO_LARGE
        assert len(peer.there(node, 1)) == 1
    limit(kafka_bootstrap, node, 30 * MIB)
    with Peer(on_kafka.port) as peer:
        hears_of(peer, node, 16 * MIB)  # the gateway's own limit
        peer.send(split(message(size + 1), 0, 20))
        assert peer.outcomes(1) == {0: "accepted"}


def test_on_kafka_many_messages_that_the_topic_takes_are_not_too_large_together(
    on_kafka: GatewayProcess, kafka_bootstrap: str
) -> None:
    """The broker holds what comes in one batch against the topic's setting."""
    node = made(on_kafka)
    limit(kafka_bootstrap, node, 20_000)
    with Peer(on_kafka.port) as peer:
        hears_of(peer, node, 20_000 - AROUND_BYTES)
        peer.send(*(frames.transfer(number, message(1_000), 20) for number in range(500)))
        assert set(peer.outcomes(500).values()) == {"accepted"}


def test_on_kafka_the_relay_rejects_what_a_topic_does_not_take_and_goes_on(
    on_kafka: GatewayProcess, kafka_bootstrap: str
) -> None:
    node, other = made(on_kafka), made(on_kafka)
    limit(kafka_bootstrap, node, 20_000)
    with Peer(on_kafka.port) as peer:
        hears_of(peer, node, 20_000 - AROUND_BYTES)
        assert announced(peer, None, 1) == 16 * MIB  # type: ignore[arg-type]
        for number, (to, size, outcome) in enumerate(
            ((node, 30_000, f"rejected:{TOO_LARGE}"), (other, 30_000, "accepted"), (node, 10, "accepted"))
        ):
            peer.send(frames.transfer(number, frames.message_to(to, b"x" * size), 1))
            assert peer.outcomes(1) == {number: outcome}


# -- from us


def source(node: str, what: str) -> object:
    return {
        "queue": node,
        "browser": frames.source(node, mode="copy"),
        "plain": node,
        "durable": frames.source(node, 2, expiry="never"),
        "shared": frames.source(node, 2, expiry="never", capability="shared"),
    }[what]


def consume(peer: Peer, where: object, size_max: int, handle: int, name: str, credit: int = 10, mode: int = 2) -> None:
    peer.send(frames.attach_receiver(where, handle, name, mode, size_max=size_max))
    peer.gateway_handles[handle] = peer.expect("attach").field(1)
    peer.delivered[handle] = 0
    peer.credit(credit, handle)


def publish(realm: GatewayProcess, node: str, *messages: bytes) -> None:
    """One after the other, so that it is known which comes first in each store."""
    with Peer(realm.port) as peer:
        peer.send(frames.attach_sender(node))
        peer.expect("attach")
        for payload in messages:
            peer.publish(payload)
            assert peer.next_frame("disposition", lambda _: True, 20.0).state == "accepted"


def bodies(messages: list[frames.Seen]) -> list[bytes]:
    return sorted(without_header(seen.payload) for seen in messages)


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("mode", [1, 2])
def test_a_queue_gives_what_is_too_large_for_one_consumer_to_another(
    realm: GatewayProcess, partitions: int, mode: int
) -> None:
    """It was never given to the first, so no attempt is counted; mode 1 is given everything settled."""
    node = made(realm, partitions=partitions)
    with Peer(realm.port) as narrow, Peer(realm.port) as wide:
        consume(narrow, node, TAKES, 1, "narrow", mode=mode)
        publish(realm, node, *[LARGE, SMALL, LARGE, SMALL])
        assert bodies(narrow.receive(2, 1)) == [without_header(SMALL)] * 2
        narrow.nothing()
        consume(wide, node, 0, 1, "wide")
        got = wide.receive(2, 1)
        assert bodies(got) == [without_header(LARGE)] * 2
        assert {count_and_first(seen) for seen in got} == {(0, False)}
        wide.settle([seen.field(1) for seen in got], ACCEPTED)
        wide.nothing()


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("what", ["durable", "shared"])
def test_a_durable_keeps_what_is_too_large_until_a_link_takes_it(
    realm: GatewayProcess, partitions: int, what: str
) -> None:
    node, container = made(realm, "channel", partitions), f"c-{uuid.uuid4().hex}"
    with Peer(realm.port, container) as peer:
        consume(peer, source(node, what), TAKES, 1, "sub")
        publish(realm, node, *[LARGE, SMALL, LARGE, SMALL])
        got = peer.receive(2, 1)
        assert bodies(got) == [without_header(SMALL)] * 2
        peer.settle([seen.field(1) for seen in got], ACCEPTED)
        peer.nothing()
        for size_max, count in ((TAKES, 0), (len(LARGE) + 100, 2), (0, 0)):
            peer.send(frames.detach(1, closed=False))
            peer.next_frame("detach", lambda _: True, 20.0)
            consume(peer, source(node, what), size_max, 1, "sub")
            got = peer.receive(count, 1)
            assert bodies(got) == [without_header(LARGE)] * count
            peer.settle([seen.field(1) for seen in got], ACCEPTED)
            peer.nothing()


@pytest.mark.parametrize("what", ["plain", "browser"])
def test_a_copy_that_is_too_large_is_passed_over(realm: GatewayProcess, what: str) -> None:
    node = made(realm, "channel" if what == "plain" else "queue")
    with Peer(realm.port) as peer:
        if what == "plain":
            consume(peer, source(node, what), TAKES, 1, "sub")
        publish(realm, node, *[LARGE, SMALL, LARGE, SMALL])
        if what == "browser":
            consume(peer, source(node, what), TAKES, 1, "sub")
        assert bodies(peer.receive(2, 1)) == [without_header(SMALL)] * 2
        peer.nothing()
    if what == "browser":
        with Peer(realm.port) as other:
            other.consumer(node, credit=10)
            assert len(other.receive(4)) == 4


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_drain_ends_though_only_what_is_too_large_is_left(realm: GatewayProcess, partitions: int) -> None:
    node = made(realm, partitions=partitions)
    publish(realm, node, *[LARGE] * 4, SMALL)
    with Peer(realm.port) as peer:
        consume(peer, node, TAKES, 1, "narrow", credit=0)
        peer.credit(10, 1, drain=True)
        assert bodies(peer.receive(1, 1)) == [without_header(SMALL)]
        flow = peer.seen.pop(0) if peer.seen else peer.frames(1)[0]
        assert (flow.name, flow.field(5), flow.field(6), flow.field(8)) == ("flow", 10, 0, True)


def test_exactly_the_size_that_a_consumer_takes_is_sent(realm: GatewayProcess) -> None:
    """Also where an earlier attempt makes the header longer: the message is measured as it would go out."""
    node = made(realm)
    fits = frames.message(b"f" * 700)
    publish(realm, node, fits)
    with Peer(realm.port) as peer, Peer(realm.port) as other:
        consume(peer, node, len(fits), 1, "exact")
        got = peer.receive(1, 1)
        assert got[0].payload == fits
        peer.settle([got[0].field(1)], frames.state("modified", True))
        peer.nothing()  # with its delivery-count it is larger
        consume(other, node, 0, 1, "wide")
        assert count_and_first(*other.receive(1, 1)) == (1, False)
