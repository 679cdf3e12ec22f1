"""Publishing: rows P-A1 to P-A5 and P-R1 in both profiles, credit, and what a transfer can be that is no message."""

from __future__ import annotations

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import Described, ULong

MESSAGE = frames.message()
TRANSACTIONAL = Described(ULong(0x34), [b"txn", None])
GARBAGE = [
    b"garbage",
    b"\x00\x53",
    b"\x00\x53\x75\xa0\xff",
    b"\x00\x53\x79\x45",
    b"\x00\x53\x70\xc1\x01\x00",
    b"\xff" * 40,
]


@pytest.fixture(params=["extended", "um-9.12"])
def either(request: pytest.FixtureRequest) -> GatewayProcess:
    """A gateway of each profile."""
    gateway: GatewayProcess = request.getfixturevalue({"extended": "gateway", "um-9.12": "documented"}[request.param])
    return gateway


def drained(peer: Peer, node: str, count: int) -> list[bytes]:
    """What is on a queue: exactly `count`."""
    peer.consumer(node, credit=count + 1, handle=2, name="drain")
    got = [seen.payload for seen in peer.receive(count, 2)]
    peer.nothing()
    return got


@pytest.mark.requirement("T-2", "T-3", "X-1", "X-2")
@pytest.mark.parametrize("mode", [0, 1, 2], ids=["P-A4-unsettled", "P-A3-settled", "P-A5-mixed"])
def test_P_A3_P_A4_P_A5_published_in_every_mode(either: GatewayProcess, node: str, mode: int) -> None:
    with Peer(either.port) as peer:
        peer.publisher(node, mode=mode)
        unsettled = peer.publish(MESSAGE, MESSAGE) if mode != 1 else []
        settled = peer.publish(MESSAGE, settled=True) if mode != 0 else []
        unsettled += peer.publish(MESSAGE) if mode != 1 else []
        if unsettled:
            assert peer.outcomes(len(unsettled)) == dict.fromkeys(unsettled, "accepted")
        peer.nothing()  # T-3: a settled delivery is not answered
        assert len(drained(peer, node, len(settled) + len(unsettled))) == len(settled) + len(unsettled)


@pytest.mark.requirement("R-4")
def test_R_4_an_answer_is_settled(either: GatewayProcess, node: str) -> None:
    """Unless the publisher is to settle first: test_second.py."""
    with Peer(either.port) as peer:
        peer.publisher(node, mode=0)
        peer.publish(MESSAGE)
        assert peer.outcomes(1) == {0: "accepted"}


def test_P_A2_what_is_no_message_is_rejected_and_the_link_goes_on(either: GatewayProcess, node: str) -> None:
    """An empty transfer among them; the others of the same burst are taken. What is malformed is more than that where
    nothing is documented (A-9)."""
    payloads = [b"", *GARBAGE] if either.settings.get("mappings") else [b""] * 3
    mixed = [payload for bad in payloads for payload in (bad, MESSAGE)]
    with Peer(either.port) as peer:
        peer.publisher(node)
        numbers = peer.publish(*mixed)
        rejected = "rejected:amqp:precondition-failed"
        assert peer.outcomes(len(mixed)) == {number: ("accepted" if number % 2 else rejected) for number in numbers}
        peer.publish(b"", settled=True)
        peer.nothing()
        assert len(drained(peer, node, len(payloads))) == len(payloads)


def test_P_A1_P_R1_several_frames_are_refused_as_documented(documented: GatewayProcess, node: str) -> None:
    with Peer(documented.port) as peer:
        peer.publisher(node)
        peer.send(frames.transfer(0, MESSAGE[:4], more=True), frames.transfer(0, MESSAGE[4:]))
        assert peer.outcomes(1) == {0: "rejected:amqp:not-implemented"}
        assert peer.detached(0) == "amqp:not-implemented"


def test_P_A1_a_settled_one_in_several_frames_ends_the_link_as_documented(
    documented: GatewayProcess, node: str
) -> None:
    with Peer(documented.port) as peer:
        peer.publisher(node, mode=1)
        peer.send(
            frames.transfer(0, MESSAGE[:4], settled=True, more=True), frames.transfer(0, MESSAGE[4:], settled=True)
        )
        assert peer.detached(0) == "amqp:not-implemented"


def test_an_aborted_message_never_was(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.send(frames.transfer(0, MESSAGE[:4], more=True), frames.aborted(), frames.transfer(1, MESSAGE))
        assert peer.outcomes(1) == {1: "accepted"}
        assert drained(peer, node, 1) == [MESSAGE]


@pytest.mark.requirement("U-2")
def test_U_2_more_than_the_credit_ends_the_link(small: GatewayProcess, node: str) -> None:
    with Peer(small.port) as peer:
        assert peer.publisher(node) == 5
        peer.publisher(node, handle=1)
        peer.publish(*[MESSAGE] * 6)
        assert peer.detached(0) == "amqp:link:transfer-limit-exceeded"
        peer.publish(MESSAGE, handle=1)
        assert peer.outcomes(1) == {6: "accepted"}


@pytest.mark.requirement("U-1")
def test_U_1_credit_comes_again_for_what_is_completed(small: GatewayProcess, node: str) -> None:
    with Peer(small.port) as peer:
        peer.publisher(node)
        for _ in range(20):
            peer.publish(*[MESSAGE] * 3)
            assert set(peer.outcomes(3).values()) == {"accepted"}
        assert len(drained(peer, node, 60)) == 60


@pytest.mark.requirement("N-1")
def test_N_1_order_is_kept(gateway: GatewayProcess, node: str) -> None:
    sent = [frames.message(b"%d" % number) for number in range(1_000)]
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(*sent)
        assert set(peer.outcomes(1_000).values()) == {"accepted"}
        assert drained(peer, node, 1_000) == sent


def test_P_R2b_a_full_node_refuses_and_the_link_goes_on(either: GatewayProcess, node: str) -> None:
    either.command("node", "create", node, "--capacity-events", "3", "--honour-capacity", "true")
    with Peer(either.port) as peer:
        peer.publisher(node)
        first = peer.publish(*[MESSAGE] * 5)
        full = "rejected:amqp:resource-limit-exceeded"
        assert peer.outcomes(5) == dict(zip(first, ["accepted"] * 3 + [full] * 2, strict=True))
        peer.consumer(node, credit=1, handle=7, name="one")
        (seen,) = peer.receive(1, 7)
        peer.settle([seen.field(1)], frames.state("accepted"), settled=False)
        peer.outcomes(1)
        second = peer.publish(MESSAGE, MESSAGE)
        assert peer.outcomes(2) == dict(zip(second, ["accepted", full], strict=True))
        peer.publish(MESSAGE, settled=True)
        peer.nothing()
