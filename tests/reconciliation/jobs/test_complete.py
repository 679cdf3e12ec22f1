"""Nodes of the transformer `complete`, on both realms: AMQP to AMQP nothing changes, whatever becomes of an event;
plain consumers read it; and the books close, with identities in headers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from native_backend.log.open import open_embedded
from native_backend.log.port import Records
from native_backend.log.record_headers import HeadedKey
from reconciliation.model.settings import Realm
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from tests.reconciliation.conftest import Reconcile
from transformers.codec import AmqpMap, Described, Symbol, UInt, encode
from transformers.message.sections import PROPERTIES, section_offsets

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
PROPERTIES_SECTION = encode(Described(0x73, ["id-1", b"user", None, "subject", None, None, Symbol("text/plain")]))
APPLICATION = encode(Described(0x74, {"region": "\u00fcber", "count": UInt(7)}))
WIDE = b"\x00\x80\0\0\0\0\0\0\0\x75\xb0\0\0\0\x04wide"  # a data section as few would write it
FOOTER = encode(Described(0x78, AmqpMap([(Symbol("x-opt-sum"), b"\x01")])))
MESSAGES = [
    frames.message(b"plain"),
    PROPERTIES_SECTION + APPLICATION + encode(Described(0x75, b"{}")),
    frames.header(first=True) + encode(Described(0x72, {Symbol("x-opt-a"): 1})) + WIDE + FOOTER,
    APPLICATION + encode(Described(0x77, {"a": [1, None]})),
    encode(Described(0x76, [1])) + encode(Described(0x76, [])),
    encode(Described(0x75, b"")),
]
UNREADABLE = b"\x00\x53\x73\xc0\x04\x01\xa1\x01\xff" + encode(Described(0x75, b""))  # properties that are no UTF-8


def bare(payload: bytes) -> bytes:
    offsets = section_offsets(payload)
    return payload[min(offset for offset in offsets[PROPERTIES:] if offset >= 0) :]


def numbers(seen: list[Seen]) -> list[int]:
    return [transfer.field(1) for transfer in seen]


def live(gateway: GatewayProcess) -> None:
    """Publish, release, reject, move, expire, restart, transact: at the end everything has ended but what is noted."""
    gateway.command("node", "create", "dead")
    gateway.command("node", "create", "orders", "--dead-letter", "dead")
    gateway.command("node", "create", "other")
    with Peer(gateway.port) as peer:
        peer.stored("orders", *MESSAGES)
        peer.publisher("orders")
        (refused,) = peer.publish(UNREADABLE)
        assert peer.outcomes(1) == {refused: "rejected:amqp:precondition-failed"}
        peer.consumer("orders", credit=len(MESSAGES))
        came = peer.receive(len(MESSAGES))
        assert [seen.payload for seen in came] == MESSAGES
        peer.settle(numbers(came), frames.state("modified", True, False))
    with Peer(gateway.port) as peer:
        peer.consumer("orders", credit=len(MESSAGES))
        came = peer.receive(len(MESSAGES))
        assert [bare(seen.payload) for seen in came] == [bare(message) for message in MESSAGES]
        assert [seen.payload[: len(frames.header(1))] for seen in came[:2]] == [frames.header(1)] * 2, (
            "one attempt failed"
        )
        peer.settle(numbers(came[:2]), frames.state("rejected"), settled=False)
        peer.settle(numbers(came[2:3]), frames.state("accepted"), settled=False)
        peer.settle(numbers(came[3:]), frames.state("released"), settled=False)
        assert len(peer.outcomes(len(came))) == len(came)
    gateway.command("queue", "move", "orders", "--to", "other", "--yes")
    gateway.kill()
    gateway.start()
    with Transacting(gateway.port) as peer:
        peer.publisher("other")
        transaction = peer.begun()
        peer.post(transaction, MESSAGES[1])
        peer.dispositions(1)
        assert peer.discharge(transaction) == "accepted"
    with Peer(gateway.port) as peer:
        peer.consumer("other", credit=10)
        came = peer.receive(4)
        assert [bare(seen.payload) for seen in came] == [bare(message) for message in (*MESSAGES[3:], MESSAGES[1])]
        peer.settle(numbers(came), frames.state("accepted"))
    with Peer(gateway.port) as peer:
        peer.consumer("dead", credit=10)
        letters = peer.receive(2)
        assert [bare(seen.payload) for seen in letters] == [bare(message) for message in MESSAGES[:2]]
        assert all(b"x-opt-dead-letter-cause" in seen.payload for seen in letters)
        peer.settle(numbers(letters), frames.state("accepted"))


def check_letters(letters: list[tuple[bytes | None, dict[str, bytes | None], bytes]]) -> None:
    """As a plain consumer of the dead-letter node reads them."""
    assert [value for _, _, value in letters] == [b"plain", b"{}"]
    _, headers, _ = letters[1]
    assert (headers["um-event"] or b"").startswith(b"2;")
    assert b";3;complete;" in (headers["um-event"] or b"")
    assert headers["region"] == "\u00fcber".encode()
    assert headers["count"] == b"7"
    assert headers["JMS_AMQP_MA_x-opt-dead-letter-cause"] == b"rejected"


def test_an_embedded_realm(new_gateway: StartGateway, reconcile: Reconcile) -> None:
    gateway = new_gateway("embedded", transformer="complete")
    live(gateway)
    assert gateway.stop() == 0
    directory = Path(gateway.config_path).parent / "realm"
    log = open_embedded(directory)
    letters: Records = log.control.read_range("um.node.dead", 0, 0, 10)
    log.close()
    check_letters([
        (key.record_key, dict(key.headers), value)
        for key, value in zip(letters.keys, letters.values, strict=True)
        if type(key) is HeadedKey and value is not None
    ])  # fmt: skip
    result = reconcile(Realm("embedded", "um", path=directory))
    assert result.text.startswith("Verdict: CLEAN."), result.text


def test_a_realm_on_kafka(new_gateway: StartGateway, reconcile: Reconcile) -> None:
    gateway = new_gateway("kafka", transformer="complete")
    live(gateway)
    assert gateway.stop() == 0
    realm: dict[str, Any] = gateway.settings["realm"]
    bootstrap, prefix = realm["bootstrap"], realm["prefix"]
    check_letters(records(bootstrap, f"{prefix}.node.dead"))
    (_, plain, value), (_, named, body), *_ = records(bootstrap, f"{prefix}.node.orders")
    assert (value, body) == (b"plain", b"{}")
    assert [plain["um-body"], named["um-body"]] == [b"data", b"data"]
    assert (named["um-types"] or b"").decode().split(",") == ["string", "binary", "string", "symbol", "string", "uint"]
    assert named["nHeader.MessageId"] == b"id-1"
    assert named["JMS_AMQP_ContentType"] == b"text/plain"
    result = reconcile(Realm("kafka", prefix, bootstrap=bootstrap))
    assert result.text.startswith("Verdict: CLEAN."), result.text


def records(bootstrap: str, topic: str) -> list[tuple[bytes | None, dict[str, bytes | None], bytes]]:
    """Key, headers and value of all that is committed, as a plain consumer reads it."""
    place = TopicPartition(topic, 0)
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end = consumer.end_offsets([place])[place]
        entries: list[tuple[bytes | None, dict[str, bytes | None], bytes]] = []
        while consumer.position(place) < end:
            polled = consumer.poll(timeout_ms=500).get(place, [])
            entries += [(record.key, dict(record.headers), record.value) for record in polled]
    return entries
