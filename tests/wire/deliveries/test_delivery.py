"""What JMS asks of queues and topics on the wire: delivery times, message groups, no-local, drains, empty bodies, and
what the answering ATTACH says of the source."""

from __future__ import annotations

import time

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.filters import selector
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Symbol, Timestamp, UInt, ULong, encode

_FAR_MS = 600_000  # it does not come while a test runs
_SOON_MS = 1_000  # it comes; all that wait do so together
NO_LOCAL = AmqpMap([(Symbol("no-local"), Described(ULong(0x0000468C00000003), "NoLocalFilter{}"))])


def waiting(body: bytes, delay_ms: int, name: str = "x-opt-delivery-time") -> bytes:
    """A message that is to be given so much later."""
    now_ms = round(time.time() * 1000)
    due = ULong(delay_ms) if name == "x-opt-delivery-delay" else Timestamp(now_ms + delay_ms)
    return encode(Described(ULong(0x72), AmqpMap([(Symbol(name), due)]))) + frames.message(body)


def grouped(group: str, number: int) -> bytes:
    fields = [None] * 10 + [group, UInt(number)]
    return encode(Described(ULong(0x73), fields)) + frames.message(b"%d" % number)


def bodies(peer: Peer, count: int, handle: int = 1) -> list[bytes]:
    """The last octets of so many messages."""
    return [seen.payload[-1:] for seen in peer.receive(count, handle)]


def test_delayed_delivery_is_offered(gateway: GatewayProcess) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher("any.offers")
        opened = next(seen for seen in frames.read(bytes(peer.raw))[0] if seen.name == "open")
        assert "DELAYED_DELIVERY" in [str(offer) for offer in opened.field(7).items]


def test_a_message_with_a_delivery_time_is_not_given_before(gateway: GatewayProcess, node: str) -> None:
    """Others overtake it; it comes as if for the first time: in a queue, to a subscriber, to a durable."""
    names = ("x-opt-delivery-time", "x-opt-delivery-delay")
    nodes = [
        (kind, durable, name) for kind, durable in (("queue", 0), ("channel", 0), ("channel", 2)) for name in names
    ]
    with Peer(gateway.port) as peer:
        for handle, (kind, durable, _) in enumerate(nodes):
            peer.publisher(f"{node}.{handle}", kind, handle=10 + handle)
            peer.consumer(frames.source(f"{node}.{handle}", durable), handle=handle, name=f"consumer-{handle}")
        for handle, (_, _, name) in enumerate(nodes):
            peer.publish(waiting(b"9", _FAR_MS, name), frames.message(b"1"), handle=10 + handle, settled=True)
        for handle in range(len(nodes)):
            peer.credit(1, handle)
            assert bodies(peer, 1, handle) == [b"1"]
            peer.credit(10, handle, drain=True)
            assert peer.drained(handle)
            peer.delivered[handle] += 10  # the drain has used them up
        begun = time.time()
        for handle, (_, _, name) in enumerate(nodes):
            peer.publish(waiting(b"2", _SOON_MS, name), handle=10 + handle, settled=True)
            peer.credit(1, handle)
        for seen in [peer.expect("transfer") for _ in nodes]:
            assert time.time() - begun >= _SOON_MS / 1000
            assert seen.payload[-1:] == b"2"
            assert not seen.payload.startswith(b"\x00\x53\x70"), "no header that counts an attempt"


def test_a_browser_sees_what_is_due_and_a_selector_waits(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, waiting(b"9", _FAR_MS), frames.message(b"1"))
        peer.consumer(frames.source(node, mode="copy"), handle=2, name="browser")
        peer.credit(10, 2, drain=True)
        assert bodies(peer, 1, 2) == [b"1"] and peer.drained(2)
        peer.stored(node, waiting(b"2", _SOON_MS))
        peer.consumer(frames.source(node, filters=selector("JMSPriority = 4")), credit=10)
        assert bodies(peer, 2) == [b"1", b"2"]


@pytest.mark.parametrize("state", ["accepted", "rejected"])
def test_a_browser_never_shows_what_was_ended_before_it_asked(gateway: GatewayProcess, node: str, state: str) -> None:
    """Outcome and credit come in one breath: nothing of it is stored yet when the browser looks."""
    with Peer(gateway.port) as peer:
        peer.stored(node, frames.message(b"1"), frames.message(b"2"), frames.message(b"3"))
        peer.consumer(node, credit=3)
        first, second = (seen.field(1) for seen in peer.receive(3)[:2])
        peer.consumer(frames.source(node, mode="copy"), handle=2, name="browser")
        ended = frames.disposition(first, second, frames.state(state), settled=True)
        peer.send(ended, frames.flow(2, 5, drain=True))
        assert bodies(peer, 1, 2) == [b"3"] and peer.drained(2)


def test_a_group_keeps_to_one_consumer_until_that_leaves(gateway: GatewayProcess, node: str) -> None:
    """Both get groups; what one has is in order; with its link its groups go to the other."""
    with Peer(gateway.port) as first, Peer(gateway.port) as other:
        first.publisher(node, handle=5)
        for name, peer in (("one", first), ("other", other)):
            peer.consumer(node, credit=100, name=name)
            peer.nothing()  # it waits
        sent = [grouped(f"group-{number % 6}", number) for number in range(60)]
        first.stored(node, *sent)
        got = [[sent.index(seen.payload) for seen in peer.receive(30)] for peer in (first, other)]
        groups = [{number % 6 for number in numbers} for numbers in got]
        assert [len(group) for group in groups] == [3, 3], "the one who has fewer gets the next"
        assert got == [sorted(numbers) for numbers in got] and not groups[0] & groups[1]
        other.send(frames.detach(1))
        again = [sent.index(seen.payload) for seen in first.receive(30)]
        assert again == got[1], "what the other had comes to the one that is left, group-sequence and all"


def test_a_group_waits_for_its_consumer_and_others_go_on(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=5)
        peer.consumer(node, credit=1, handle=1, name="slow")
        peer.stored(node, grouped("a", 1))
        assert bodies(peer, 1) == [b"1"]
        peer.consumer(node, credit=10, handle=2, name="quick")
        peer.stored(node, grouped("a", 2), grouped("b", 3), grouped("a", 4), frames.message(b"5"))
        assert bodies(peer, 2, 2) == [b"3", b"5"]
        peer.credit(10, 2, drain=True)
        assert peer.drained(2)
        peer.credit(10, 1)
        assert bodies(peer, 2) == [b"2", b"4"]


@pytest.mark.parametrize("durable", [0, 2])
def test_no_local_holds_back_what_its_own_container_publishes(gateway: GatewayProcess, node: str, durable: int) -> None:
    """From before the subscription on or not: a publisher that is there already is marked, too."""
    with Peer(gateway.port) as peer:
        peer.publisher(node, "channel", handle=5)
        attached = peer.consumer(frames.source(node, durable, filters=NO_LOCAL), credit=10)
        assert attached.field(5).value[7] == NO_LOCAL
        peer.consumer(node, credit=10, handle=2, name="with local")
        peer.publish(frames.message(b"1"), handle=5, settled=True)
        peer.stored(node, frames.message(b"2"), kind="channel")  # by another container
        assert bodies(peer, 2, 2) == [b"1", b"2"]
        assert bodies(peer, 1) == [b"2"]
        peer.credit(10, drain=True)
        assert peer.drained()


@pytest.mark.parametrize("message", [b"\x00\x53\x70\x45", grouped("g", 1)[: -len(frames.message(b"1"))]])
def test_a_message_without_a_body_comes_as_it_was_sent(gateway: GatewayProcess, node: str, message: bytes) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, message)
        peer.consumer(node, credit=1)
        assert [seen.payload for seen in peer.receive(1)] == [message]


@pytest.mark.requirement("K-1")
def test_K_1_the_answer_says_how_the_source_distributes(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=5)
        assert peer.consumer(node).field(5).value[6] == "move"
        assert peer.consumer(frames.source(node, mode="copy"), handle=2, name="b").field(5).value[6] == "copy"
        peer.publisher(f"{node}.topic", "channel", handle=6)
        assert peer.consumer(f"{node}.topic", handle=3, name="t").field(5).value[6] == "copy"
