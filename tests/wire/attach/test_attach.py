"""Attaching: nodes known and unknown, what is refused and with what, nodes that come and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.wire.conftest import serve
from transformers.codec import AmqpMap, Described, Symbol

NOT_IMPLEMENTED = "amqp:not-implemented"
FILTER = AmqpMap([(Symbol("selector"), Described(Symbol("apache.org:no-filter:string"), "a = 1"))])


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    yield from serve(tmp_path_factory, limits={"links": 3})


@pytest.mark.requirement("O-1")
@pytest.mark.parametrize("direction", ["publish", "subscribe"])
def test_O_1_S_R1c_P_R2d_an_unknown_node_is_a_null_terminus_and_a_closing_detach(
    gateway: GatewayProcess, direction: str
) -> None:
    with Peer(gateway.port) as peer:
        attach = frames.attach_sender if direction == "publish" else frames.attach_receiver
        peer.send(attach("there is none", 0))
        assert peer.refused() == "amqp:not-found"
        peer.send(frames.detach(0))
        peer.stored("any.other", frames.message())  # the session goes on
        peer.send(frames.attach_sender("there is none either", 0), frames.transfer(0, frames.message()))
        assert peer.refused() in ("amqp:not-found", "amqp:link:transfer-limit-exceeded")


@pytest.mark.requirement("O-5")
@pytest.mark.parametrize("kind", ["queue", "channel"])
def test_a_node_made_a_moment_ago_by_the_command_line_is_found(gateway: GatewayProcess, kind: str) -> None:
    """Any characters; and a deleted one is not found (3.2)."""
    name = f"Grüße/{kind} ;*"
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender(name, 7))
        assert peer.refused() == "amqp:not-found"
        gateway.command("node", "create", name, "--kind", kind)
        peer.consumer(name, credit=1)
        peer.stored(name, frames.message(), kind=kind)
        assert peer.receive(1)[0].payload == frames.message()
        gateway.command("node", "delete", name, "--yes")
        assert peer.expect("disposition").state == "rejected:amqp:resource-deleted"  # what is in flight
        assert peer.detached(1) == "amqp:resource-deleted"  # O-5
        peer.send(frames.detach(1), frames.detach(7), frames.attach_receiver(name, 2, "again"))
        assert peer.refused() == "amqp:not-found"


REFUSED = {
    "K-3-move-from-a-channel": frames.attach_receiver(frames.source("any.channel", mode="move")),
    "K-3-an-unknown-mode": frames.attach_receiver(frames.source("any.queue", mode="steal")),
    "J-4-filter-on-a-queue": frames.attach_receiver(frames.source("any.queue", filters=FILTER)),
    "J-4-filter-on-a-channel": frames.attach_receiver(frames.source("any.channel", filters=FILTER)),
}


@pytest.mark.requirement("J-4", "K-3")
@pytest.mark.parametrize("attach", REFUSED.values(), ids=REFUSED)
def test_what_is_not_offered_is_refused(gateway: GatewayProcess, attach: bytes) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher("any.queue", "queue", handle=30)
        peer.publisher("any.channel", "channel", handle=31)
        peer.send(attach)
        assert peer.refused() == NOT_IMPLEMENTED


@pytest.mark.requirement("J-1")
def test_J_1_a_filter_of_null_is_none(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, frames.message())
        peer.consumer(frames.source(node, filters=AmqpMap([(Symbol("a"), None)])), credit=1)
        assert peer.receive(1)


@pytest.mark.requirement("I-6", "O-2", "O-3")
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("rcv", [0, 1])
def test_O_3_the_answer_to_an_attach_says_what_holds(gateway: GatewayProcess, node: str, mode: int, rcv: int) -> None:
    with Peer(gateway.port) as peer:
        target = frames.target(node, capability="queue")
        peer.send(frames.attach_sender(target, 3, "a name", mode, rcv=rcv))
        attached = peer.expect("attach")
        assert [attached.field(at) for at in (0, 2, 3, 4, 10)] == ["a name", True, mode, rcv, 16 * 2**20]
        assert attached.field(6).value[0] == node
        attached = peer.consumer(frames.source(node, outcomes=["accepted", "released"]), mode=mode, rcv=rcv)
        assert [attached.field(at) for at in (2, 3, 4, 9)] == [False, mode, rcv, 0]
        outcomes = attached.field(5).value[9]
        assert list(outcomes.items) == ["amqp:accepted:list", "amqp:released:list"]  # I-6


@pytest.mark.requirement("O-6")
def test_O_6_a_link_attached_anew_takes_the_name_over(gateway: GatewayProcess, node: str) -> None:
    """The older one hears why; what it had not stated comes to the new one."""
    with Peer(gateway.port, "container") as old, Peer(gateway.port, "container") as new:
        old.stored(node, frames.message(b"a"), frames.message(b"b"))
        old.consumer(node, credit=2)
        old.receive(2)
        new.consumer(node, credit=2)
        assert old.detached(1) == "amqp:link:stolen"
        assert [seen.payload for seen in new.receive(2)] == [frames.message(b"a"), frames.message(b"b")]
        old.stored(node, frames.message(b"c"))  # its connection goes on


def test_too_many_links_are_refused_and_the_others_go_on(few: GatewayProcess, node: str) -> None:
    with Peer(few.port) as peer:
        for handle in range(3):
            peer.publisher(node, handle=handle)
        peer.send(frames.attach_sender(node, 3, "one more"))
        assert peer.refused() == "amqp:resource-limit-exceeded"
        peer.publish(frames.message(), handle=2)
        assert peer.outcomes(1) == {0: "accepted"}
        peer.send(frames.detach(3), frames.detach(0))
        peer.expect("detach")
        peer.publisher(node, handle=0)  # there is room again
