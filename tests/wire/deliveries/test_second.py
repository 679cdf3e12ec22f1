"""Publishers that settle first: rcv-settle-mode second, the three steps of exactly once (X-3)."""

from __future__ import annotations

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting

MESSAGE = frames.message()
SECOND = 1
ACCEPTED = frames.state("accepted")


def settle(peer: Peer, numbers: list[int]) -> None:
    peer.send(frames.disposition(numbers[0], numbers[-1], ACCEPTED, sender=True))


@pytest.mark.requirement("X-3")
@pytest.mark.parametrize("count", [1, 3, 50])
def test_X_3_an_outcome_is_settled_when_its_publisher_has_settled(
    gateway: GatewayProcess, documented: GatewayProcess, node: str, count: int
) -> None:
    """One by one, and in runs."""
    for server in (gateway, documented):
        with Peer(server.port) as peer:
            peer.publisher(node, mode=0, rcv=SECOND)
            numbers = peer.publish(*[MESSAGE] * count)
            assert peer.dispositions(count) == dict.fromkeys(numbers, ("accepted", False))
            peer.nothing()
            settle(peer, numbers)
            peer.nothing()
            numbers = peer.publish(MESSAGE, b"", MESSAGE)
            rejected = "rejected:amqp:precondition-failed"
            assert peer.dispositions(3) == {
                numbers[0]: ("accepted", False),
                numbers[1]: (rejected, False),
                numbers[2]: ("accepted", False),
            }
            settle(peer, numbers)
            assert len(peer.there(node, count + 2)) == count + 2


@pytest.mark.requirement("X-3")
def test_who_never_settles_is_given_no_more_credit_and_who_does_goes_on(small: GatewayProcess, node: str) -> None:
    with Peer(small.port) as peer:
        credit = peer.publisher(node, mode=0, rcv=SECOND)
        numbers = peer.publish(*[MESSAGE] * credit)
        assert peer.dispositions(credit) == dict.fromkeys(numbers, ("accepted", False))
        peer.nothing()
        assert not peer.seen, "no credit"
        for _ in range(20):
            settle(peer, numbers)
            assert int(peer.expect("flow").field(6)) == credit
            numbers = peer.publish(*[MESSAGE] * credit)
            assert peer.dispositions(credit) == dict.fromkeys(numbers, ("accepted", False))


def test_a_publisher_may_settle_before_it_has_heard_the_outcome(gateway: GatewayProcess, node: str) -> None:
    """Nothing is said of it any more; what comes settled is not answered either."""
    with Peer(gateway.port) as peer:
        peer.publisher(node, mode=2, rcv=SECOND)
        peer.send(frames.transfer(0, MESSAGE), frames.disposition(0, 0, None, sender=True))
        peer.send(frames.transfer(1, MESSAGE, settled=True), frames.transfer(2, MESSAGE))
        assert peer.dispositions(1) == {2: ("accepted", False)}
        settle(peer, [2])
        peer.nothing()
        assert len(peer.there(node, 3)) == 3


def test_one_transfer_may_ask_for_the_receiver_to_settle_first_but_not_the_other_way_round(
    gateway: GatewayProcess, node: str
) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, rcv=SECOND)
        peer.send(frames.transfer(0, MESSAGE, rcv=0), frames.transfer(1, MESSAGE, rcv=SECOND))
        assert peer.dispositions(2) == {0: ("accepted", True), 1: ("accepted", False)}
        peer.publisher(node, handle=1)
        peer.send(frames.transfer(2, MESSAGE, 1))
        assert peer.dispositions(1) == {2: ("accepted", True)}
        peer.send(frames.transfer(3, MESSAGE, 1, rcv=SECOND))
        assert peer.detached(1) == "amqp:invalid-field"


@pytest.mark.requirement("X-3")
def test_a_relay_settles_second_too_and_its_links_share_the_credit(small: GatewayProcess, node: str) -> None:
    with Peer(small.port) as peer, Peer(small.port) as maker:
        maker.publisher(f"{node}.one")
        peer.send(frames.attach_sender(None, rcv=SECOND))
        assert peer.expect("attach").field(4) == SECOND
        credit = int(peer.expect("flow").field(6))
        addresses = [f"{node}.one", "missing"]
        messages = [frames.message_to(addresses[number % 2]) for number in range(credit)]
        numbers = peer.publish(*messages)
        outcomes = peer.dispositions(credit)
        assert {settled for _, settled in outcomes.values()} == {False}
        assert [outcomes[number][0] for number in numbers[:2]] == ["accepted", "rejected:amqp:not-found"]
        settle(peer, numbers)
        assert int(peer.expect("flow").field(6)) == credit


@pytest.mark.requirement("X-3", "W-4")
def test_what_is_posted_is_settled_by_its_publisher_when_it_has_been_discharged(
    gateway: GatewayProcess, node: str
) -> None:
    with Transacting(gateway.port) as peer:
        assert peer.control().field(4) == 0, "a coordinator settles by itself"
        peer.publisher(node, rcv=SECOND)
        transaction = peer.declare()
        numbers = peer.post(transaction, MESSAGE, b"", MESSAGE)
        states = dict(zip(numbers, ("accepted", "rejected:amqp:precondition-failed", "accepted"), strict=True))
        assert peer.dispositions(3) == {number: (f"transactional {state}", False) for number, state in states.items()}
        last = peer.number()
        peer.send(frames.discharge(last, transaction))
        assert peer.dispositions(4) == {
            last: ("accepted", True),
            **{number: (state, False) for number, state in states.items()},
        }
        settle(peer, numbers)
        assert len(peer.there(node, 2)) == 2
