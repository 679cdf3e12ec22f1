"""What seeds have found in the gateway, each as a test of its own."""

from __future__ import annotations

from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld
from tests.kit.wire import frames
from tests.simulation.peers.raw_peer import RawPeer


def test_a_session_that_ends_at_once_is_answered_by_its_number() -> None:
    peer = RawPeer()
    seen = peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin(channel=3), frames.end(channel=3))
    assert [frame.name for frame in seen] == ["open", "begin", "end"]
    assert seen[1].field(0) == 3


def test_a_refused_link_is_not_counted_for_ever() -> None:
    peer = RawPeer()
    peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin())
    for number in range(3):
        attach, detach = frames.attach_receiver("nowhere", name=f"s{number}"), frames.detach(1)
        assert [frame.name for frame in peer.send(attach)] == ["attach", "detach"]
        peer.send(detach)
    assert peer.world.process.gateway.links == 0


def test_messages_of_two_links_that_come_interleaved_are_each_answered() -> None:
    peer = RawPeer()
    peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin())
    peer.send(frames.attach_sender("orders", handle=0, name="a"), frames.attach_sender("parcels", handle=1, name="b"))
    pieces = [frames.transfer(at, frames.message(b"<m%d>" % at), handle=at % 2) for at in range(5)]
    answers = [frame for frame in peer.send(*pieces) if frame.name == "disposition"]
    numbers = [at for frame in answers for at in range(frame.field(1), (frame.field(2) or frame.field(1)) + 1)]
    assert sorted(numbers) == [0, 1, 2, 3, 4]
    assert {frame.state for frame in answers} == {"accepted"}


def test_what_a_killed_gateway_gave_is_known_two_lives_later() -> None:
    world = SimulatedWorld("simulated")
    first = RealmProcess(world, "u").open()
    node = first.create("orders")
    eids = first.publish(node, [b"one", b"two"])
    first.consumer(node).receive(2)
    first.kill()
    second = RealmProcess(world, "u").open()
    second.consumer(node)  # takes nothing
    second.close()
    third = RealmProcess(world, "u").open().consumer(node)
    assert third.receive(2) == eids
    assert [third.again[eid] for eid in eids] == [True, True]


def test_what_is_stated_behind_the_detach_is_lost_and_has_an_outcome() -> None:
    peer = RawPeer()
    peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin())
    peer.send(frames.attach_sender("orders", handle=0), frames.attach_receiver("orders", handle=1))
    peer.send(frames.transfer(0, frames.message(b"<m1>")), frames.flow(1, 10))
    accepted = frames.disposition(0, 0, frames.state("accepted"))
    peer.send(frames.detach(1), accepted)
    assert peer.world.process.gateway.outcomes.open == 0
    [group] = [
        group
        for record in peer.world.ledger.evidence()
        for group in record["groups"]
        if group["direction"] == "subscribe"
    ]
    assert (group["cause"], group["outcome"], group["eid"]) == ("lost", "released", [0])


def test_no_event_leaves_for_a_link_whose_end_is_read_already() -> None:
    peer = RawPeer()
    peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin())
    peer.send(frames.attach_sender("orders", handle=0), frames.attach_receiver("orders", handle=1))
    peer.send(frames.transfer(0, frames.message(b"<m1>")))
    peer.send(frames.attach_receiver("orders", handle=2, name="warm"), frames.flow(2, 0))
    seen = peer.send(frames.flow(1, 10), frames.detach(1))
    assert [frame.name for frame in seen] == ["detach"]
    again = peer.send(frames.flow(2, 10))
    assert [(frame.name, frame.field(2).endswith(b":0")) for frame in again] == [("transfer", True)]


def test_a_transaction_that_could_not_keep_an_outcome_is_not_committed() -> None:
    peer = RawPeer()
    object.__setattr__(peer.world.process.gateway.limits, "transaction_deliveries", 1)
    peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin())
    peer.send(frames.attach_sender("orders", handle=0), frames.attach_receiver("orders", handle=1))
    peer.send(frames.transfer(0, frames.message(b"<m1>")), frames.flow(1, 10))
    declared = peer.send(frames.attach_sender(frames.COORDINATOR, 7, "control"), frames.declare(1))
    [transaction] = [frame.field(4).value[0] for frame in declared if frame.name == "disposition"]
    inside = frames.in_transaction(transaction, frames.state("accepted"))
    posted = frames.transfer(2, frames.message(b"<m2>"), state=frames.in_transaction(transaction))
    replies = peer.send(posted, frames.disposition(0, 0, inside), frames.discharge(3, transaction))
    [detached] = [frame for frame in replies if frame.name == "detach"]
    assert detached.condition == "amqp:resource-limit-exceeded"
    states = [frame.state for frame in replies if frame.name == "disposition" and frame.field(3) is True]
    assert states == ["transactional accepted", "rejected:amqp:transaction:rollback"]
