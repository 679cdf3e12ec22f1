"""Transactions that peers handle in their own ways: outcomes in any order, an end before the answer, much at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import CONTROL, Transacting
from transformers.codec import Described, UByte, UInt, ULong

ONE = frames.message(b"one")
ACCEPTED = frames.state("accepted")


@pytest.fixture
def peer(gateway: GatewayProcess) -> Iterator[Transacting]:
    with Transacting(gateway.port) as made:
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
        assert peer.dispositions(len(named)) == dict.fromkeys(named, ("accepted", True))
    rest = [number for number in range(6) if fail or number not in named]
    peer.settle(rest[::-1], ACCEPTED, settled=False)
    assert peer.dispositions(len(rest)) == dict.fromkeys(rest, ("accepted", True))
    peer.leave()
    with Peer(peer.port) as other:
        other.consumer(node, credit=5)
        other.nothing()


@pytest.mark.requirement("W-3")
def test_a_control_link_needs_no_source(peer: Transacting) -> None:
    fields = ["control", UInt(CONTROL), False, UByte(0), UByte(0), None, frames.COORDINATOR, None, None, UInt(0)]
    peer.send(frames.frame(frames.ATTACH, fields))
    assert peer.expect("attach").field(6).descriptor == 0x30
    peer.expect("flow")
    assert peer.discharge(peer.declare()) == "accepted"


@pytest.mark.requirement("W-15", "W-16")
def test_a_control_link_cannot_be_resumed(peer: Transacting, node: str) -> None:
    """Detached and attached again under its name it has no transaction, and nothing unsettled, any more."""
    peer.publisher(node)
    transaction = peer.begun()
    [posted] = peer.post(transaction, ONE)
    peer.promised(posted)
    peer.send(frames.detach(CONTROL, closed=False))
    peer.expect("detach")
    assert not peer.control().field(7)
    assert peer.discharge(transaction) == "rejected:amqp:transaction:unknown-id"


@pytest.mark.requirement("W-17")
def test_transfer_and_outcome_never_name_different_transactions(peer: Transacting, node: str) -> None:
    """What comes from us carries none, and what is said of a message names the one that it came under, also while
    another session has one."""
    peer.stored(node, ONE)
    peer.publisher(node)
    peer.consumer(node, credit=1)
    (given,) = peer.receive(1)
    assert given.field(7) is None
    first = peer.begun()
    peer.send(
        frames.begin(channel=1),
        frames.frame(
            frames.ATTACH,
            ["other", UInt(0), False, UByte(0), UByte(0), None, frames.COORDINATOR, None, None, UInt(0)],
            channel=1,
        ),
    )
    peer.expect("begin")
    peer.expect("attach")
    peer.send(frames.declare(0, 0, channel=1))
    second = peer.expect("disposition").field(4).value[0]
    [posted] = peer.post(first, ONE)
    frame = peer.expect("disposition")
    assert (frame.field(1), frame.field(4).value[0]) == (posted, first)
    peer.retire(second, given.field(1))  # of another session
    assert peer.detached(1) == "amqp:transaction:unknown-id"
    assert peer.discharge(first) == "accepted"
    peer.ended(posted)


@pytest.mark.requirement("W-4", "W-5")
@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_W_5_what_was_settled_inside_counts_when_its_link_has_gone(peer: Transacting, node: str, fail: bool) -> None:
    """Settled with a provisional outcome it is not stored yet; what becomes of it is the discharge's answer alone."""
    peer.publisher(node)
    transaction = peer.begun()
    posted = peer.post(transaction, ONE, ONE)
    peer.promised(*posted)
    peer.send(frames.detach(0))
    assert peer.detached(0) is None
    peer.there(node, 0)
    assert peer.discharge(transaction, fail=fail) == "accepted"
    peer.nothing()
    assert len(peer.there(node, 0 if fail else 2)) == (0 if fail else 2)


@pytest.mark.requirement("W-4")
def test_W_4_a_transaction_may_have_messages_of_each_way_to_settle(peer: Transacting, node: str) -> None:
    """By the sender when it is sent, by us at once, and by the publisher after the discharge."""
    peer.publisher(node)
    peer.publisher(f"{node}.second", handle=2, rcv=1)
    transaction = peer.begun()
    peer.post(transaction, ONE, settled=True)
    [first] = peer.post(transaction, ONE)
    peer.promised(first)
    [second] = peer.post(transaction, ONE, handle=2)
    assert peer.dispositions(1) == {second: ("transactional accepted", False)}
    assert peer.discharge(transaction) == "accepted"
    assert peer.dispositions(1) == {second: ("accepted", False)}
    peer.send(frames.disposition(second, second, ACCEPTED, sender=True))
    peer.nothing()
    assert len(peer.there(node, 2)) == 2
    assert len(peer.there(f"{node}.second", 1)) == 1


def test_a_peer_may_be_gone_before_its_discharge_is_answered(gateway: GatewayProcess, node: str) -> None:
    """What was committed is there; the answer finds no one."""
    for number in range(1, 11):
        with Transacting(gateway.port) as peer:
            peer.publisher(node)
            transaction = peer.begun()
            peer.post(transaction, ONE)
            peer.dispositions(1)
            peer.send(frames.discharge(peer.number(), transaction))
        with Peer(gateway.port) as witness:
            witness.consumer(node, credit=number)
            [event] = witness.receive(1)
            witness.settle([event.field(1)], ACCEPTED, settled=True)


def test_W_6_many_posted_at_once_are_what_one_after_another_is(peer: Transacting, node: str) -> None:
    """The gateway reads them as a run; settled ones and those of no transaction among them are told from the rest."""
    peer.publisher(node)
    transaction = peer.begun()
    bodies = [frames.message(b"%d" % at) for at in range(40)]
    state = frames.in_transaction(transaction)
    numbers = [peer.number() for _ in bodies]
    settled, outside = set(numbers[10:13]), set(numbers[20:30])
    peer.send(
        b"".join(
            frames.transfer(number, body, settled=number in settled, state=None if number in outside else state)
            for number, body in zip(numbers, bodies, strict=True)
        )
    )
    posted = [number for number in numbers if number not in settled | outside]
    seen = peer.until_told([*outside, *(posted if peer.settles else [])], max(outside))
    assert {number for number, word in seen.items() if word == "accepted"} == outside
    assert peer.discharge(transaction) == "accepted"
    there = [event.payload for event in peer.there(node, 40)]
    assert there == bodies[20:30] + bodies[:20] + bodies[30:]


@pytest.mark.requirement("W-12")
@pytest.mark.parametrize(
    "fields", [["true"], [UInt(1)], [[]], [False, None]], ids=["string", "uint", "list", "one-too-many"]
)
def test_a_discharge_with_an_invalid_field_is_no_commit(peer: Transacting, node: str, fields: list[Any]) -> None:
    """No one knows what it was to be: its transaction goes with the control link."""
    peer.publisher(node)
    transaction = peer.begun()
    peer.post(transaction, ONE)
    peer.dispositions(1)
    discharge = Described(ULong(0x32), [transaction, *fields])
    peer.send(frames.request(peer.number(), discharge))
    assert peer.until("detach").condition == "amqp:invalid-field"
    assert peer.there(node, 0) == []
