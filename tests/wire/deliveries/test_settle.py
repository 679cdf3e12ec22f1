"""Consuming: rows S-A1 to S-A7, S-REL and S-MOD, counts and first-acquirer on redelivery, credit and drain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen, count_and_first, without_header
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Symbol, UInt, ULong

FRESH = frames.message(b"event", frames.header(first=True))
DURABLE = 2


def source_of(kind: str, node: str, **more: Any) -> Described:
    return frames.source(node, DURABLE if kind == "durable" else 0, **more)


def channel_or_queue(kind: str) -> str:
    return "queue" if kind == "queue" else "channel"


def given(
    gateway: GatewayProcess, peer: Peer, kind: str, node: str, count: int = 1, rcv: int = 0, **more: Any
) -> list[Seen]:
    """Events of a new node, delivered to `peer`."""
    with Peer(gateway.port) as other:
        other.publisher(node, channel_or_queue(kind))
    peer.consumer(source_of(kind, node, **more), credit=count, rcv=rcv)
    peer.nothing()  # the subscription is there, and nothing is
    peer.stored(node, *[FRESH] * count, kind=channel_or_queue(kind))
    return peer.receive(count)


def left(gateway: GatewayProcess, peer: Peer, kind: str, node: str, expected: int) -> list[Seen]:
    """What is given out again once `peer` has detached: exactly so many."""
    peer.send(frames.detach(1, closed=False))
    peer.expect("detach")
    with Peer(gateway.port, peer.container) as other:
        other.consumer(source_of(kind, node), credit=expected + 1)
        got = other.receive(expected)
        other.nothing()
        other.settle([seen.field(1) for seen in got], frames.state("accepted"))
        return got


@pytest.mark.requirement("G-2", "H-4", "H-13", "R-6", "X-2", "X-3")
@pytest.mark.parametrize("rcv", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("kind", ["queue", "plain", "durable"])
def test_S_A4_S_A5_S_A6_S_A7_accepted_is_confirmed_and_done(
    gateway: GatewayProcess, node: str, kind: str, rcv: int
) -> None:
    """X-3: accepted and not settled; the gateway settles once the realm has it."""
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, kind, node, rcv=rcv)
        peer.settle([seen.field(1)], frames.state("accepted"), settled=False)
        assert peer.outcomes(1) == {0: "accepted"}
        left(gateway, peer, kind, node, 0)


@pytest.mark.parametrize("kind", ["queue", "plain", "durable"])
def test_S_A2_what_the_consumer_has_settled_is_not_answered(gateway: GatewayProcess, node: str, kind: str) -> None:
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, kind, node)
        peer.settle([seen.field(1)], frames.state("accepted"))
        peer.settle([seen.field(1)], frames.state("released"))  # too late: no one knows the delivery any more
        peer.nothing()
        left(gateway, peer, kind, node, 0)


DEFAULTS = {
    "none": (None, None),
    "accepted": (frames.state("accepted"), None),
    "rejected": (frames.state("rejected"), None),
    "released": (frames.state("released"), (0, False)),
    "modified": (frames.state("modified", False, False), (0, False)),
    "modified-failed": (frames.state("modified", True, False), (1, False)),
}


@pytest.mark.requirement("I-2", "S-1", "X-4")
@pytest.mark.parametrize("default", DEFAULTS)
def test_S_A1_I_2_settled_without_a_state_is_the_default_outcome(
    gateway: GatewayProcess, node: str, default: str
) -> None:
    outcome, again = DEFAULTS[default]
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, "queue", node, default=outcome)
        peer.settle([seen.field(1)], None)
        got = left(gateway, peer, "queue", node, 0 if again is None else 1)
        assert [count_and_first(event) for event in got] == ([] if again is None else [again])


@pytest.mark.requirement("G-3", "S-1")
@pytest.mark.parametrize("default", [name for name in DEFAULTS if name != "none"])
def test_G_3_what_a_lost_link_leaves_is_the_default_outcome(gateway: GatewayProcess, node: str, default: str) -> None:
    """Rule `default.lost-in-order-is-not-counted`: a link that leaves in order has not failed."""
    outcome, again = DEFAULTS[default]
    with Peer(gateway.port) as peer:
        given(gateway, peer, "queue", node, default=outcome)
        got = left(gateway, peer, "queue", node, 0 if again is None else 1)
        assert [count_and_first(event) for event in got] == ([] if again is None else [(0, False)])


AGAIN = {
    "released": (frames.state("released"), (0, False)),
    "modified": (frames.state("modified", False, False), (0, False)),
    "modified-failed": (frames.state("modified", True, False), (1, False)),
}


@pytest.mark.requirement("F-1", "F-2", "G-2", "H-7", "H-11", "H-13")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("state", AGAIN)
@pytest.mark.parametrize("kind", ["queue", "durable"])
def test_F_1_F_2_H_7_H_11_given_out_again_with_counts(
    gateway: GatewayProcess, node: str, kind: str, state: str, settled: bool
) -> None:
    outcome, again = AGAIN[state]
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, kind, node)
        assert count_and_first(seen) == (0, True)
        peer.settle([seen.field(1)], outcome, settled)
        if not settled:
            assert peer.outcomes(1) == {0: state.partition("-")[0]}
        peer.credit(1)
        (seen,) = peer.receive(1)
        assert count_and_first(seen) == again
        peer.settle([seen.field(1)], frames.state("modified", True, False))
        (seen,) = left(gateway, peer, kind, node, 1)
        assert count_and_first(seen) == (again[0] + 1, False)


@pytest.mark.requirement("H-12")
def test_H_12_undeliverable_here_goes_to_another_link_only(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, "queue", node)
        peer.settle([seen.field(1)], frames.state("modified", True, True), settled=False)
        assert peer.outcomes(1) == {0: "modified"}
        peer.credit(1)
        peer.nothing()
        with Peer(gateway.port) as other:
            other.consumer(node, credit=1)
            assert count_and_first(other.receive(1)[0]) == (1, False)


@pytest.mark.requirement("H-14")
def test_H_14_a_durable_has_no_other_consumer_so_undeliverable_is_the_end(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, "durable", node)
        peer.settle([seen.field(1)], frames.state("modified", False, True), settled=False)
        assert peer.outcomes(1) == {0: "modified"}
        left(gateway, peer, "durable", node, 0)


@pytest.mark.requirement("H-5", "H-13")
@pytest.mark.parametrize("kind", ["queue", "durable", "plain"])
def test_H_5_rejected_is_the_end(gateway: GatewayProcess, node: str, kind: str) -> None:
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, kind, node)
        peer.settle([seen.field(1)], frames.state("rejected"), settled=False)
        assert peer.outcomes(1) == {0: "rejected"}
        left(gateway, peer, kind, node, 0)


@pytest.mark.requirement("H-3")
def test_H_3_received_is_no_outcome(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        (seen,) = given(gateway, peer, "queue", node)
        peer.settle([seen.field(1)], frames.state("received", UInt(0), ULong(0)), settled=False)
        peer.nothing()
        peer.settle([seen.field(1)], frames.state("accepted"), settled=False)
        assert peer.outcomes(1) == {0: "accepted"}


@pytest.mark.requirement("I-7")
def test_I_7_an_outcome_that_was_not_agreed_on_ends_the_link(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        given(gateway, peer, "queue", node, 2, outcomes=["accepted"])
        peer.settle([0], frames.state("accepted"), settled=False)
        assert peer.outcomes(1) == {0: "accepted"}
        peer.settle([1], frames.state("rejected"), settled=False)
        assert peer.detached(1) == "amqp:not-allowed"
        with Peer(gateway.port) as other:
            other.consumer(node, credit=2)
            assert len(other.receive(1)) == 1  # the one that it had no word for
            other.nothing()


@pytest.mark.requirement("W-18")
@pytest.mark.parametrize(
    ("state", "condition"),
    [
        (Described(ULong(0x34), [b"txn", frames.state("accepted")]), "amqp:transaction:unknown-id"),
        (Described(ULong(0x77), []), "amqp:not-implemented"),
    ],
    ids=["W-18-transactional", "unknown"],
)
def test_a_state_that_cannot_be_carried_out_ends_the_link_and_loses_nothing(
    gateway: GatewayProcess, node: str, state: Described, condition: str
) -> None:
    with Peer(gateway.port) as peer:
        given(gateway, peer, "queue", node)
        peer.settle([0], state, settled=False)
        assert peer.detached(1) == condition
        with Peer(gateway.port) as other:
            other.consumer(node, credit=1)
            assert other.receive(1)


@pytest.mark.requirement("W-11")
def test_W_11_acquiring_under_a_transaction_ends_the_link(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, FRESH)
        peer.consumer(node)
        peer.send(frames.flow(1, 1, properties=AmqpMap([(Symbol("txn-id"), b"txn")])))
        assert peer.detached(1) == "amqp:not-implemented"


@pytest.mark.requirement("R-5", "X-1")
@pytest.mark.parametrize("kind", ["queue", "plain", "durable"])
def test_X_1_R_5_sent_settled_is_done_when_it_is_sent(gateway: GatewayProcess, node: str, kind: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, channel_or_queue(kind))
        peer.consumer(source_of(kind, node), credit=3, mode=1)
        peer.nothing()
        peer.stored(node, *[FRESH] * 3, kind=channel_or_queue(kind))
        assert [seen.field(4) for seen in peer.receive(3)] == [True] * 3
        peer.settle([0, 1], frames.state("released"))  # no one listens
        peer.nothing()
        left(gateway, peer, kind, node, 0)


@pytest.mark.requirement("G-1", "K-4")
def test_G_1_K_4_competing_consumers_share_a_queue(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as first, Peer(gateway.port) as two:
        first.publisher(node)
        first.consumer(node, credit=10)
        two.consumer(node, credit=10)
        first.stored(node, *[frames.message(b"%d" % number) for number in range(20)])
        got = [{seen.payload for seen in peer.receive(10)} for peer in (first, two)]
        assert not got[0] & got[1]
        assert len(got[0] | got[1]) == 20
        first.nothing()
        two.nothing()
        first.close()
        two.credit(10)
        assert {without_header(seen.payload) for seen in two.receive(10)} == got[0]


@pytest.mark.requirement("K-4")
def test_K_4_every_subscriber_of_a_channel_gets_a_copy(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as first, Peer(gateway.port) as two:
        first.publisher(node, "channel")
        first.stored(node, frames.message(b"before"), kind="channel")
        first.consumer(node, credit=10)
        two.consumer(frames.source(node, DURABLE), credit=10)
        first.nothing()
        two.nothing()
        first.stored(node, *[frames.message(b"%d" % number) for number in range(5)], kind="channel")
        got = [[seen.payload for seen in peer.receive(5)] for peer in (first, two)]
        assert got[0] == got[1] == [frames.message(b"%d" % number) for number in range(5)]


@pytest.mark.requirement("U-3")
def test_U_3_never_more_than_the_credit(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, *[FRESH] * 30)
        peer.consumer(node)
        for credit in (3, 1, 7, 0, 2):
            peer.credit(credit)
            peer.receive(credit)
            peer.nothing()


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_sends_what_is_there_and_uses_the_credit_up(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, *[FRESH] * 3)
        peer.consumer(node)
        for there in (3, 0):
            peer.credit(10, drain=True)
            peer.receive(there)
            flow = peer.expect("flow")
            assert (flow.field(6), flow.field(8)) == (0, True)
            delivered = flow.field(5)
            peer.delivered[1] = delivered
        peer.stored(node, FRESH)
        peer.nothing()  # the credit is gone
        peer.credit(1)
        peer.receive(1)


@pytest.mark.requirement("Q-1")
def test_dispositions_in_ranges_and_out_of_order(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        got = given(gateway, peer, "queue", node, 10)
        assert [seen.field(1) for seen in got] == list(range(10))
        peer.send(
            frames.disposition(6, 8, frames.state("accepted"), settled=False),
            frames.disposition(0, 2, frames.state("accepted")),
            frames.disposition(9, 9, frames.state("released"), settled=False),
        )
        assert peer.outcomes(4) == {6: "accepted", 7: "accepted", 8: "accepted", 9: "released"}
        peer.send(frames.disposition(3, 5, frames.state("accepted"), settled=False))
        assert peer.outcomes(3) == dict.fromkeys((3, 4, 5), "accepted")
        assert len(left(gateway, peer, "queue", node, 1)) == 1
