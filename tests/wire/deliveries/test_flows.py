"""Flows that ask for an answer: `echo`, and drains whatever credit they come with."""

from __future__ import annotations

import pytest

from gateway.session.gateway import Gateway
from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from transformers.codec import AmqpMap, Array, Symbol, UInt

ONE, TWO = frames.message(b"one"), frames.message(b"two")
MIB = 1 << 20
NEXT_IN, NEXT_OUT, HANDLE, COUNT, CREDIT, DRAIN = 0, 2, 4, 5, 6, 8


def flow_of(peer: Peer) -> Seen:
    """The next flow; nothing else comes before."""
    (seen,) = peer.frames(1)
    assert seen.name == "flow", seen
    return seen


def flow_state(flow: Seen) -> tuple[object, ...]:
    """Handle, delivery-count, link-credit, drain."""
    return (*(flow.field(at) or 0 for at in (HANDLE, COUNT, CREDIT)), flow.field(DRAIN) is True)


@pytest.mark.requirement("U-5")
def test_U_5_an_echo_is_answered_with_where_the_link_that_sends_stands(gateway: GatewayProcess, node: str) -> None:
    """And the session's numbers are those that its transfers count on."""
    with Peer(gateway.port) as peer:
        peer.stored(node, ONE)
        peer.publisher(node, handle=3)
        attached = peer.consumer(node)
        peer.send(frames.flow(1, 0, echo=True))
        first = flow_of(peer)
        assert flow_state(first) == (attached.field(1), 0, 0, False)
        peer.credit(3)
        peer.receive(1)
        peer.send(frames.flow(1, 2, 1, echo=True))
        second = flow_of(peer)
        assert flow_state(second) == (attached.field(1), 1, 2, False)
        assert second.field(NEXT_OUT) == first.field(NEXT_OUT) + 1
        peer.publish(TWO, handle=3)
        assert set(peer.outcomes(1).values()) == {"accepted"}
        peer.receive(1)
        peer.send(frames.flow(1, 1, 2, echo=True))
        third = flow_of(peer)
        assert flow_state(third) == (attached.field(1), 2, 1, False)
        assert third.field(NEXT_OUT) == first.field(NEXT_OUT) + 2
        assert third.field(NEXT_IN) == first.field(NEXT_IN) + 1


@pytest.mark.requirement("U-5")
def test_U_5_an_echo_is_answered_with_where_the_link_that_receives_stands(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        credit = peer.publisher(node)
        peer.publish(ONE, TWO)
        assert set(peer.outcomes(2).values()) == {"accepted"}
        peer.send(frames.flow(0, credit - 2, 2, echo=True))
        flow = flow_of(peer)
        assert flow_state(flow) == (peer.gateway_handles[0], 2, credit - 2, False)
        assert flow.field(NEXT_IN) == 2
        peer.publish(ONE)
        assert set(peer.outcomes(1).values()) == {"accepted"}


@pytest.mark.requirement("U-5")
def test_U_5_an_echo_of_a_session_is_answered_for_the_session(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(ONE)
        assert set(peer.outcomes(1).values()) == {"accepted"}
        peer.send(frames.session_window(0, 1_000_000, echo=True))
        flow = flow_of(peer)
        assert (flow.field(NEXT_IN), flow.field(HANDLE), flow.field(CREDIT)) == (1, None, None)
        peer.send(frames.session_window(0, 1_000_000))
        peer.publish(ONE)
        assert set(peer.outcomes(1).values()) == {"accepted"}
        assert "flow" not in [seen.name for seen in peer.seen], "only what asks is answered"


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_that_takes_the_credit_away_is_answered(gateway: GatewayProcess, node: str) -> None:
    """go-amqp's DrainCredit; the link goes on."""
    with Peer(gateway.port) as peer:
        attached = peer.consumer(node, credit=5)
        for _ in range(2):
            peer.credit(0, drain=True)
            assert flow_state(flow_of(peer)) == (attached.field(1), 0, 0, True)
        peer.stored(node, ONE, TWO)
        peer.nothing()
        peer.credit(1)
        assert [seen.payload for seen in peer.receive(1)] == [ONE]
        peer.credit(0, drain=True)
        assert flow_state(flow_of(peer)) == (attached.field(1), 1, 0, True)
        peer.credit(3, drain=True)
        assert [seen.payload for seen in peer.receive(1)] == [TWO]
        assert flow_state(flow_of(peer)) == (attached.field(1), 4, 0, True)
        peer.delivered[1] = 4
        peer.credit(0, drain=True)
        assert flow_state(flow_of(peer)) == (attached.field(1), 4, 0, True)


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_is_answered_though_events_take_all_of_the_credit(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, ONE, TWO)
        attached = peer.consumer(node)
        peer.credit(2, drain=True)
        assert [seen.payload for seen in peer.receive(2)] == [ONE, TWO]
        assert flow_state(flow_of(peer)) == (attached.field(1), 2, 0, True)
        peer.nothing()
        assert not peer.seen, "once"


@pytest.mark.requirement("U-4", "U-5")
def test_what_is_asked_together_with_the_attach_is_answered_behind_its_answer(
    gateway: GatewayProcess, node: str
) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, ONE)
        peer.send(frames.attach_receiver(node), frames.flow(1, 0, drain=True))
        attached = peer.frames(1)[0]
        assert flow_state(flow_of(peer)) == (attached.field(1), 0, 0, True)
        peer.send(frames.attach_receiver(node, 2, "other"), frames.flow(2, 0, echo=True), frames.detach(2))
        names = [seen.name for seen in peer.frames(2)]
        assert names[0] == "attach" and "detach" in (names[1], *(seen.name for seen in peer.seen))


@pytest.mark.requirement("U-4")
def test_U_4_where_the_session_has_no_room_a_drain_is_answered_behind_what_it_waits_for(
    gateway: GatewayProcess, node: str
) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, ONE, TWO)
        attached = peer.consumer(node)
        peer.send(frames.flow(1, 2, window=0))
        peer.nothing()
        peer.send(frames.flow(1, 2, drain=True, window=0))
        peer.nothing()
        assert not peer.seen, "both events are on their way"
        peer.send(frames.session_window(0, 10))
        assert [seen.payload for seen in peer.receive(2)] == [ONE, TWO]
        assert flow_state(flow_of(peer)) == (attached.field(1), 2, 0, True)


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_waits_for_no_window_where_there_is_nothing_to_send(gateway: GatewayProcess, node: str) -> None:
    """Also beside a link that does, and where events were there before."""
    with Peer(gateway.port) as peer:
        peer.stored(node, ONE, TWO)
        empty = peer.consumer(f"{node}.empty", handle=2, name="empty")
        peer.send(frames.flow(2, 3, drain=True, window=0))
        assert flow_state(flow_of(peer)) == (empty.field(1), 3, 0, True)
        attached = peer.consumer(node)
        peer.send(frames.flow(1, 5, window=1))
        assert [seen.payload for seen in peer.receive(1)] == [ONE]
        peer.send(frames.flow(2, 3, 3, drain=True, window=1))
        assert flow_state(flow_of(peer)) == (empty.field(1), 6, 0, True)
        peer.send(frames.session_window(0, 2))
        assert [seen.payload for seen in peer.receive(1)] == [TWO]
        peer.send(frames.flow(1, 3, 2, drain=True, window=2))
        assert flow_state(flow_of(peer)) == (attached.field(1), 5, 0, True)


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_that_takes_the_credit_of_what_has_no_room_is_answered(gateway: GatewayProcess, node: str) -> None:
    """What waited for the session's window comes once there is credit and room again."""
    messages = [frames.message(b"%d" % number) for number in range(4)]
    with Peer(gateway.port) as peer:
        peer.stored(node, *messages)
        attached = peer.consumer(node)
        peer.send(frames.flow(1, 4, window=2))
        assert [seen.payload for seen in peer.receive(2)] == messages[:2]
        peer.send(frames.flow(1, 0, 2, drain=True, window=2))
        assert flow_state(flow_of(peer)) == (attached.field(1), 2, 0, True)
        peer.send(frames.flow(1, 2, 2, window=100))
        assert [seen.payload for seen in peer.receive(2)] == messages[2:]
        peer.nothing()


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_that_takes_the_credit_of_a_message_half_sent_is_answered() -> None:
    """It is not counted as delivered, and goes on with the next credit."""
    large = frames.message(bytes(2_000))
    gateway, peer = small_frames(large)
    sent = peer.say(frames.attach_receiver("q"), frames.flow(1, 1, window=2))[1:]
    assert [(seen.name, seen.field(5)) for seen in sent] == [("transfer", True)] * 2
    (answer,) = peer.say(frames.flow(1, 0, 0, drain=True, window=2))
    assert flow_state(answer) == (sent[0].field(0), 0, 0, True)
    assert not peer.say(frames.session_window(2, 100)), "without credit"
    rest = peer.say(frames.flow(1, 1, 0, window=100))
    assert b"".join(seen.payload for seen in [*sent, *rest]) == large
    assert gateway.faults["assertion"] == 0


@pytest.mark.requirement("U-4")
def test_U_4_who_has_not_settled_what_may_be_left_unsettled_has_its_drain_answered() -> None:
    """JMS receive with a timeout, and client-acknowledge: who would settle is the one that waits."""
    realm = ScriptedRealm()
    gateway = build_gateway(load_tables(), realm, unsettled_per_link=2)
    realm.keep(realm.node("q"), [ONE] * 4)
    peer = Conversation(gateway)
    attached, *events = peer.say(frames.attach_receiver("q"), frames.flow(1, 4))
    assert [seen.name for seen in events] == ["transfer"] * 2
    (answer,) = peer.say(frames.flow(1, 2, 2, drain=True))
    assert flow_state(answer) == (attached.field(1), 4, 0, True), "what is not sent is not available"
    seen = peer.say(frames.disposition(0, 1, frames.state("accepted")), frames.flow(1, 2, 4))
    assert [frame.name for frame in seen if frame.name == "transfer"] == ["transfer"] * 2


@pytest.mark.requirement("U-4")
def test_U_4_who_has_not_settled_what_it_may_hold_has_its_drain_answered() -> None:
    """The room is taken by what it has not settled, not by what it has not read."""
    realm = ScriptedRealm()
    limits = {"held_bytes": 2 * MIB, "held_bytes_per_connection": MIB, "message_size_bytes": MIB}
    gateway = build_gateway(load_tables(), realm, **limits)
    realm.keep(realm.node("q"), [ONE] * 3_000)
    peer = Conversation(gateway)
    attached, *events = peer.say(frames.attach_receiver("q"), frames.flow(1, 3_000))
    given = len(events)
    assert 0 < given < 3_000, "there is a limit"
    (answer,) = peer.say(frames.flow(1, 3_000 - given, given, drain=True))
    assert flow_state(answer) == (attached.field(1), 3_000, 0, True)
    seen = peer.say(frames.disposition(0, given - 1, frames.state("accepted")), frames.flow(1, 10, 3_000))
    assert [frame.name for frame in seen if frame.name == "transfer"] == ["transfer"] * 10


def small_frames(*messages: bytes) -> tuple[Gateway, Conversation]:
    """A peer that takes frames of 512 octets, and the queue `q` with these messages."""
    realm = ScriptedRealm()
    gateway = build_gateway(load_tables(), realm)
    realm.keep(realm.node("q"), [*messages])
    peer = Conversation(gateway, begin=False)
    peer.say(frames.AMQP_HEADER, frames.open_(frame_size=512), frames.begin())
    return gateway, peer


@pytest.mark.requirement("W-11")
@pytest.mark.parametrize(
    "properties",
    [
        AmqpMap([]),
        AmqpMap([(Symbol("example:hint"), UInt(1)), (Symbol("other"), Array(0xA3, [Symbol("a")]))]),
        AmqpMap([(Symbol("txn-id"), None)]),
    ],
    ids=["none", "unknown", "null"],
)
def test_properties_of_a_flow_that_are_not_known_are_passed_over(
    gateway: GatewayProcess, node: str, properties: AmqpMap
) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, ONE, TWO)
        peer.consumer(node)
        peer.send(frames.flow(1, 1, properties=properties))
        peer.receive(1)
        peer.send(frames.flow(1, 1, 1, properties=AmqpMap([(Symbol("other"), True), (Symbol("txn-id"), b"t")])))
        assert peer.detached(1) == "amqp:not-implemented"
