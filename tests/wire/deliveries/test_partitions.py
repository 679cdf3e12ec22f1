"""Nodes of several stores over a socket, frame by frame: priority levels (semantics 2.C), plain partitions, groups."""

from __future__ import annotations

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from transformers.codec import Described, UByte, ULong, encode

ACCEPTED = frames.state("accepted")
RELEASED = frames.state("released")


def urgent(priority: int | None, body: bytes) -> bytes:
    header = b"" if priority is None else encode(Described(ULong(0x70), [True, UByte(priority)]))
    return frames.message(body, header)


def grouped(group: str, body: bytes) -> bytes:
    return encode(Described(ULong(0x73), [None] * 10 + [group])) + frames.message(body)


def bodies(came: list[Seen]) -> list[bytes]:
    return [seen.payload[-2:] for seen in came]


def stores(came: list[Seen]) -> list[int]:
    """What the delivery tags name: `<store>:<eid>`."""
    return [int(seen.field(2).partition(b":")[0]) for seen in came]


def one_by_one(peer: Peer, count: int) -> list[Seen]:
    """With credit for one at a time."""
    came = []
    for _ in range(count):
        peer.credit(1)
        came += peer.receive(1)
        peer.settle([came[-1].field(1)], ACCEPTED)
    return came


@pytest.mark.requirement("C-1", "C-2", "C-3")
@pytest.mark.parametrize(
    ("levels", "classes"),
    [
        (2, [{0, 1, 2, 3, 4}, {5, 6, 9, 255}]),
        (3, [{0, 3}, {4}, {5, 9, 200}]),
        (10, [{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9, 10, 255}]),
        (12, [{0}, {5}, {10}, {11, 12, 255}]),
    ],
)
def test_C_2_C_3_priorities_fall_into_as_many_levels_as_the_node_has(
    gateway: GatewayProcess, node: str, levels: int, classes: list[set[int]]
) -> None:
    gateway.command("node", "create", node, "--priority-levels", str(levels))
    sent = [priority for some in classes for priority in sorted(some)]
    with Peer(gateway.port) as peer:
        peer.stored(node, *(urgent(priority, b"%02x" % priority) for priority in sent))
        peer.consumer(node)
        came = one_by_one(peer, len(sent))
    expected = [b"%02x" % priority for some in reversed(classes) for priority in sorted(some)]
    assert bodies(came) == expected
    of_store = dict(zip(bodies(came), stores(came), strict=True))
    assert [len({of_store[b"%02x" % priority] for priority in some}) for some in classes] == [1] * len(classes)
    assert len(set(of_store.values())) == len(classes)


@pytest.mark.requirement("C-4")
def test_C_4_the_order_within_a_level_is_kept(gateway: GatewayProcess, node: str) -> None:
    gateway.command("node", "create", node, "--priority-levels", "10")
    with Peer(gateway.port) as peer:
        peer.stored(node, urgent(4, b"A "), urgent(9, b"B "), urgent(9, b"C "), urgent(None, b"D "))
        peer.consumer(node)
        assert bodies(one_by_one(peer, 4)) == [b"B ", b"C ", b"A ", b"D "], "without a header: 4"


def test_links_are_spread_and_each_keeps_its_order(gateway: GatewayProcess, node: str) -> None:
    gateway.command("node", "create", node, "--partitions", "3")
    with Peer(gateway.port) as peer:
        for link in range(3):
            peer.stored(node, *(frames.message(b"%d%d" % (link, at)) for at in range(5)))
        peer.consumer(node, credit=15)
        came = peer.receive(15)
        of_link = {link: [body for body in bodies(came) if body[:1] == b"%d" % link] for link in range(3)}
        assert of_link == {link: [b"%d%d" % (link, at) for at in range(5)] for link in range(3)}
        assert len(set(stores(came))) == 3
        given_back = came[3:9]
        peer.settle([seen.field(1) for seen in came if seen not in given_back], ACCEPTED, settled=False)
        assert set(peer.outcomes(9).values()) == {"accepted"}
        peer.settle([seen.field(1) for seen in given_back], RELEASED, settled=False)
        assert set(peer.outcomes(6).values()) == {"released"}
        peer.credit(6)
        again = peer.receive(6)
        assert sorted(seen.field(2) for seen in again) == sorted(seen.field(2) for seen in given_back)
    with Peer(gateway.port) as peer:  # what the other one left behind
        peer.consumer(node, credit=20)
        last = peer.receive(6)
        assert sorted(bodies(last)) == sorted(bodies(again))
        peer.settle([seen.field(1) for seen in last], ACCEPTED)
        peer.nothing()


def test_a_group_stays_in_one_store_for_all_senders(gateway: GatewayProcess, node: str) -> None:
    gateway.command("node", "create", node, "--partitions", "4")
    groups = [f"group-{at}" for at in range(8)]
    with Peer(gateway.port) as peer:
        for half in range(2):
            peer.stored(node, *(grouped(group, b"%d%d" % (half, at)) for at, group in enumerate(groups)))
        peer.consumer(node, credit=20)
        came = peer.receive(16)
    of_group: dict[bytes, list[tuple[int, bytes]]] = {}
    for store, body in zip(stores(came), bodies(came), strict=True):
        of_group.setdefault(body[1:], []).append((store, body[:1]))
    assert all(first[0] == second[0] for first, second in of_group.values())
    assert all([half for _, half in events] == [b"0", b"1"] for events in of_group.values())
    assert len(set(stores(came))) > 1


def test_a_transaction_over_several_stores_is_done_as_a_whole_or_not(gateway: GatewayProcess, node: str) -> None:
    source, target = f"{node}.source", f"{node}.target"
    for name in (source, target):
        gateway.command("node", "create", name, "--priority-levels", "3")
    sent = [urgent(priority, b"p%d" % priority) for priority in (0, 4, 9)]
    with Transacting(gateway.port) as peer:
        peer.stored(source, *sent)
        peer.publisher(target)
        peer.consumer(source, credit=3)
        came = peer.receive(3)
        transaction = peer.begun()
        posted = peer.post(transaction, *sent)
        peer.promised(*posted)
        for seen in came:
            peer.retire(transaction, seen.field(1))
        assert peer.discharge(transaction, fail=True) == "accepted"
        peer.ended(*posted)
        transaction = peer.declare()
        peer.post(transaction, *sent)
        peer.dispositions(3)
        for seen in came:
            peer.retire(transaction, seen.field(1))
        assert peer.discharge(transaction) == "accepted"
    with Peer(gateway.port) as peer:
        peer.consumer(target)
        assert bodies(one_by_one(peer, 3)) == [b"p9", b"p4", b"p0"]
        peer.consumer(source, credit=5, handle=2, name="source")
        peer.nothing()


def test_consumers_of_a_node_that_grows_have_to_attach_again(gateway: GatewayProcess, node: str) -> None:
    gateway.command("node", "create", node)
    with Peer(gateway.port) as peer:
        peer.stored(node, frames.message(b"01"), frames.message(b"02"))
        peer.consumer(node, credit=5)
        assert bodies(peer.receive(2)) == [b"01", b"02"]
        gateway.command("node", "set", node, "partitions=2")
        assert set(peer.outcomes(2).values()) == {"released"}
        assert peer.detached() == "amqp:resource-locked"
    with Peer(gateway.port) as peer:
        for link in range(2):
            peer.stored(node, frames.message(b"1%d" % link))
        peer.consumer(node, credit=5)
        came = peer.receive(4)
        assert sorted(bodies(came)) == [b"01", b"02", b"10", b"11"]
        peer.settle([seen.field(1) for seen in came], ACCEPTED)
        peer.nothing()


def test_groups_keep_their_consumer_and_their_order_when_their_node_grows(gateway: GatewayProcess, node: str) -> None:
    gateway.command("node", "create", node, "--partitions", "2")
    groups = [f"group-{at}" for at in range(8)]

    def some(turn: int) -> list[bytes]:
        return [grouped(group, b"%d%d" % (turn, at)) for at, group in enumerate(groups)]

    with Peer(gateway.port) as before:
        before.publisher(node)
        before.publish(*some(0))
        assert set(before.outcomes(8).values()) == {"accepted"}
        gateway.command("node", "set", node, "partitions=5")
        before.stored(node, *some(1))  # by a link that comes after
        before.publish(*some(2))  # by the one that was there
        assert set(before.outcomes(8).values()) == {"accepted"}
    assert "message groups in partitions 0 to 1" in gateway.command("node", "show", node)
    with Peer(gateway.port) as first, Peer(gateway.port) as two:
        for link in range(5):
            first.stored(node, frames.message(b"x%d" % link))
        for peer in (first, two):
            peer.consumer(node, credit=29)
        came: list[tuple[Peer, Seen]] = []
        while len(came) < 29:
            for peer in (first, two):
                peer.read(0.05)
                came += [(peer, seen) for seen in peer.seen if seen.name == "transfer"]
                peer.seen.clear()
    of_group: dict[bytes, list[bytes]] = {}
    whose: dict[bytes, set[tuple[Peer, int]]] = {}
    for peer, seen in came:
        [body], [store] = bodies([seen]), stores([seen])
        name = body[1:] if body[:1] != b"x" else b"x"
        of_group.setdefault(name, []).append(body[:1])
        whose.setdefault(name, set()).add((peer, store))
    of_links = {store for _, store in whose.pop(b"x")}
    assert of_group.pop(b"x") and set(map(bytes.join, [b""] * 8, of_group.values())) == {b"012"}
    assert all(len(takers) == 1 for takers in whose.values()), "one consumer and one store"
    assert of_links - {store for takers in whose.values() for _, store in takers}, "links gain by it"
