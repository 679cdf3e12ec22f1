"""Messages pass untouched: the bare message octet for octet, whatever legal encoding the publisher chose."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Symbol, Timestamp, UInt, ULong, encode


def section(code: int, value: object) -> bytes:
    return encode(Described(ULong(code), value))


# Legal, and what no encoder would choose: descriptors of nine octets, long forms of short values, nulls at the end.
ODD_PROPERTIES = (
    b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x73\xd0\x00\x00\x00\x0e\x00\x00\x00\x04\xb1\x00\x00\x00\x02id\x40\x40\x40"
)
ODD_APPLICATION = b"\x00\x53\x74\xd1\x00\x00\x00\x0f\x00\x00\x00\x02\xb1\x00\x00\x00\x01k\x71\x00\x00\x00\x07"
ODD_DATA = b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75\xb0\x00\x00\x00\x03abc"
ODD_LIST = b"\x00\x53\x77\xd0\x00\x00\x00\x06\x00\x00\x00\x02\x56\x01"

BODIES = {
    "data": section(0x75, b"abc"),
    "empty-data": section(0x75, b""),
    "two-data": section(0x75, b"abc") + section(0x75, b"def"),
    "sequence": section(0x76, [1, "two", None]),
    "two-sequences": section(0x76, [1]) + section(0x76, []),
    "value-null": section(0x77, None),
    "value-string": section(0x77, "Grüße 🐇"),
    "value-map": section(0x77, AmqpMap([(Symbol("a"), 1), ("b", [True, 2.5])])),
    "value-ulong": section(0x77, ULong(2**63)),
    "value-described": section(0x77, Described(Symbol("com:example"), [1])),
    "odd-data": ODD_DATA,
    "odd-value": ODD_LIST,
}
AROUND = {
    "bare": (b"", b""),
    "properties": (section(0x73, ["id", b"user"]) + section(0x74, AmqpMap([("k", "v")])), b""),
    "odd": (ODD_PROPERTIES + ODD_APPLICATION, section(0x78, AmqpMap([(Symbol("x-opt-hash"), b"\x01" * 32)]))),
    "annotated": (section(0x72, AmqpMap([(Symbol("x-opt-a"), Timestamp(7))])) + ODD_PROPERTIES, b""),
}
HEADER = section(0x70, [True, None, UInt(60_000)])


def through(gateway: GatewayProcess, node: str, *payloads: bytes) -> list[bytes]:
    """What a consumer gets of what was published."""
    with Peer(gateway.port) as peer:
        peer.stored(node, *payloads)
        peer.consumer(node, credit=len(payloads))
        got = peer.receive(len(payloads))
        peer.settle([event.field(1) for event in got], frames.state("accepted"))
        return [event.payload for event in got]


@pytest.mark.requirement("A-1", "A-6")
@pytest.mark.parametrize("around", AROUND)
def test_A_1_A_6_a_bare_message_is_bit_identical_with_every_kind_of_body(
    gateway: GatewayProcess, node: str, around: str
) -> None:
    before, after = AROUND[around]
    sent = [before + body + after for body in BODIES.values()]
    assert dict(zip(BODIES, through(gateway, node, *sent), strict=True)) == dict(zip(BODIES, sent, strict=True))


@pytest.mark.requirement("A-2")
def test_A_2_no_section_is_inserted(gateway: GatewayProcess, node: str) -> None:
    (got,) = through(gateway, node, BODIES["value-string"])
    assert got == BODIES["value-string"]


@pytest.mark.requirement("A-3")
def test_A_3_a_hash_over_the_bare_message_holds_behind_a_header_and_annotations(
    gateway: GatewayProcess, node: str
) -> None:
    bare = ODD_PROPERTIES + ODD_APPLICATION + ODD_LIST
    footer = section(0x78, AmqpMap([(Symbol("x-opt-sha256"), hashlib.sha256(bare).digest())]))
    (got,) = through(gateway, node, HEADER + bare + footer)
    start = got.index(ODD_PROPERTIES)
    assert hashlib.sha256(got[start : start + len(bare)]).digest() in got[start + len(bare) :]
    assert got[:start] == HEADER


@pytest.mark.requirement("B-1")
def test_B_1_delivery_annotations_stay_on_their_hop(gateway: GatewayProcess, node: str) -> None:
    annotations = section(0x71, AmqpMap([(Symbol("x-opt-hop"), 1)]))
    assert through(gateway, node, annotations + ODD_DATA, HEADER + annotations + ODD_DATA) == [
        ODD_DATA,
        HEADER + ODD_DATA,
    ]


def test_NF_1_a_tag_is_the_store_and_the_event_in_at_most_32_octets(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, *[ODD_DATA] * 3)
        peer.consumer(node, credit=3)
        tags = [delivery.field(2).split(b":") for delivery in peer.receive(3)]
    stores, events = {store for store, _ in tags}, [int(event) for _, event in tags]
    assert len(stores) == 1
    assert events == sorted(set(events))
    assert all(len(b":".join(tag)) <= 32 for tag in tags)
    assert f'"store": {int(stores.pop())}' in gateway.command("node", "show", node, "--json")


@pytest.mark.parametrize("cuts", [(1,), (900,), (4_999,), (4, 5, 6, 2_500), (0, 0, 3_000)], ids=str)
def test_P_A1_a_message_in_many_frames_is_put_together_up_to_the_limit(
    small: GatewayProcess, node: str, cuts: tuple[int, ...]
) -> None:
    """P-A1, P-R1 in profile extended; frames of 1,024 octets, messages of 5,000."""
    payload = section(0x75, bytes(range(256)) * 19 + b"x" * 128)
    assert len(payload) == 5_000
    edges = (
        sorted({*range(0, 5_000, 900), *cuts, 5_000, 0}) if 0 not in cuts else [0, 0, *range(900, 5_000, 900), 5_000]
    )
    pieces = [payload[begin:end] for begin, end in itertools.pairwise(edges)]
    with Peer(small.port) as peer:
        peer.publisher(node)
        peer.send(*(frames.transfer(0, piece, more=True) for piece in pieces[:-1]), frames.transfer(0, pieces[-1]))
        assert peer.outcomes(1) == {0: "accepted"}
        peer.consumer(node, credit=1)
        assert peer.receive(1)[0].payload == payload


def test_P2_one_octet_more_closes_the_link_and_nothing_else(small: GatewayProcess, node: str) -> None:
    with Peer(small.port) as peer:
        peer.publisher(node, handle=0)
        peer.publisher(node, handle=1)
        whole = section(0x75, b"x" * 4_993)
        peer.send(*(frames.transfer(0, whole[at : at + 900], more=at + 900 < 5_001) for at in range(0, 5_001, 900)))
        assert peer.detached(0) == "amqp:link:message-size-exceeded"
        peer.send(frames.transfer(1, ODD_DATA, handle=1))
        assert peer.outcomes(1) == {1: "accepted"}
        peer.send(*(frames.transfer(2, whole[:900], more=True) for _ in range(50)))  # a peer that does not listen
        peer.send(frames.transfer(3, ODD_DATA, handle=1))
        assert peer.outcomes(1) == {3: "accepted"}
