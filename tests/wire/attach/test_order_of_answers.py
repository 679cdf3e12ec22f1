"""In what order attaches are answered, where clients count on an order that AMQP leaves free
(gateway/attach/undecided_attaches.py)."""

from __future__ import annotations

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import CONTROL, Transacting

COORDINATOR = frames.attach_sender(frames.COORDINATOR, CONTROL, "control")


def slow(node: str) -> bytes:
    """Its node is made first."""
    return frames.attach_sender(frames.target(node, capability="queue"), 0, "slow")


def test_a_coordinator_is_answered_after_the_attaches_before_it(gateway: GatewayProcess, node: str) -> None:
    """As by a broker that does one thing after another. A client sends what there is credit for when its transaction is
    declared (cli-proton): credit that came only then would be too late."""
    refused = frames.attach_receiver("no-such-node", 1, "refused")
    with Peer(gateway.port) as peer:
        peer.send(slow(node), refused, COORDINATOR)
        answers = [(seen.name, seen.field(0)) for seen in peer.frames(6)]
        assert answers[-1][0] == "flow"
        assert [name for kind, name in answers if kind == "attach"] == ["refused", "slow", "control"]


def test_a_coordinator_does_not_wait_for_a_link_that_has_gone(gateway: GatewayProcess, node: str) -> None:
    with Transacting(gateway.port) as peer:
        peer.send(slow(node), COORDINATOR, frames.detach(0))
        awaited = {("attach", "control"), ("detach", 0)}
        while awaited:
            [seen] = peer.frames(1)
            awaited.discard((seen.name, seen.field(0)))
        assert peer.declare()


def test_a_session_ends_with_a_coordinator_that_waits(gateway: GatewayProcess, node: str) -> None:
    with Transacting(gateway.port) as peer:
        peer.send(slow(node), COORDINATOR, frames.end())
        peer.until("end")
        peer.send(frames.begin())
        peer.until("begin")
        peer.begun()
