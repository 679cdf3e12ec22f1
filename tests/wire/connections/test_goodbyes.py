"""What is said when links and sessions end: END is answered with END alone, a DETACH with a DETACH alone, and nothing
more of a link that its peer has closed."""

from __future__ import annotations

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from tests.wire.conftest import serve

MESSAGE = frames.message()
SECOND = 1


def names(peer: Peer, last: str) -> list[str]:
    """What comes up to a frame of that name, flows left out."""
    while not any(seen.name == last for seen in peer.seen):
        assert peer.read(10.0), f"no {last}, but {peer.seen}"
    return [seen.name for seen in peer.seen if seen.name != "flow"]


def busy_session(peer: Peer, node: str, channel: int) -> None:
    """A session with a publisher, a consumer that holds an event, and a coordinator."""
    peer.send(frames.begin(channel=channel))
    peer.expect("begin")
    peer.send(
        frames.attach_sender(node, 0, "to", channel=channel),
        frames.attach_receiver(node, 1, "from", channel=channel),
        frames.attach_sender(frames.COORDINATOR, 2, "control", channel=channel),
        frames.flow(1, 1, channel=channel),
    )
    for _ in range(3):
        peer.expect("attach")
    peer.expect("transfer")


def test_D7_a_session_that_its_peer_ends_is_answered_with_END_alone(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        busy_session(peer, node, 1)
        peer.send(frames.end(1))
        assert names(peer, "end") == ["end"]
        assert peer.expect("end").channel == 1
        busy_session(peer, node, 1)  # the event is there again, the channel and the names are free


def test_D7_a_burst_of_detach_end_close_is_answered_frame_by_frame(gateway: GatewayProcess, node: str) -> None:
    """As a client sends that does not wait for one answer before it says the next: a DETACH for the link that it has
    detached, and none for those that go with their session."""
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        busy_session(peer, node, 1)
        peer.send(frames.detach(1, channel=1), frames.end(1), frames.close())
        assert names(peer, "close") == ["detach", "end", "close"]
        assert peer.expect("detach").field(1) is True
        assert peer.closed()


@pytest.mark.parametrize("dynamic", [False, True])
def test_D7_a_link_whose_detach_still_waits_is_answered_before_its_session(
    gateway: GatewayProcess, node: str, dynamic: bool
) -> None:
    """The answer waits for the end of the node; so does that of the session."""
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.send(frames.attach_receiver(frames.source(None, dynamic=True) if dynamic else node, 1, "from"))
        peer.expect("attach")
        peer.send(frames.detach(1), frames.end())
        assert names(peer, "end") == ["detach", "end"]


def test_D7_links_with_temporary_nodes_go_with_their_session_without_a_word(gateway: GatewayProcess) -> None:
    """And the nodes are gone when the END is answered (M-9)."""
    with Peer(gateway.port) as peer:
        peer.send(frames.begin(channel=1))
        peer.expect("begin")
        peer.send(frames.attach_receiver(frames.source(None, dynamic=True), 1, "one", channel=1))
        address = peer.expect("attach").field(5).value[0]
        peer.send(frames.end(1))
        assert names(peer, "end") == ["end"]
        peer.expect("end")
        peer.send(frames.attach_sender(address, 3, "late"))
        assert peer.refused() == "amqp:not-found"


def test_D7_a_session_begun_in_the_breath_in_which_another_ends_has_room(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Though every channel was taken, and the END still waits for a node."""
    gateways = serve(tmp_path_factory, limits={"sessions_per_connection": 2})
    gateway = next(gateways)
    with Peer(gateway.port) as peer:
        peer.send(frames.begin(1))
        peer.expect("begin")
        for round_ in range(3):
            peer.send(frames.attach_receiver(frames.source(None, dynamic=True), 1, f"made-{round_}", channel=1))
            peer.expect("attach")
            peer.send(frames.end(1), frames.begin(1), frames.attach_sender(None, 0, "relay", channel=1))
            assert sorted(names(peer, "attach")) == ["attach", "begin", "end"]
            peer.seen.clear()
    assert next(gateways, None) is None


@pytest.mark.parametrize("rcv", [0, SECOND])
@pytest.mark.parametrize("closed", [True, False])
def test_D18_deliveries_whose_publisher_has_detached_get_no_disposition(
    gateway: GatewayProcess, node: str, rcv: int, closed: bool
) -> None:
    """It has the outcomes and has not settled, or it has not even heard them (2.8.3)."""
    with Peer(gateway.port) as peer:
        peer.publisher(node, mode=0, rcv=rcv)
        numbers = peer.publish(MESSAGE, MESSAGE)
        assert peer.dispositions(2) == dict.fromkeys(numbers, ("accepted", rcv == 0))
        peer.send(*(frames.transfer(number, MESSAGE) for number in (2, 3)), frames.detach(0, closed))
        assert names(peer, "detach") == ["detach"]
        peer.expect("detach")
        peer.nothing()
        assert len(peer.there(node, 4)) == 4


def test_D18_deliveries_whose_consumer_has_closed_its_link_get_no_disposition(
    gateway: GatewayProcess, node: str
) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE, MESSAGE)
        peer.consumer(node, credit=2, rcv=SECOND)
        peer.receive(2)
        peer.send(frames.disposition(0, 0, frames.state("accepted"), settled=False), frames.detach(1))
        names(peer, "detach")
        peer.read(0.2)
        replies = [seen for seen in peer.seen if seen.name == "disposition"]
        assert all(seen.field(1) == 0 and seen.state == "accepted" for seen in replies), replies  # never of the second


def test_D18_what_a_transaction_holds_gets_no_disposition_when_its_link_is_closed(
    gateway: GatewayProcess, node: str
) -> None:
    """The discharge is answered; what was posted is stored (W-4)."""
    with Transacting(gateway.port) as peer:
        peer.publisher(node, mode=0, rcv=SECOND)
        txn = peer.begun()
        peer.send(frames.transfer(peer.number(), MESSAGE, 0, state=frames.in_transaction(txn)))
        assert peer.expect("disposition").state == "transactional accepted"
        peer.send(frames.detach(0))
        assert names(peer, "detach") == ["detach"]
        peer.expect("detach")
        assert peer.discharge(txn) == "accepted"
        peer.nothing()
        assert len(peer.there(node, 1)) == 1


def test_D19_no_credit_is_granted_on_a_control_link_in_the_breath_in_which_it_is_closed(
    gateway: GatewayProcess, node: str
) -> None:
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender(frames.COORDINATOR, 7, "control"))
        peer.expect("attach")
        names(peer, "flow")
        peer.seen.clear()
        peer.send(frames.request(0, "nonsense"))
        while not any(seen.name == "detach" for seen in peer.seen):
            assert peer.read(10.0), peer.seen
        assert "flow" not in [seen.name for seen in peer.seen], peer.seen
