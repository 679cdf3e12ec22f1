"""Links that their peer detaches without closing them: how long they keep a dynamic node (ADR 0088)."""

from __future__ import annotations

import pytest

from gateway.config.limits import SUSPENDED_LINKS
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.wire.attach.dynamic_nodes import (
    CLOSE,
    NO_LINKS,
    POLICIES,
    TARGET,
    close,
    comes_to_an_end,
    detach,
    exists,
    made_to_expire,
    make,
)
from transformers.codec import ULong

ENDS = ("end", "close", "reset", "resumed-and-closed", "attached-elsewhere")


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.requirement("M-7", "M-9")
def test_a_node_outlives_a_detach_that_does_not_close(
    gateway: GatewayProcess, node: str, policy: int, ends: str
) -> None:
    """2.6.4, 3.5.10: the link exists until its terminus expires, with its session, or is closed."""
    peer = Peer(gateway.port)
    address = made_to_expire(peer, ULong(policy), None)
    detach(peer, 20)
    assert exists(gateway.port, address)
    peer.send(frames.attach_sender(address, 20, "another"))  # another name takes no place
    peer.expect("attach")
    close(peer, 20)
    assert exists(gateway.port, address)
    if ends == "resumed-and-closed":
        for _ in range(2):
            peer.send(frames.attach_sender(address, 20, "maker"))
            assert peer.expect("attach").field(TARGET) is not None
            detach(peer, 20)
            assert exists(gateway.port, address)
        peer.send(frames.attach_sender(address, 20, "maker"))
        peer.expect("attach")
        close(peer, 20)
        assert not exists(gateway.port, address), "before the answer"
    elif ends == "attached-elsewhere":
        peer.send(frames.attach_sender(node, 20, "maker"))
        peer.expect("attach")
    elif ends == "end":
        peer.send(frames.end())
        peer.expect("end")
        assert not exists(gateway.port, address), "before the answer"
    elif ends == "close":
        peer.send(frames.close())
        peer.expect("close")
    else:
        peer.reset()
    assert comes_to_an_end(gateway.port, address)
    peer.close()


@pytest.mark.requirement("M-7")
def test_links_that_are_detached_and_not_closed_are_so_many_at_most(gateway: GatewayProcess) -> None:
    """The oldest end first: the node that one has made goes then."""
    with Peer(gateway.port) as peer:
        address = made_to_expire(peer, ULong(CLOSE), None)
        other = make(peer, "publish", NO_LINKS, handle=21)
        detach(peer, 20)
        for number in range(SUSPENDED_LINKS):
            assert number or exists(gateway.port, address)
            peer.send(frames.attach_sender(other, 20, f"link {number}"))
            peer.expect("attach")
            detach(peer, 20)
        assert comes_to_an_end(gateway.port, address)
        assert exists(gateway.port, other)
