"""A publisher whose source does not list `rejected`, or `released`, is never told it: its link ends instead, with the
error and nothing else, and a transaction in which a message was refused can only be rolled back (3.5.3; D-2, I-7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from tests.kit.wire.transacting import Transacting
from transformers.codec import UInt

NO_MESSAGE = b""  # no section at all: it is refused with amqp:precondition-failed
ONE = frames.message()
ACCEPTED = ["accepted"]
REFUSED = "amqp:precondition-failed"
ROLLED_BACK = "rejected:amqp:transaction:rollback"


@pytest.fixture(params=["extended", "um-9.12"])
def either(request: pytest.FixtureRequest, gateway: GatewayProcess, documented: GatewayProcess) -> GatewayProcess:
    return gateway if request.param == "extended" else documented


@pytest.fixture
def peer(either: GatewayProcess, gateway: GatewayProcess) -> Iterator[Transacting]:
    with Transacting(either.port) as made:
        made.settles = either is gateway
        yield made


def publisher(peer: Peer, node: str | None, outcomes: list[str], rcv: int = 0) -> None:
    to = frames.target(node, capability="queue" if node else None)
    peer.send(frames.attach_sender(to, outcomes=outcomes, rcv=rcv))
    assert peer.expect("attach").field(6) is not None


def info(detached: Seen) -> dict[str, object]:
    """The info map of the error in a detach."""
    error = detached.field(2)
    return {str(key): value for key, value in (error.value[2].pairs if len(error.value) > 2 else [])}


@pytest.mark.requirement("I-7", "D-2")
def test_a_refused_message_ends_its_link_and_has_no_outcome(peer: Transacting, node: str) -> None:
    publisher(peer, node, ACCEPTED)
    [kept] = peer.publish(ONE)
    assert peer.outcomes(1) == {kept: "accepted"}
    peer.publish(NO_MESSAGE)
    assert peer.detached() == REFUSED
    peer.send(frames.detach(0))
    peer.nothing()
    assert len(peer.there(node, 1)) == 1


@pytest.mark.requirement("I-7", "D-2")
@pytest.mark.parametrize("outcomes", [None, ["accepted", "rejected"]], ids=["none-named", "rejected-named"])
def test_a_listed_outcome_is_sent(peer: Transacting, node: str, outcomes: list[str] | None) -> None:
    peer.send(frames.attach_sender(frames.target(node, capability="queue"), outcomes=outcomes))
    assert peer.expect("attach").field(6) is not None
    [number] = peer.publish(NO_MESSAGE)
    assert peer.outcomes(1) == {number: f"rejected:{REFUSED}"}


@pytest.mark.requirement("I-7", "W-5")
def test_in_a_transaction_the_discharge_fails_too(peer: Transacting, node: str) -> None:
    publisher(peer, node, ACCEPTED)
    transaction = peer.begun()
    [kept] = peer.post(transaction, ONE)
    peer.promised(kept)
    peer.post(transaction, NO_MESSAGE)
    assert peer.detached() == REFUSED
    assert peer.discharge(transaction) == ROLLED_BACK
    peer.there(node, 0)


def test_the_relay_does_as_well(gateway: GatewayProcess, node: str) -> None:
    """There is no such node; the DETACH names the message."""
    with Peer(gateway.port) as peer:
        peer.stored(node, ONE)
        publisher(peer, None, ACCEPTED)
        [first] = peer.publish(frames.message_to(node))
        assert peer.outcomes(1) == {first: "accepted"}
        peer.publish(frames.message_to(f"no-such-{node}"))
        detached = peer.expect("detach")
        assert detached.condition == "amqp:not-found"
        assert info(detached)["delivery-tag"] == b"1"
        assert len(peer.there(node, 2)) == 2


def test_the_relay_does_so_in_a_transaction(gateway: GatewayProcess, node: str) -> None:
    """What was posted beside it is rolled back with it."""
    with Transacting(gateway.port) as peer:
        peer.stored(node, ONE)
        publisher(peer, None, ACCEPTED)
        transaction = peer.begun()
        [kept] = peer.post(transaction, frames.message_to(node))
        peer.promised(kept)
        peer.post(transaction, frames.message_to(f"no-such-{node}"))
        detached = peer.expect("detach")
        assert detached.condition == "amqp:not-found"
        assert info(detached)["rule"] == "posted.not-found-unlisted-ends-the-link"
        assert peer.discharge(transaction) == ROLLED_BACK
        assert len(peer.there(node, 1)) == 1


def test_what_is_rolled_back_is_settled_without_an_outcome(peer: Transacting, node: str) -> None:
    """Where its publisher settles first, it hears of it after the discharge."""
    publisher(peer, node, ["accepted", "rejected"], rcv=1)
    transaction = peer.begun()
    [posted] = peer.post(transaction, ONE)
    assert peer.dispositions(1) == {posted: ("transactional accepted", False)}
    assert peer.discharge(transaction, fail=True) == "accepted"
    for seen in [frame for frame in peer.seen if frame.name == "disposition"]:
        assert seen.state is None, seen
    peer.there(node, 0)


# -- errors of the relay name the message (anonymous terminus for message routing 1.0, 2.2.2)


def told_of(peer: Peer, count: int) -> dict[int, dict[str, object]]:
    """The info map of the error of each rejected delivery; inside a transactional state as well."""
    errors: dict[int, dict[str, object]] = {}
    while len(errors) < count:
        seen = peer.expect("disposition")
        last = seen.field(1) if seen.field(2) is None else seen.field(2)
        assert last == seen.field(1), "one error for each delivery"
        state = seen.field(4)
        outcome = state.value[1] if state.descriptor == 0x34 else state
        errors[last] = {str(key): value for key, value in outcome.value[0].value[2].pairs}
    return errors


def test_D5_every_error_of_the_relay_names_its_message(gateway: GatewayProcess, node: str) -> None:
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        peer.send(frames.attach_sender(frames.target(None), handle=2, name="relay"))
        peer.expect("attach")
        nowhere = frames.message_to(f"no-such-{node}")
        numbers = peer.publish(nowhere, nowhere, nowhere, handle=2)
        errors = told_of(peer, 3)
        assert {number: info["delivery-tag"] for number, info in errors.items()} == {n: b"%d" % n for n in numbers}
        assert all(info["rule"] for info in errors.values())
        transaction = peer.begun()
        numbers = peer.post(transaction, nowhere, nowhere, handle=2)
        errors = told_of(peer, 2)
        assert {number: info["delivery-tag"] for number, info in errors.items()} == {n: b"%d" % n for n in numbers}


LARGE = frames.message(b"x" * 6000)  # the gateway takes 5,000
ENDS_THE_RELAY = {
    "annotation": (frames.annotated({"unknown": 1}), "amqp:not-implemented"),
    "size": (LARGE, "amqp:link:message-size-exceeded"),
    "in-parts": (LARGE, "amqp:link:message-size-exceeded"),
    "contradicting": (LARGE, "amqp:invalid-field"),
}


@pytest.mark.parametrize("what", ENDS_THE_RELAY)
@pytest.mark.parametrize("to", ["relay", "node"])
def test_D5_a_fault_in_a_message_names_it_at_the_relay_only(what: str, to: str) -> None:
    """It ends the link; what is in front of it is not meant."""
    tables, limits = load_tables(), {"message_size_bytes": 5000, "frame_size_bytes": 8000}
    peer = Conversation(build_gateway(tables, ScriptedRealm(), **limits))
    peer.say(frames.attach_sender(frames.target("q" if to == "node" else None)))
    message, condition = ENDS_THE_RELAY[what]
    pieces = [frames.transfer(1, message)]
    if what in ("in-parts", "contradicting"):
        later = [UInt(0), UInt(9) if what == "contradicting" else None]
        pieces = [frames.transfer(1, message[:3000], more=True), frames.frame(frames.TRANSFER, later, message[3000:])]
    reply = peer.say(frames.transfer(0, frames.message_to("q")), *pieces)
    [detached] = [seen for seen in reply if seen.name == "detach"]
    assert detached.condition == condition
    assert info(detached) == ({"delivery-tag": b"1"} if to == "relay" else {})


def test_a_link_with_a_target_names_no_message(gateway: GatewayProcess, node: str) -> None:
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        [number] = peer.publish(NO_MESSAGE)
        assert "delivery-tag" not in told_of(peer, 1)[number]


def test_a_settled_message_that_is_refused_in_a_transaction_fails_the_discharge_only(
    gateway: GatewayProcess, node: str
) -> None:
    """The relay has no node for it. The link goes on; the discharge tells."""
    with Transacting(gateway.port) as peer:
        peer.stored(node, ONE)
        peer.send(frames.attach_sender(frames.target(None), handle=2, name="relay"))
        peer.expect("attach")
        transaction = peer.begun()
        peer.post(transaction, frames.message_to(f"no-such-{node}"), handle=2, settled=True)
        assert peer.discharge(transaction) == ROLLED_BACK
        [number] = peer.publish(frames.message_to(node), handle=2)
        assert peer.outcomes(1) == {number: "accepted"}
