"""What a consumer gives up is found at the dead-letter node, as it was published and with its cause."""

from __future__ import annotations

import time

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import count_and_first
from tests.kit.wire.peer import Peer
from tests.wire.deliveries.dead_letters import annotated, given, letter
from transformers.codec import AmqpMap, Described, Symbol, Timestamp, UInt, ULong, decode, encode
from transformers.message.sections import PROPERTIES, section_offsets

HEADER = frames.header(first=True)
MESSAGE = frames.message(b"event", HEADER)
FAILED = frames.state("modified", True, False)


@pytest.fixture
def nodes(gateway: GatewayProcess, node: str) -> tuple[str, str]:
    """A queue that allows two attempts, and where its dead letters go."""
    dead = f"{node}.dead"
    gateway.command("node", "create", dead)
    gateway.command("node", "create", node, "--dead-letter", dead, "--attempts", "2")
    return node, dead


def bare(payload: bytes) -> bytes:
    offsets = section_offsets(payload)
    return payload[min(offset for offset in offsets[PROPERTIES:] if offset >= 0) :]


@pytest.mark.requirement("H-5", "H-13")
def test_H_5_a_rejected_message_is_kept_with_its_cause(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    node, dead = nodes
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        (seen,) = given(peer, node)
        peer.settle([seen.field(1)], frames.state("rejected"), settled=False)
        assert peer.outcomes(1) == {0: "rejected"}
    payload = letter(gateway, dead)
    assert bare(payload) == bare(MESSAGE)
    annotations = annotated(payload)
    assert annotations["x-opt-dead-letter-cause"] == "rejected"
    assert (annotations["x-opt-dead-letter-node"], annotations["x-opt-dead-letter-durable"]) == (node, "queue")
    assert annotations["x-opt-dead-letter-attempts"] == 1


def test_a_dead_letter_has_no_time_to_live(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    """A client that looks at absolute-expiry-time, as Qpid JMS does, would not show it to its application."""
    node, dead = nodes
    long = UInt(3_600_000)
    properties = encode(Described(ULong(0x73), ["id", *[None] * 7, Timestamp(1_900_000_000_000), Timestamp(1)]))
    message = encode(Described(ULong(0x70), [True, None, long])) + properties + frames.message(b"event")
    with Peer(gateway.port) as peer:
        peer.stored(node, message)
        (seen,) = given(peer, node)
        assert seen.payload.endswith(properties + frames.message(b"event"))
        peer.settle([seen.field(1)], frames.state("rejected"), settled=False)
        assert peer.outcomes(1) == {0: "rejected"}
    payload = letter(gateway, dead)
    header, _ = decode(payload)
    assert header.value[:3] == [True, None, None]
    kept = encode(Described(ULong(0x73), ["id", *[None] * 8, Timestamp(1)]))
    assert bare(payload) == kept + frames.message(b"event")
    assert annotated(payload)["x-opt-dead-letter-expiry"] == 1_900_000_000_000


@pytest.mark.requirement("H-11")
def test_H_11_the_last_attempt_that_fails_is_kept(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    node, dead = nodes
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.consumer(node, credit=3)
        for number in range(2):
            peer.receive(1)
            peer.settle([number], FAILED, settled=False)
            assert peer.outcomes(1) == {number: "modified"}
        peer.nothing()
    annotations = annotated(letter(gateway, dead))
    assert (annotations["x-opt-dead-letter-cause"], annotations["x-opt-dead-letter-attempts"]) == ("modified-failed", 2)


@pytest.mark.requirement("F-2", "G-3")
@pytest.mark.parametrize("how", ["reset", "close"])
def test_an_event_that_its_consumers_die_of_is_kept_at_the_last_attempt(
    gateway: GatewayProcess, nodes: tuple[str, str], how: str
) -> None:
    """One that leaves in order meanwhile takes no attempt."""
    node, dead = nodes
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        given(peer, node)
        peer.send(frames.detach(1, closed=False))
        peer.expect("detach")
    for count in range(2):
        doomed = Peer(gateway.port)
        (seen,) = given(doomed, node)
        assert count_and_first(seen) == (count, False)
        getattr(doomed, how)()
    payload = letter(gateway, dead)
    assert bare(payload) == bare(MESSAGE)
    annotations = annotated(payload)
    assert (annotations["x-opt-dead-letter-cause"], annotations["x-opt-dead-letter-attempts"]) == ("modified-failed", 2)
    with Peer(gateway.port) as peer:
        peer.consumer(node, credit=1)
        peer.nothing()


def test_one_disposition_may_return_some_and_give_up_others(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    """A range of three, of which the first has failed before."""
    node, dead = nodes
    with Peer(gateway.port) as peer:
        peer.stored(node, *(frames.message(b"%d" % number, HEADER) for number in range(3)))
        peer.consumer(node, credit=1)
        peer.receive(1)
        peer.settle([0], FAILED, settled=False)
        assert peer.outcomes(1) == {0: "modified"}
        peer.credit(3)
        peer.receive(3)
        peer.send(frames.disposition(1, 3, FAILED, False))
        assert peer.outcomes(3) == dict.fromkeys((1, 2, 3), "modified")
        peer.credit(3)
        assert [bare(seen.payload) for seen in peer.receive(2)] == [
            bare(frames.message(b"%d" % number)) for number in (1, 2)
        ]
        peer.settle([4, 5], frames.state("accepted"))
    assert bare(letter(gateway, dead)) == bare(frames.message(b"0"))


@pytest.mark.requirement("B-4")
def test_annotations_of_the_publisher_stay(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    node, dead = nodes
    own = encode(
        Described(ULong(0x72), AmqpMap([(Symbol("x-opt-mine"), 7), (Symbol("x-opt-dead-letter-cause"), "no")]))
    )
    message = HEADER + own + frames.message(b"event")
    with Peer(gateway.port) as peer:
        peer.stored(node, message)
        (seen,) = given(peer, node)
        assert seen.payload.endswith(own + frames.message(b"event"))
        peer.settle([seen.field(1)], frames.state("rejected"), settled=False)
        assert peer.outcomes(1) == {0: "rejected"}
    annotations = annotated(letter(gateway, dead))
    assert (annotations["x-opt-mine"], annotations["x-opt-dead-letter-cause"]) == (7, "rejected")


def test_as_documented_a_rejected_message_is_discarded(documented: GatewayProcess, node: str) -> None:
    dead = f"{node}.dead"
    documented.command("node", "create", dead)
    documented.command("node", "create", node, "--dead-letter", dead)
    with Peer(documented.port) as peer:
        peer.stored(node, MESSAGE)
        (seen,) = given(peer, node)
        peer.settle([seen.field(1)], frames.state("rejected"), settled=False)
        assert peer.outcomes(1) == {0: "rejected"}
        peer.consumer(dead, credit=1, handle=2, name="dead")
        peer.nothing()


def test_a_failed_message_rests_before_it_comes_again(gateway: GatewayProcess, node: str) -> None:
    gateway.command("node", "create", node, "--redelivery-delay", "400ms")
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        (seen,) = given(peer, node)
        asked_s = time.monotonic()
        peer.settle([seen.field(1)], FAILED, settled=False)
        assert peer.outcomes(1) == {0: "modified"}
        peer.credit(1)
        peer.receive(1)
        assert time.monotonic() - asked_s >= 0.4
