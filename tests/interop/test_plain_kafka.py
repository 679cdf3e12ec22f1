"""Native stays native: plain Kafka clients (kafka-python, none of ours) on the topics of a gateway's nodes.

A plain producer's records are messages to AMQP consumers, a plain consumer reads what AMQP applications published, and
Kafka's own tools see the lag of a durable.
"""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from transformers.codec import decode

NATIVE = [(None, b'{"order":7}'), (b"order-8", "größer".encode()), (b"1", b"\xff\x00\x01"), (b"k", b"")]


@pytest.fixture
def served(new_gateway: StartGateway) -> GatewayProcess:
    return new_gateway("kafka")


def realm_of(served: GatewayProcess) -> tuple[str, str]:
    realm = served.settings["realm"]
    return realm["bootstrap"], realm["prefix"]


def records(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """All that is committed, as a plain consumer reads it."""
    place = TopicPartition(topic, 0)
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end = consumer.end_offsets([place])[place]
        rows: list[tuple[int, bytes | None, bytes | None]] = []
        while consumer.position(place) < end:
            polled = consumer.poll(timeout_ms=500).get(place, [])
            rows += [(record.offset, record.key, record.value) for record in polled]
    return rows


def produce(bootstrap: str, topic: str, pairs: list[tuple[bytes | None, bytes]]) -> None:
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
        for key, value in pairs:
            producer.send(topic, key=key, value=value).get(timeout=HANG_S)


@pytest.mark.requirement("A-13", "A-14")
def test_records_of_a_plain_producer_are_messages_to_amqp_consumers(served: GatewayProcess) -> None:
    bootstrap, prefix = realm_of(served)
    ours = frames.message(b"by AMQP")
    with Peer(served.port) as peer:
        peer.stored("mixed", ours)
        produce(bootstrap, f"{prefix}.node.mixed", NATIVE)
        peer.stored("mixed", ours)
        peer.consumer("mixed", credit=20)
        came = peer.receive(len(NATIVE) + 2)
        assert [came[0].payload, came[-1].payload] == [ours, ours], "what a gateway wrote stays bit for bit"
        bodies = [decode(seen.payload)[0] for seen in came[1:-1]]
        assert [(body.descriptor, body.value) for body in (bodies[0], bodies[1], bodies[3])] == [
            (0x77, '{"order":7}'),
            (0x77, "größer"),
            (0x77, ""),
        ]
        octets = came[3].payload
        properties, at = decode(octets)
        assert str(properties.value[6]) == "application/octet-stream"
        assert properties.value[7:] in ([], [None]), "no content-encoding"
        assert decode(octets, at)[0].value == NATIVE[2][1]
        numbers = [seen.field(1) for seen in came]
        peer.settle(numbers, frames.state("released"))
        again = peer.receive(len(came))  # returned ones are read and framed alike
        assert [seen.payload for seen in again] == [seen.payload for seen in came]
        peer.settle([seen.field(1) for seen in again], frames.state("accepted"), settled=False)
        assert set(peer.outcomes(len(again)).values()) == {"accepted"}


def test_headers_of_a_plain_producer_are_application_properties(served: GatewayProcess) -> None:
    bootstrap, prefix = realm_of(served)
    with Peer(served.port) as peer:
        peer.stored("headed", frames.message(b"by AMQP"))
        with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
            headers = [("region", "\u00fcber".encode()), ("raw", b"\xff"), ("region", b"north")]
            producer.send(f"{prefix}.node.headed", key=b"k", value=b"{}", headers=headers).get(timeout=HANG_S)
        peer.consumer("headed", credit=2)
        _, native = peer.receive(2)
        properties, at = decode(native.payload)
        assert properties.descriptor == 0x74
        assert properties.value.pairs == [("region", "north"), ("raw", b"\xff")]
        assert decode(native.payload, at)[0].value == "{}"


def test_a_plain_consumer_reads_what_amqp_applications_published(served: GatewayProcess) -> None:
    """As docs/records.md says: the value is the message; the key says where its sections begin."""
    bootstrap, prefix = realm_of(served)
    texts = [f"message {number}".encode() for number in range(20)]
    with Peer(served.port) as peer:
        peer.stored("news", *map(frames.message, texts), kind="channel")
    rows = records(bootstrap, f"{prefix}.node.news")
    assert [value for _, _, value in rows] == [frames.message(text) for text in texts]
    for (_, key, value), text in zip(rows, texts, strict=True):
        assert key is not None and value is not None
        version, transformer, _, _, *_, body = key.decode().split(";")
        assert (version, transformer) == ("1", "basic")
        assert decode(value, int(body))[0].value == text


def test_kafka_shows_the_true_lag_of_a_durable(served: GatewayProcess) -> None:
    """What `kafka-consumer-groups --describe` computes: end of the log less the group's offset."""
    bootstrap, prefix = realm_of(served)
    durable = frames.source("news", durable=2, capability="topic")
    with Peer(served.port, container="reader") as peer:
        peer.consumer(durable, credit=0, name="sub")
        peer.stored("news", *[frames.message(b"%d" % number) for number in range(30)], kind="channel")
        peer.credit(30)
        came = peer.receive(30)
        assert lag(served, bootstrap, prefix, 30) == 30
        peer.settle([seen.field(1) for seen in came[:12]], frames.state("accepted"))
        assert lag(served, bootstrap, prefix, 18) == 18
        peer.settle([seen.field(1) for seen in came[12:]], frames.state("accepted"))
        assert lag(served, bootstrap, prefix, 0) == 0
        with Transacting(served.port) as other:
            other.publisher("news", "channel")
            transaction = other.begun()
            other.post(transaction, frames.message(b"more"))
            other.dispositions(1)
            assert other.discharge(transaction) == "accepted"
        peer.credit(1)
        [more] = peer.receive(1)
        assert lag(served, bootstrap, prefix, 1) == 1, "the event, and not the mark behind its transaction"
        peer.settle([more.field(1)], frames.state("accepted"))
        assert lag(served, bootstrap, prefix, 0) == 0


def lag(served: GatewayProcess, bootstrap: str, prefix: str, wanted: int, deadline_s: float = HANG_S) -> int:
    """Of the durable's group, once it is as wanted or the time is over: the projection follows about once a second."""
    place = TopicPartition(f"{prefix}.node.news", 0)
    until = time.monotonic() + deadline_s
    group = group_of(bootstrap, prefix)
    with (
        closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin,
        closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer,
    ):
        while True:
            offsets = admin.list_group_offsets(group).get(group, {})
            shown = consumer.end_offsets([place])[place] - offsets[place].offset if place in offsets else -1
            if shown == wanted or time.monotonic() > until:
                return int(shown)
            time.sleep(0.2)


def group_of(bootstrap: str, prefix: str) -> str:
    """Named in the durable's own record."""
    values = [value for _, key, value in records(bootstrap, f"{prefix}.realm") if key and b'"durable"' in key]
    [record] = [json.loads(value) for value in values if value]
    return str(record["group"])
