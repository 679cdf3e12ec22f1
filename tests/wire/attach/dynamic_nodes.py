"""Dynamic nodes as a peer makes them, and whether they are there."""

from __future__ import annotations

import time

from tests.kit.patience import HANG_S
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import Described, ULong

CLOSE, NO_LINKS, NO_MESSAGES, NO_LINKS_OR_MESSAGES = range(0x2B, 0x2F)
POLICIES = (CLOSE, NO_LINKS, NO_MESSAGES, NO_LINKS_OR_MESSAGES)
SOURCE, TARGET = 5, 6
ADDRESS, DYNAMIC, PROPERTIES = 0, 4, 5


def terminus(attached: Seen, at: int) -> list[object]:
    answer = attached.field(at)
    assert isinstance(answer, Described), attached
    return list(answer.value) + [None] * (8 - len(answer.value))


def make(
    peer: Peer,
    direction: str = "subscribe",
    policy: int | None = CLOSE,
    handle: int = 20,
    capability: str | None = None,
) -> str:
    """A dynamic node; its name."""
    properties = None if policy is None else frames.lifetime(ULong(policy))
    if direction == "publish":
        target = frames.target(None, dynamic=True, capability=capability, properties=properties)
        peer.send(frames.attach_sender(target, handle, f"maker, {handle}"))
    else:
        source = frames.source(None, dynamic=True, capability=capability, properties=properties)
        peer.send(frames.attach_receiver(source, handle, f"maker, {handle}"))
    answer = terminus(peer.expect("attach"), TARGET if direction == "publish" else SOURCE)
    assert isinstance(answer[ADDRESS], str) and answer[DYNAMIC] is True, answer  # M-2
    return str(answer[ADDRESS])


def exists(port: int, address: str) -> bool:
    """Whether another connection can attach to it."""
    with Peer(port) as probe:
        probe.send(frames.attach_sender(address))
        attached = probe.expect("attach")
        is_there = attached.field(TARGET) is not None
        assert is_there or probe.detached() == "amqp:not-found"
        probe.send(frames.close())
        while (reply := probe.frames(1)[0]).name != "close":  # then the probe's link keeps no node any more
            assert reply.name in ("flow", "detach"), reply  # its link may be detached: the node goes meanwhile
        return is_there


def comes_to_an_end(port: int, address: str) -> bool:
    end = time.monotonic() + HANG_S
    while exists(port, address):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def detach(peer: Peer, handle: int) -> None:
    """Without closing, until it is answered."""
    peer.send(frames.detach(handle, closed=False))
    assert peer.expect("detach").field(1) is not True


def close(peer: Peer, handle: int) -> None:
    """Closing, until it is answered."""
    peer.send(frames.detach(handle))
    assert peer.detached() is None


def made_to_expire(peer: Peer, policy: object, expiry: str | None) -> str:
    """A dynamic node of a publisher on handle 20 whose terminus has that expiry policy; its name."""
    properties = None if policy is None else frames.lifetime(policy)
    target = frames.target(None, dynamic=True, properties=properties, expiry=expiry)
    peer.send(frames.attach_sender(target, 20, "maker"))
    address = terminus(peer.expect("attach"), TARGET)[ADDRESS]
    assert isinstance(address, str)
    return address
