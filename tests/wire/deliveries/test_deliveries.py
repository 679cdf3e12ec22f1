"""Deliveries: what a state means at a node, what is said once and no more, what cannot be resumed, time to live."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Symbol, UByte, UInt, ULong, encode

MESSAGE = frames.message()
ACCEPTED = frames.state("accepted")
DURABLE = 2


def living(ttl_ms: int, body: bytes = b"body") -> bytes:
    return frames.message(body, encode(Described(ULong(0x70), [True, None, UInt(ttl_ms)])))


def drained(peer: Peer, handle: int = 1) -> int:
    """How many messages come before a drain is answered."""
    peer.credit(50, handle, drain=True)
    count = 0
    while True:
        while not peer.seen:
            assert peer.read(10.0), "the drain is not answered"
        seen = peer.seen.pop(0)
        count += seen.name == "transfer"
        if seen.name == "flow" and seen.field(6) == 0 and seen.field(8) is True:
            peer.delivered[handle] = seen.field(5)
            return count


@pytest.mark.requirement("A-4", "A-5", "C-1")
def test_a_message_without_a_header_has_its_defaults(gateway: GatewayProcess, node: str) -> None:
    """Priority 4, for ever, delivered without a header, as format 0."""
    gateway.command("node", "create", node, "--priority-levels", "10")
    with Peer(gateway.port) as peer:
        low, high = (encode(Described(ULong(0x70), [None, UByte(level)])) for level in (3, 5))
        peer.stored(node, frames.message(b"3", low), frames.message(b"none"), frames.message(b"5", high))
        peer.consumer(node)
        came = []
        for _ in range(3):
            peer.credit(1)
            came += peer.receive(1)
        assert [seen.payload for seen in came] == [
            frames.message(b"5", high),
            frames.message(b"none"),
            frames.message(b"3", low),
        ]
        assert [seen.field(3) for seen in came] == [0, 0, 0]


@pytest.mark.requirement("E-1", "E-3", "E-4")
@pytest.mark.parametrize("dead", [False, True])
def test_what_has_expired_is_not_sent(gateway: GatewayProcess, node: str, dead: bool) -> None:
    """Not to a link that attaches later, not to one that has had credit all the while; from its arrival on."""
    if dead:
        gateway.command("node", "create", f"{node}.dead")
        gateway.command("node", "create", node, "--dead-letter", f"{node}.dead")
    with Peer(gateway.port) as peer:
        peer.stored(node, living(1), living(600_000, b"lives"), living(1))
        time.sleep(0.05)
        peer.consumer(node, credit=5)
        (seen,) = peer.receive(1)
        assert seen.payload.endswith(frames.message(b"lives"))
        peer.nothing()
        if dead:
            peer.consumer(f"{node}.dead", credit=2, handle=2, name="dead")
            assert len(peer.receive(2, 2)) == 2


def taken_alive(peer: Peer, node: str) -> Seen:
    """An event that expired while the peer has it. On a slow machine one may expire on its way: then the next comes,
    and the one behind has twice the time."""
    ttl_ms = 250
    while True:
        peer.stored(node, living(ttl_ms), living(600_000, b"lives"))
        (seen,) = peer.receive(1)
        if not seen.payload.endswith(frames.message(b"lives")):
            break
        peer.settle([seen.field(1)], ACCEPTED)
        peer.credit(1)
        ttl_ms *= 2
    time.sleep(ttl_ms / 1000 + 0.05)  # it was stored before it came, so its time is over
    with Peer(peer.port) as other:
        other.consumer(node, credit=1)
        (rest,) = other.receive(1)
        other.settle([rest.field(1)], ACCEPTED, settled=False)
        assert set(other.outcomes(1).values()) == {"accepted"}
    return seen


@pytest.mark.requirement("E-5")
@pytest.mark.parametrize("outcome", ["accepted", "released"])
def test_what_expires_while_a_consumer_has_it_is_over(gateway: GatewayProcess, node: str, outcome: str) -> None:
    """Its late outcome is no error and brings nothing back."""
    with Peer(gateway.port) as peer:
        with Peer(gateway.port) as other:
            other.publisher(node)
        peer.consumer(node, credit=1)
        seen = taken_alive(peer, node)
        peer.settle([seen.field(1)], frames.state(outcome), settled=False)
        assert peer.outcomes(1) == {0: outcome}
        assert drained(peer) == 0


@pytest.mark.requirement("G-4", "K-4")
def test_a_state_is_of_one_node_or_durable(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE, kind="channel")
        for handle, name in ((1, "one"), (2, "two")):
            peer.consumer(frames.source(node, DURABLE), credit=1, handle=handle, name=name)
        peer.nothing()
        peer.stored(node, MESSAGE, kind="channel")
        first, second = peer.expect("transfer"), peer.expect("transfer")
        peer.settle([first.field(1)], ACCEPTED, settled=False)
        assert set(peer.outcomes(1).values()) == {"accepted"}
        peer.settle([second.field(1)], frames.state("released"), settled=False)
        assert set(peer.outcomes(1).values()) == {"released"}
        peer.delivered.update({1: 1, 2: 1})
        peer.credit(1, 1)
        peer.credit(1, 2)
        again = peer.expect("transfer")  # whichever link it comes on
        assert again.field(0) == second.field(0)
        peer.nothing()


@pytest.mark.requirement("H-1", "H-4")
@pytest.mark.parametrize("late", ["released", "rejected", "accepted"])
def test_what_is_settled_is_never_spoken_of_again(gateway: GatewayProcess, node: str, late: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(MESSAGE)
        assert peer.outcomes(1) == {0: "accepted"}
        peer.consumer(node, credit=5, rcv=1)
        (seen,) = peer.receive(1)
        peer.settle([seen.field(1)], ACCEPTED, settled=False)
        assert peer.outcomes(1) == {0: "accepted"}
        peer.settle([seen.field(1)], frames.state(late), settled=False)
        peer.nothing()
        peer.send(frames.detach(1))
        assert peer.detached(1) is None
        peer.consumer(node, handle=2)
        assert drained(peer, 2) == 0


def resuming(node: str, unsettled: Any, name: str = "sub") -> bytes:
    """An attach of a consumer that says what it has left."""
    pairs = AmqpMap([(tag, state) for tag, state in unsettled.items()])
    source, target = frames.source(node), frames.target(None)
    return frames.frame(frames.ATTACH, [name, UInt(1), True, UByte(0), UByte(0), source, target, pairs, True])


@pytest.mark.requirement("H-2", "H-15")
@pytest.mark.parametrize("state", [None, "received", "accepted"])
def test_a_consumer_cannot_resume_and_gets_what_is_unsettled_anew(
    gateway: GatewayProcess, node: str, state: str | None
) -> None:
    """Cases 1 to 14 need a map of ours; there is none, so what is named comes as a new delivery, not as `received`."""
    given = {None: None, "received": frames.state("received", UInt(0), ULong(3)), "accepted": ACCEPTED}[state]
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.consumer(node, credit=1)
        (first,) = peer.receive(1)
        peer.send(frames.detach(1, closed=False))
        peer.expect("detach")
        peer.send(resuming(node, {first.field(2): given, b"unknown": given}), frames.flow(1, 5))
        attached = peer.expect("attach")
        assert not attached.field(7) and not attached.field(8)
        again = peer.expect("transfer")
        assert again.field(1) != first.field(1)
        assert (again.field(7), again.field(8)) in ((None, None), (None, False))
        peer.nothing()


def resumed(delivery: int, payload: bytes) -> bytes:
    fields = [UInt(0), UInt(delivery), b"%d" % delivery, UInt(0), False, False, None, None, True]
    return frames.frame(frames.TRANSFER, fields, payload)


@pytest.mark.requirement("H-15")
def test_a_resumed_transfer_of_an_unknown_delivery_is_ignored(gateway: GatewayProcess, node: str) -> None:
    """It is not published a second time; what is sent as new is."""
    with Peer(gateway.port) as peer:
        source, target = frames.source(None), frames.target(node, capability="queue")
        pairs = AmqpMap([(b"0", None), (b"1", ACCEPTED)])
        modes = [UByte(0), UByte(0)]
        attach = ["pub", UInt(0), False, *modes, source, target, pairs, None, UInt(0)]
        peer.send(frames.frame(frames.ATTACH, attach))
        assert not peer.expect("attach").field(7), "nothing is known of what was sent before"
        peer.expect("flow")
        peer.send(resumed(0, MESSAGE), frames.transfer(1, frames.message(b"new")), resumed(2, MESSAGE))
        replies: list[Seen] = []
        while not any(seen.name == "disposition" and seen.field(1) == 1 for seen in replies):
            assert peer.seen or peer.read(10.0)
            replies, peer.seen = replies + peer.seen, []
        peer.nothing() if not peer.seen else peer.seen.clear()
        peer.send(frames.attach_receiver(node, 4), frames.flow(4, 5))
        while not any(seen.name == "transfer" for seen in replies):
            assert peer.seen or peer.read(10.0)
            replies, peer.seen = replies + peer.seen, []
        (only,) = [seen for seen in replies if seen.name == "transfer"]
        assert only.payload == frames.message(b"new")
        peer.nothing()


@pytest.mark.requirement("K-5")
def test_what_a_copy_link_accepted_never_comes_again(gateway: GatewayProcess, node: str) -> None:
    """On a durable source; a browser's source has no memory, and each of its links begins anew."""
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE, kind="channel")
        peer.consumer(frames.source(node, DURABLE), credit=5)
        peer.nothing()
        peer.stored(node, *[frames.message(b"%d" % at) for at in range(5)], kind="channel")
        peer.receive(5)
        peer.settle([0, 1, 3], ACCEPTED, settled=False)
        peer.outcomes(3)
        peer.send(frames.detach(1, closed=False))
        peer.expect("detach")
        peer.consumer(frames.source(node, DURABLE), credit=10, handle=2)
        assert [seen.payload for seen in peer.receive(2, 2)] == [frames.message(b"2"), frames.message(b"4")]
        peer.nothing()


@pytest.mark.requirement("J-3")
@pytest.mark.parametrize("text", ["NOW() > 0", "CURRENT_TIMESTAMP > 0", "RAND() > 1"])
def test_a_filter_has_no_word_for_what_changes_by_itself(gateway: GatewayProcess, node: str, text: str) -> None:
    """Neither the time nor the number of attempts: what a selector said of a message it says for ever."""
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)

        def source(words: str) -> Described:
            selector = Described(Symbol("apache.org:selector-filter:string"), words)
            return frames.source(node, filters=AmqpMap([(Symbol("jms-selector"), selector)]))

        if "(" in text:
            peer.send(frames.attach_receiver(source(text)))
            assert peer.refused() == "amqp:invalid-field"
            peer.send(frames.detach(1))
        else:
            peer.consumer(source(text))
            assert drained(peer) == 0, "a property that the message does not have"
            peer.send(frames.detach(1))
            peer.expect("detach")
        for handle in (2, 3):
            peer.consumer(source("JMSXDeliveryCount IS NULL AND JMSRedelivered IS NULL"), credit=1, handle=handle)
            (seen,) = peer.receive(1, handle)
            peer.settle([seen.field(1)], frames.state("modified", True, False))
            peer.send(frames.detach(handle))
            peer.expect("detach")


@pytest.mark.requirement("Q-3", "Q-4")
def test_who_publishes_and_does_not_read_is_answered_all_the_same(gateway: GatewayProcess, node: str) -> None:
    """Batchable or not: what is stored is settled at once, and the session's window never ends."""
    with Peer(gateway.port) as peer:
        credit = peer.publisher(node)
        count = min(credit, 3_000)
        state = [
            frames.frame(
                frames.TRANSFER,
                [UInt(0), UInt(at), b"%d" % at, UInt(0), False, False, None, None, None, None, at % 2 == 0],
                MESSAGE,
            )
            for at in range(count)
        ]
        peer.send(*state)
        numbers: set[int] = set()
        while len(numbers) < count:
            numbers |= set(peer.outcomes(1))


@pytest.mark.requirement("T-1", "U-2")
def test_what_is_sent_before_there_is_credit_ends_the_link(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=1)
        peer.send(frames.attach_sender(node, 0), frames.transfer(0, MESSAGE))
        assert peer.refused() == "amqp:link:transfer-limit-exceeded"
        peer.send(frames.transfer(1, MESSAGE, handle=1))
        assert peer.outcomes(1) == {1: "accepted"}
