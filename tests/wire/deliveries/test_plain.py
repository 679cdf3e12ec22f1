"""Subscribers without a durable, over a socket: what one of them gives back or rolls back comes again to it and to
no one else, in `extended`; in the documented profiles it does not. Source: JMS 2.0 sections 6.2.7, 6.2.10; H-7, W-4."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import Seen, count_and_first
from tests.kit.wire.scripted_realm import ScriptedRealm
from tests.kit.wire.transacting import Transacting
from transformers.codec import Described

ACCEPTED, RELEASED = frames.state("accepted"), frames.state("released")
MODIFIED, FAILED = frames.state("modified", False, False), frames.state("modified", True, False)
NOT_HERE, FAILED_NOT_HERE = frames.state("modified", False, True), frames.state("modified", True, True)
STORES = {"one": (), "three": ("--partitions", "3"), "levels": ("--priority-levels", "3")}


@pytest.fixture(params=STORES)
def channel(request: pytest.FixtureRequest, gateway: GatewayProcess, node: str) -> str:
    """A channel of one store, of several, and of levels of priority."""
    gateway.command("node", "create", node, "--kind", "channel", *STORES[request.param])
    return node


@pytest.fixture
def peer(gateway: GatewayProcess) -> Iterator[Transacting]:
    with Transacting(gateway.port) as client:
        yield client


def bodies(came: list[Seen]) -> list[bytes]:
    return [seen.payload[-1:] for seen in came]


def given(peer: Transacting, node: str, *sent: bytes, default: Described | None = None) -> list[Seen]:
    """So many, out and not settled."""
    peer.consumer(frames.source(node, default=default), credit=len(sent))
    peer.nothing()
    peer.stored(node, *(frames.message(body, frames.header(first=True)) for body in sent), kind="channel")
    return peer.receive(len(sent))


AGAIN = {
    "released": (RELEASED, (0, False)),
    "modified": (MODIFIED, (0, False)),
    "modified-failed": (FAILED, (1, False)),
}


@pytest.mark.requirement("H-7", "H-11", "K-4")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("state", AGAIN)
def test_H_7_H_11_what_is_given_back_comes_again_to_that_link_alone(
    gateway: GatewayProcess, channel: str, peer: Transacting, state: str, settled: bool
) -> None:
    outcome, again = AGAIN[state]
    with Transacting(gateway.port) as other:
        other.consumer(channel, credit=10)
        other.nothing()
        came = given(peer, channel, b"1", b"2", b"3")
        by_body = {seen.payload[-1:]: seen for seen in came}
        numbers = sorted(by_body[body].field(1) for body in (b"1", b"2"))
        peer.settle([by_body[b"3"].field(1)], ACCEPTED)
        peer.settle(numbers, outcome, settled)
        if not settled:
            assert peer.outcomes(2) == dict.fromkeys(numbers, state.partition("-")[0])
        peer.stored(channel, frames.message(b"4"), kind="channel")
        peer.credit(3)
        back = peer.receive(3)
        assert sorted(bodies(back)) == [b"1", b"2", b"4"]
        assert {count_and_first(seen) for seen in back if seen.payload[-1:] != b"4"} == {again}
        peer.credit(5)
        peer.nothing()
        assert sorted(bodies(other.receive(4))) == [b"1", b"2", b"3", b"4"]
        other.nothing()


@pytest.mark.requirement("H-7")
def test_it_comes_lowest_first_and_ahead_of_what_is_new(gateway: GatewayProcess, node: str, peer: Transacting) -> None:
    gateway.command("node", "create", node, "--kind", "channel")
    numbers = [seen.field(1) for seen in given(peer, node, *(b"%d" % at for at in range(6)))]
    peer.stored(node, frames.message(b"6"), kind="channel")
    peer.settle([numbers[at] for at in (4, 1, 3)], RELEASED)
    peer.settle([numbers[at] for at in (0, 2, 5)], ACCEPTED)
    peer.nothing()
    peer.credit(4)
    assert bodies(peer.receive(4)) == [b"1", b"3", b"4", b"6"]


@pytest.mark.requirement("H-12")
@pytest.mark.parametrize(
    "state",
    [ACCEPTED, frames.state("rejected"), NOT_HERE, FAILED_NOT_HERE],
    ids=["accepted", "rejected", "undeliverable", "undeliverable-failed"],
)
def test_H_12_what_it_will_not_have_does_not_come_again(channel: str, peer: Transacting, state: Described) -> None:
    (seen,) = given(peer, channel, b"1")
    peer.settle([seen.field(1)], state, settled=False)
    assert len(peer.outcomes(1)) == 1
    peer.credit(5)
    peer.nothing()


ROLLED_BACK = {"no default": (None, (0, False)), "released": (RELEASED, (0, False)), "failed": (FAILED, (1, False))}


@pytest.mark.requirement("W-4", "W-7", "W-10")
@pytest.mark.parametrize("default", ROLLED_BACK)
def test_W_4_what_is_accepted_in_a_transaction_that_is_rolled_back_comes_again(
    channel: str, peer: Transacting, default: str
) -> None:
    outcome, again = ROLLED_BACK[default]
    numbers = sorted(seen.field(1) for seen in given(peer, channel, b"1", b"2", b"3", default=outcome))
    transaction = peer.begun()
    peer.settle(numbers[:2], frames.in_transaction(transaction, ACCEPTED))
    assert peer.discharge(transaction, fail=True) == "accepted"
    peer.credit(5)
    back = peer.receive(2)
    assert {count_and_first(seen) for seen in back} == {again}
    transaction = peer.declare()
    peer.settle([seen.field(1) for seen in back], frames.in_transaction(transaction, ACCEPTED))
    assert peer.discharge(transaction) == "accepted"
    peer.nothing()


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize("fail", [False, True], ids=["committed", "rolled back"])
def test_what_is_given_back_in_a_transaction_comes_again_however_that_ends(
    channel: str, peer: Transacting, fail: bool
) -> None:
    (seen,) = given(peer, channel, b"1")
    transaction = peer.begun()
    peer.settle([seen.field(1)], frames.in_transaction(transaction, FAILED))
    peer.credit(5)
    peer.nothing()
    assert peer.discharge(transaction, fail) == "accepted"
    (seen,) = peer.receive(1)
    assert count_and_first(seen) == ((0 if fail else 1), False)


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_finds_what_came_back(channel: str, peer: Transacting) -> None:
    came = given(peer, channel, *(b"%d" % at for at in range(8)))
    peer.settle([seen.field(1) for seen in came[:5]], RELEASED)
    peer.credit(20, drain=True)
    assert sorted(bodies(peer.receive(5))) == sorted(bodies(came[:5]))
    assert peer.drained()


@pytest.mark.requirement("U-4")
def test_U_4_a_drain_waits_for_the_frames_before_it() -> None:
    """All of it is read at once, so proton knows of the drain when it tells of an earlier change of the credit."""
    realm = ScriptedRealm()
    gateway = build_gateway(load_tables(), realm)
    subscriber, publisher = Conversation(gateway, "subscriber"), Conversation(gateway, "publisher")
    subscriber.say(frames.attach_receiver("c"), frames.flow(1, 3))
    publisher.say(frames.attach_sender("c"))
    publisher.say(*(frames.transfer(at, frames.message(b"%d" % at)) for at in range(3)))
    subscriber.listen()
    came = subscriber.say(
        frames.flow(1, 1, 3),
        *(frames.disposition(at, at, RELEASED) for at in range(3)),
        frames.flow(1, 9, 3, drain=True),
    )
    assert [seen.name for seen in came] == ["transfer"] * 3 + ["flow"]
    assert (came[-1].field(5), came[-1].field(6), came[-1].field(8)) == (12, 0, True)


def test_the_nodes_limit_of_attempts_holds(gateway: GatewayProcess, node: str, peer: Transacting) -> None:
    """The last one is the end of the copy; who has another is not concerned."""
    gateway.command("node", "create", node, "--kind", "channel", "--attempts", "2")
    with Transacting(gateway.port) as other:
        other.consumer(node, credit=5)
        other.nothing()
        (seen,) = given(peer, node, b"1")
        for attempt in (0, 1):
            assert count_and_first(seen) == (attempt, attempt == 0)
            peer.settle([seen.field(1)], FAILED, settled=False)
            assert set(peer.outcomes(1).values()) == {"modified"}
            peer.credit(1)
            if attempt == 0:
                (seen,) = peer.receive(1)
        peer.nothing()
        (seen,) = other.receive(1)
        other.settle([seen.field(1)], FAILED)
        other.credit(1)
        assert count_and_first(other.receive(1)[0]) == (1, False)


def test_what_came_back_goes_with_its_link(gateway: GatewayProcess, channel: str, peer: Transacting) -> None:
    came = given(peer, channel, b"1", b"2")
    peer.settle([came[0].field(1)], RELEASED)
    peer.send(frames.detach(1, closed=False))
    peer.expect("detach")
    peer.consumer(channel, credit=5)
    peer.nothing()


@pytest.mark.parametrize("kind", ["released", "rolled back"])
def test_in_the_documented_profiles_it_does_not(documented: GatewayProcess, node: str, kind: str) -> None:
    documented.command("node", "create", node, "--kind", "channel")
    with Transacting(documented.port) as peer:
        (seen,) = given(peer, node, b"1")
        if kind == "released":
            peer.settle([seen.field(1)], RELEASED)
        else:
            transaction = peer.begun()
            peer.settle([seen.field(1)], frames.in_transaction(transaction, ACCEPTED))
            assert peer.discharge(transaction, fail=True) == "accepted"
        peer.credit(5)
        peer.nothing()


@pytest.mark.requirement("V-2")
@pytest.mark.parametrize("state", [RELEASED, FAILED, NOT_HERE], ids=["released", "failed", "undeliverable"])
def test_V_2_whatever_a_browser_says_changes_nothing(
    gateway: GatewayProcess, node: str, peer: Transacting, state: Described
) -> None:
    gateway.command("node", "create", node)
    peer.stored(node, frames.message(b"1", frames.header(first=True)))
    peer.consumer(frames.source(node, mode="copy"), credit=5)
    (seen,) = peer.receive(1)
    peer.settle([seen.field(1)], state, settled=False)
    assert len(peer.outcomes(1)) == 1
    peer.credit(5)
    peer.nothing()
    assert count_and_first(peer.there(node, 1)[0]) == (0, True)
