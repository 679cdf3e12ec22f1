"""Frames that come when they may not: before OPEN, twice, on a channel that is begun, behind the end of their link or
session. Found by fuzzing; proton takes most of it.
"""

from __future__ import annotations

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import AMQP_HEADER
from tests.kit.wire.peer import Peer

MESSAGE = frames.message()
OUT_OF_ORDER = "amqp:illegal-state"


@pytest.mark.parametrize("first", [frames.begin(), frames.end(), frames.attach_sender("q"), frames.close()])
def test_what_comes_before_open_closes_the_connection(gateway: GatewayProcess, first: bytes) -> None:
    with Peer(gateway.port, begin=False) as peer:
        peer.send(AMQP_HEADER, first)
        peer.expect("open")
        assert peer.expect("close").condition == OUT_OF_ORDER
        assert peer.closed()


def test_a_second_open_closes_the_connection(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.send(frames.open_("another"), frames.transfer(0, MESSAGE))
        assert peer.expect("close").condition == OUT_OF_ORDER
        assert peer.closed()
        with Peer(gateway.port) as other:
            other.consumer(node, credit=5)
            other.nothing()  # it came behind what was wrong


def test_open_is_on_channel_0(gateway: GatewayProcess) -> None:
    with Peer(gateway.port, begin=False) as peer:
        peer.send(AMQP_HEADER, frames.frame(frames.OPEN, ["peer"], channel=1))
        peer.expect("open")
        assert peer.expect("close").condition == "amqp:connection:framing-error"


@pytest.mark.parametrize(
    "data",
    [
        frames.attach_sender("q", channel=3),
        frames.flow(0, 5, channel=3),
        frames.transfer(0, MESSAGE, channel=3),
        frames.disposition(0, 0, None, channel=3),
        frames.detach(0, channel=3),
        frames.end(3),
    ],
    ids=["attach", "flow", "transfer", "disposition", "detach", "end"],
)
def test_a_frame_of_a_session_that_is_not_begun_closes_the_connection(gateway: GatewayProcess, data: bytes) -> None:
    with Peer(gateway.port) as peer:
        peer.send(data)
        assert peer.expect("close").condition == OUT_OF_ORDER
        assert peer.closed()


def test_links_that_come_behind_the_error_of_their_session_are_not_there(gateway: GatewayProcess, node: str) -> None:
    """In the same octets and in later ones: nothing is subscribed, and the session can be begun anew."""
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        attach = frames.attach_receiver(node) + frames.flow(1, 5)
        peer.send(frames.transfer(0, MESSAGE, handle=9), attach)
        assert peer.expect("end").condition == "amqp:session:unattached-handle"
        peer.send(attach, frames.begin(), attach, frames.transfer(0, MESSAGE, handle=1))
        peer.nothing()
        peer.send(frames.end(), frames.begin())
        peer.expect("begin")
        peer.consumer(node, credit=5)
        peer.receive(1)


def test_a_session_that_is_begun_anew_behind_an_error_is_another_one(gateway: GatewayProcess, node: str) -> None:
    """In the same octets: the error was of the session that its peer has ended."""
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=0)
        anew = frames.attach_sender(frames.target(node, capability="queue"))
        peer.send(frames.detach(9), frames.end(), frames.begin(), anew)
        while not any(seen.name == "flow" for seen in peer.seen):
            assert peer.read(10.0)
        replies = sorted(seen.name for seen in peer.seen if seen.name not in ("detach", "flow"))
        assert replies == ["attach", "begin", "end"]
        peer.seen.clear()
        peer.publish(MESSAGE)
        assert peer.outcomes(1) == {0: "accepted"}


@pytest.mark.requirement("P-4", "P-5")
@pytest.mark.parametrize("bad", ["malformed", "errant"])
def test_P_4_an_error_of_a_link_ends_no_session_that_was_begun_behind_it(
    small: GatewayProcess, node: str, bad: str
) -> None:
    """In the same octets: its peer has ended the session of that link, and has another one on that channel."""
    with Peer(small.port) as peer:
        credit = peer.publisher(node)
        errors = [frames.transfer(0, b"garbage")]
        if bad == "errant":
            large = frames.message(b"x" * 6_000)
            peer.send(*(frames.transfer(0, large[at : at + 900], more=True) for at in range(0, len(large), 900)))
            assert peer.detached() == "amqp:link:message-size-exceeded"
            errors = [frames.transfer(0, b""), *(frames.transfer(1 + at, MESSAGE) for at in range(credit))]
        anew = frames.attach_sender(frames.target(node, capability="queue"))
        peer.send(*errors, frames.end(), frames.begin(), anew)
        while not any(seen.name == "flow" and seen.field(4) is not None for seen in peer.seen):
            assert peer.read(10.0), peer.seen
        ends = [seen.condition for seen in peer.seen if seen.name == "end"]
        names = sorted(seen.name for seen in peer.seen if seen.name not in ("detach", "flow", "disposition"))
        assert (names, ends) == (["attach", "begin", "end"], [None])
        peer.seen.clear()
        peer.send(frames.transfer(0, MESSAGE))
        assert peer.outcomes(1) == {0: "accepted"}


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
        peer.nothing()
        peer.send(frames.transfer(2 + credit, MESSAGE))
        assert peer.expect("end").condition == "amqp:session:errant-link"
