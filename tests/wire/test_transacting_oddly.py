"""Transactions that peers handle in ways of their own: outcomes in any order, an end before the answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway_process import GatewayProcess
from tests.wire import frames
from tests.wire.peer import Peer
from tests.wire.transacting import Transacting

ONE = frames.message(b"one")
ACCEPTED = frames.state("accepted")


@pytest.fixture
def peer(house: GatewayProcess) -> Iterator[Transacting]:
    with Transacting(house.port) as made:
        yield made


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_outcomes_in_a_transaction_may_come_in_any_order(peer: Transacting, node: str, fail: bool) -> None:
    peer.stored(node, *[ONE] * 6)
    peer.consumer(node, credit=10)
    peer.receive(6)
    transaction = peer.begun()
    named = (4, 1, 2, 5)
    peer.retire(transaction, *named)
    assert peer.discharge(transaction, fail=fail) == "accepted"
    if not fail:
        assert peer.told(len(named)) == dict.fromkeys(named, ("accepted", True))
    rest = [number for number in range(6) if fail or number not in named]
    peer.settle(rest[::-1], ACCEPTED, settled=False)
    assert peer.told(len(rest)) == dict.fromkeys(rest, ("accepted", True))
    peer.leave()
    with Peer(peer.port) as other:
        other.consumer(node, credit=5)
        other.nothing(0.1)


def test_a_peer_may_be_gone_before_its_discharge_is_answered(house: GatewayProcess, node: str) -> None:
    """What was committed is there; the answer finds nobody."""
    for number in range(1, 11):
        with Transacting(house.port) as peer:
            peer.publisher(node)
            transaction = peer.begun()
            peer.post(transaction, ONE)
            peer.told(1)
            peer.send(frames.discharge(peer.number(), transaction))
        with Peer(house.port) as witness:
            witness.consumer(node, credit=number)
            [event] = witness.receive(1)
            witness.settle([event.field(1)], ACCEPTED, settled=True)
