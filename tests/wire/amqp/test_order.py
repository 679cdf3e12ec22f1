"""Frames that come when they may not: before OPEN, twice, on a channel that is begun, behind the end of their link or
session. Found by fuzzing; proton takes most of it.
"""

from __future__ import annotations

import pytest

from tests.gateway_process import GatewayProcess
from tests.wire import frames
from tests.wire.frames import AMQP_HEADER
from tests.wire.peer import Peer

MESSAGE = frames.message()
OUT_OF_ORDER = "amqp:illegal-state"


@pytest.mark.parametrize("first", [frames.begin(), frames.end(), frames.attach_sender("q"), frames.close()])
def test_what_comes_before_open_closes_the_connection(house: GatewayProcess, first: bytes) -> None:
    with Peer(house.port, begin=False) as peer:
        peer.send(AMQP_HEADER, first)
        peer.expect("open")
        assert peer.expect("close").condition == OUT_OF_ORDER
        assert peer.closed()


def test_a_second_open_closes_the_connection(house: GatewayProcess, node: str) -> None:
    with Peer(house.port) as peer:
        peer.publisher(node)
        peer.send(frames.open_("another"), frames.transfer(0, MESSAGE))
        assert peer.expect("close").condition == OUT_OF_ORDER
        assert peer.closed()
        with Peer(house.port) as other:
            other.consumer(node, credit=5)
            other.nothing(0.1)  # it came behind what was wrong


def test_open_is_on_channel_0(house: GatewayProcess) -> None:
    with Peer(house.port, begin=False) as peer:
        peer.send(AMQP_HEADER, frames.frame(frames.OPEN, ["peer"], channel=1))
        peer.expect("open")
        assert peer.expect("close").condition == OUT_OF_ORDER


def test_links_that_come_behind_the_error_of_their_session_are_not_there(house: GatewayProcess, node: str) -> None:
    """In the same octets and in later ones: nothing is subscribed, and the session can be begun anew."""
    with Peer(house.port) as peer:
        peer.stored(node, MESSAGE)
        attach = frames.attach_receiver(node) + frames.flow(1, 5)
        peer.send(frames.transfer(0, MESSAGE, handle=9), attach)
        assert peer.expect("end").condition == "amqp:session:unattached-handle"
        peer.send(attach, frames.begin(), attach, frames.transfer(0, MESSAGE, handle=1))
        peer.nothing(0.1)
        peer.send(frames.end(), frames.begin())
        peer.expect("begin")
        peer.consumer(node, credit=5)
        peer.receive(1)


def test_P_5_transfers_without_end_on_a_closed_link_end_its_session(small: GatewayProcess, node: str) -> None:
    """As many as had credit may be under way."""
    with Peer(small.port) as peer:
        credit = peer.publisher(node)
        peer.publish(MESSAGE, MESSAGE)
        peer.outcomes(2)
        large = frames.message(b"x" * 6_000)
        peer.send(*(frames.transfer(2, large[at : at + 900], more=True) for at in range(0, len(large), 900)))
        assert peer.detached() == "amqp:link:message-size-exceeded"
        peer.send(frames.transfer(2, b""), *(frames.transfer(3 + at, MESSAGE) for at in range(credit - 1)))
        peer.nothing(0.1)
        peer.send(frames.transfer(2 + credit, MESSAGE))
        assert peer.expect("end").condition == "amqp:session:errant-link"
