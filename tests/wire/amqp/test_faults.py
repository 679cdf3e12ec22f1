"""Peers that break the protocol: the smallest scope closes with the right condition, and others go on."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Symbol, UInt, ULong

MESSAGE = frames.message()
FRAMING, DECODE = "amqp:connection:framing-error", "amqp:decode-error"


@pytest.fixture
def bystander(gateway: GatewayProcess, node: str) -> Iterator[Peer]:
    """Another connection, at work before and after."""
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(MESSAGE)
        assert peer.outcomes(1) == {0: "accepted"}
        yield peer
        peer.publish(MESSAGE)
        assert peer.outcomes(1) == {1: "accepted"}


def raw(body: bytes, doff: int = 2, kind: int = 0, size: int | None = None) -> bytes:
    return struct.pack(">IBBH", 8 + len(body) if size is None else size, doff, kind, 0) + body


BAD_FRAMES = {
    "size-below-8": (raw(b"", size=7), FRAMING),
    "size-0": (raw(b"", size=0), FRAMING),
    "size-above-max": (raw(b"", size=65_537), FRAMING),
    "size-huge": (raw(b"", size=0xFFFFFFFF), FRAMING),
    "doff-1": (raw(b"", doff=1), FRAMING),
    "doff-beyond": (raw(b"", doff=3), FRAMING),
    "sasl-frame": (raw(b"", kind=1), FRAMING),
    "garbage": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", FRAMING),
    "unknown-performative": (frames.frame(0x19, []), DECODE),
    "unknown-descriptor": (frames.frame(0x1234567, []), DECODE),
    "no-performative": (raw(b"\x40"), DECODE),
    "garbage-body": (raw(b"\xff\xfe\xfd"), DECODE),
    "not-a-list": (raw(b"\x00\x53\x12\xa1\x01a"), DECODE),
    "truncated-begin": (raw(frames.begin()[8:-1]), DECODE),
    "truncated-attach": (raw(frames.attach_sender("any.q")[8:-4]), DECODE),
    "channel-above-max": (frames.begin(channel=1024), FRAMING),
}


@pytest.mark.requirement("P-1", "P-2")
@pytest.mark.parametrize("bad", BAD_FRAMES)
def test_P_2_a_bad_frame_closes_its_connection_with_a_reason(
    gateway: GatewayProcess, bystander: Peer, bad: str
) -> None:
    data, condition = BAD_FRAMES[bad]
    with Peer(gateway.port) as peer:
        peer.send(data)
        assert peer.expect("close").condition == condition
        peer.send(frames.close())
        assert peer.closed()


def test_a_bad_plain_frame_in_the_middle_of_a_run(gateway: GatewayProcess, bystander: Peer, node: str) -> None:
    """What came before it is read, what comes behind it is not."""
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        good, bad = frames.transfer(0, MESSAGE), frames.transfer(1, MESSAGE)
        broken = bad[:12] + b"\xff" + bad[13:]  # its list says that it is longer than the frame
        peer.send(good + broken + frames.transfer(2, MESSAGE))
        assert peer.expect("close").condition == DECODE
        assert peer.closed()
        with Peer(gateway.port) as other:
            other.consumer(node, credit=5)
            other.receive(2)  # the bystander's and the good one
            other.nothing()


@pytest.mark.parametrize(
    "header",
    [b"AMQP\x00\x00\x09\x01", b"AMQP\x01\x01\x00\x00", b"AMQP\x02\x01\x00\x00", b"GET / HT", b"\x00" * 8, b"A\xff"],
)
def test_a_wrong_protocol_header_is_answered_with_the_right_one(
    gateway: GatewayProcess, bystander: Peer, header: bytes
) -> None:
    with Peer(gateway.port, begin=False) as peer:
        peer.send(header)
        assert peer.closed()
        assert peer.raw == b"AMQP\x03\x01\x00\x00"


@pytest.mark.requirement("P-4", "P-5")
@pytest.mark.parametrize(
    "data",
    [
        frames.transfer(0, MESSAGE, handle=9),
        frames.transfer(0, MESSAGE, handle=9, more=True),
        frames.flow(9, 10),
        frames.flow(9, 10, properties=AmqpMap([])),
        frames.detach(9),
        frames.frame(frames.TRANSFER, [UInt(300), UInt(0), b"0", UInt(0), False, False], MESSAGE),
    ],
    ids=["transfer", "more", "flow", "long-flow", "detach", "long-handle"],
)
def test_P_5_a_frame_for_no_link_ends_its_session_and_no_other(
    gateway: GatewayProcess, bystander: Peer, node: str, data: bytes
) -> None:
    with Peer(gateway.port) as peer:
        peer.send(frames.begin(channel=1))
        peer.expect("begin")
        peer.publisher(node)
        peer.send(data)
        ended = peer.expect("end")
        assert (ended.channel, ended.condition) == (0, "amqp:session:unattached-handle")
        peer.send(frames.transfer(0, MESSAGE), frames.end())  # on its way already
        target = frames.target(node)
        peer.send(frames.attach_sender(target, 0, "on the other one", channel=1))
        assert peer.expect("attach").channel == 1
        peer.expect("flow")
        peer.send(frames.transfer(0, MESSAGE, channel=1))
        assert peer.outcomes(1) == {0: "accepted"}
        peer.send(frames.begin())
        assert peer.expect("begin").channel == 0  # the channel is free again
        peer.publisher(node)


@pytest.mark.requirement("P-1", "P-3")
def test_a_second_begin_on_a_channel_ends_that_session_and_no_other(
    gateway: GatewayProcess, bystander: Peer, node: str
) -> None:
    """And what is sent until the peer has ended it, too, is passed over."""
    with Peer(gateway.port) as peer:
        peer.send(frames.begin(channel=1))
        peer.expect("begin")
        peer.publisher(node)
        peer.send(frames.begin(), frames.transfer(0, MESSAGE), frames.begin())
        ended = peer.expect("end")
        assert (ended.channel, ended.condition) == (0, "amqp:illegal-state")
        peer.nothing()
        peer.send(frames.end(), frames.begin())
        assert peer.expect("begin").channel == 0
        target = frames.target(node)
        peer.send(frames.attach_sender(target, 0, "on the other one", channel=1))
        assert peer.expect("attach").channel == 1


@pytest.mark.requirement("P-5")
@pytest.mark.parametrize("more", [False, True])
def test_P_5_a_transfer_on_a_link_on_which_its_peer_receives_is_for_no_link(
    gateway: GatewayProcess, bystander: Peer, node: str, more: bool
) -> None:
    with Peer(gateway.port) as peer:
        peer.consumer(node)
        peer.send(frames.transfer(0, MESSAGE, handle=1, more=more), frames.flow(1, 5))
        assert peer.expect("end").condition == "amqp:session:unattached-handle"


@pytest.mark.requirement("P-1", "P-4")
@pytest.mark.parametrize("more", [1, 2**31 - 2])
def test_P_4_a_publisher_speaks_of_no_delivery_that_it_never_sent(
    gateway: GatewayProcess, bystander: Peer, node: str, more: int
) -> None:
    """One frame of 2**31 - 1 deliveries was work for minutes."""
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(MESSAGE)
        assert peer.outcomes(1) == {0: "accepted"}
        peer.send(frames.disposition((0 - more) % 2**32, 0, frames.state("accepted"), sender=True))
        assert peer.expect("end").condition == "amqp:invalid-field"


@pytest.mark.requirement("P-5")
def test_P_5_a_handle_in_use_closes_the_connection(gateway: GatewayProcess, bystander: Peer, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.send(frames.attach_sender(node, 0, "another"))
        assert peer.expect("close").condition == "amqp:session:handle-in-use"


def test_a_handle_may_be_used_again_once_it_is_detached(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        for _ in range(3):
            peer.publisher(node)
            peer.publish(MESSAGE)
            peer.outcomes(1)
            peer.send(frames.detach(0))
            peer.expect("detach")


@pytest.mark.parametrize("step", [1, 7])
def test_every_single_octet_of_a_conversation_may_be_wrong(
    gateway: GatewayProcess, bystander: Peer, node: str, step: int
) -> None:
    """The process lives, whatever comes. Each variant is a connection of its own."""
    with Peer(gateway.port) as peer:
        peer.publisher(node)
    attach = frames.attach_sender(node) + frames.flow(0, 1) + frames.transfer(0, MESSAGE)
    for at in range(0, len(attach), 5):
        with Peer(gateway.port) as peer:
            changed = bytearray(attach)
            changed[at] = (changed[at] + step) % 256
            peer.send(bytes(changed))


@pytest.mark.parametrize("name", ["amqp:not allowed", "amqp:session:invalid-field", "no-such"])
def test_a_condition_that_amqp_does_not_define_is_seen(name: str) -> None:
    """By every peer of these tests, in all that it reads."""
    error = Described(ULong(0x1D), [Symbol(name), "words"])
    rejected = frames.state("rejected", error)
    for fields, code in (
        ([UInt(0), True, error], frames.DETACH),
        ([error], frames.END),
        ([error], frames.CLOSE),
        ([True, UInt(0), None, True, rejected], frames.DISPOSITION),
    ):
        [seen], _ = frames.read(frames.frame(code, fields))
        assert seen.undefined_condition() == name
    [seen], _ = frames.read(frames.frame(frames.DISPOSITION, [False, UInt(0), None, True, rejected]))
    assert seen.undefined_condition() is None, "a consumer's own is told back"
