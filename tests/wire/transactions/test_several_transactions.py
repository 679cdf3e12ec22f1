"""Several transactions on one session: in `extended` only (2.W-20; T-C4)."""

from __future__ import annotations

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.transacting import Transacting

ONE = frames.message(b"one")


@pytest.mark.requirement("W-20")
def test_W_20_a_session_has_one_transaction_in_the_documented_profiles(documented: GatewayProcess) -> None:
    with Transacting(documented.port) as peer:
        transaction = peer.begun()
        peer.send(frames.declare(peer.number()))
        assert list(peer.dispositions(1).values()) == [("rejected:amqp:not-allowed", True)]
        assert peer.discharge(transaction) == "accepted"


@pytest.mark.requirement("W-20")
def test_W_20_a_session_may_have_several_transactions(gateway: GatewayProcess, node: str) -> None:
    """Each has its own messages and outcomes, and its own discharge, in any order."""
    with Transacting(gateway.port) as peer:
        _several(peer, node)


def _several(peer: Transacting, node: str) -> None:
    peer.stored(node, ONE, ONE)
    peer.publisher(node)
    first, second = peer.begun(), peer.declare()
    assert first != second
    peer.consumer(node, credit=2)
    given = [event.field(1) for event in peer.receive(2)]
    for transaction, number in zip((first, second), given, strict=True):
        peer.retire(transaction, number)
        peer.promised(*peer.post(transaction, ONE, ONE))
    assert peer.discharge(second, fail=True) == "accepted"
    third = peer.declare()
    assert peer.discharge(first) == "accepted"
    assert peer.dispositions(1) == {given[0]: ("accepted", True)}
    assert peer.discharge(third) == "accepted"
    peer.send(frames.discharge(peer.number(), second))
    assert list(peer.dispositions(1).values()) == [("rejected:amqp:transaction:unknown-id", True)]
    peer.leave()
    assert len(peer.there(node, 3)) == 3, "what the second had retired, and the two that the first has published"
