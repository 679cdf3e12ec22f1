"""A play for each row of the documented delivery-state tables: a peer on a socket brings its conditions about, and
what comes back, and what the realm was asked, must be what the row says (`Expected`).

Readings of what rows leave ambiguous are those of semantics reference 1.3; where a play follows one, it says so.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.wire import frames
from tests.wire.peer import Peer
from tests.wire.tcp_house import TcpHouse
from tests.wire.um_expectations import Expected
from transformers.amqp_types import Array, Described, Symbol, ULong

Play = Callable[[TcpHouse, Expected], None]

MESSAGE = frames.message(b"event")
TRANSACTIONAL = Described(ULong(0x34), [b"no such transaction", None])
MODES = ("unsettled", "settled", "mixed")
QUIET_S = 0.015
_DURABILITIES = {"none": (0,), "durable": (1, 2)}


def told(peer: Peer, expected: Expected, handle: int, presettled: bool = False) -> None:
    """The disposition, and the end of the link, or that there is none."""
    if expected.outcome != "none" and not presettled:
        seen = peer.expect("disposition")
        assert (seen.state, seen.field(3)) == (expected.state, True), seen
    if expected.closes:
        assert peer.detached(handle) == expected.error
    peer.nothing(QUIET_S)


# -- publishing


def publish(mode: str, presettled: bool = False, payload: bytes = MESSAGE, answer: str | None = None) -> Play:
    """One message; the answer waits until the realm has given one (NF-5)."""

    def play(house: TcpHouse, expected: Expected) -> None:
        realm = house.realm
        with Peer(house.port) as peer:
            peer.publisher("q", mode=MODES.index(mode))
            realm.calls.clear()
            if answer is not None:
                realm.answers["publish"] = answer
            realm.holds.add("publish")
            peer.publish(payload, settled=presettled)
            if expected.native == "publish":
                house.until(lambda: bool(realm.calls))
                peer.nothing(QUIET_S)
                house.do(realm.release)
            told(peer, expected, 0, presettled)
            assert realm.calls == (["publish 1"] if expected.native == "publish" else []), realm.calls
            realm.answers.clear()
            house.do(realm.release)
            if not expected.closes and not presettled:
                [number] = peer.publish(MESSAGE)
                assert peer.outcomes(1) == {number: "accepted"}

    return play


def publish_in_two_transfers(house: TcpHouse, expected: Expected) -> None:
    with Peer(house.port) as peer:
        peer.publisher("q")
        peer.send(frames.transfer(0, MESSAGE[:3], more=True), frames.transfer(0, MESSAGE[3:]))
        told(peer, expected, 0)
        assert house.realm.calls == []


def publish_in_two_transfers_reassembled(house: TcpHouse, _: Expected) -> None:
    with Peer(house.port) as peer:
        peer.publisher("q")
        peer.send(frames.transfer(0, MESSAGE[:3], more=True), frames.transfer(0, MESSAGE[3:]))
        assert peer.outcomes(1) == {0: "accepted"}
        assert list(house.realm.store("q").values.values()) == [MESSAGE]


def publish_in_a_transaction_refused(house: TcpHouse, _: Expected) -> None:
    """Neither published outside of one, nor told that it was."""
    with Peer(house.port) as peer:
        peer.publisher("q")
        peer.send(frames.transfer(0, MESSAGE, state=TRANSACTIONAL))
        assert peer.outcomes(1) == {0: "rejected:amqp:not-implemented"}
        assert peer.detached(0) == "amqp:not-implemented"
        assert house.realm.calls == []


# -- consuming


def consume(kind: str, rcv: int, act: Callable[[TcpHouse, Peer, Expected], None]) -> Play:
    """One event, given to a consumer of that kind, with each durability that makes it one; then `act`."""

    def play(house: TcpHouse, expected: Expected) -> None:
        node = "q" if kind == "queue" else "c"
        for durability in _DURABILITIES["durable" if kind == "durable" else "none"]:
            with Peer(house.port) as peer:
                peer.consumer(frames.source(node, durability), credit=1, rcv=rcv)
                peer.stored(node, MESSAGE, kind="queue" if kind == "queue" else "channel")
                peer.receive(1)
                house.realm.calls.clear()
                act(house, peer, expected)
                house.do(house.realm.release)
                house.realm.answers.clear()

    return play


def state_then_told(state: Described | None, answer: str = "done") -> Callable[[TcpHouse, Peer, Expected], None]:
    """A disposition that is not settled; it is answered when the realm has answered, and not before (NF-4)."""

    def act(house: TcpHouse, peer: Peer, expected: Expected) -> None:
        realm = house.realm
        realm.holds.add("settle")
        realm.answers["settle"] = answer
        peer.settle([0], state, settled=False)
        if expected.native in ("acknowledge", "open"):
            house.until(lambda: bool(realm.calls))
            peer.nothing(QUIET_S)
            house.do(realm.release)
        told(peer, expected, 1)
        wanted = {"acknowledge": ["acknowledge 1"], "open": ["return 1"], "none": []}[expected.native]
        assert realm.calls == wanted, realm.calls

    return act


def settled_without_a_state(house: TcpHouse, peer: Peer, expected: Expected) -> None:
    """The default outcome decides, with its native effect (1.3-O); who has settled hears nothing more."""
    peer.settle([0], None, settled=True)
    house.until(lambda: bool(house.realm.calls))
    assert (expected.outcome, expected.native) == ("accepted", "acknowledge")
    assert house.realm.calls == ["acknowledge 1"], house.realm.calls
    peer.nothing(QUIET_S)
    house.until(lambda: house.gateway.outcomes.open == 0)


def silent_then_settled(house: TcpHouse, peer: Peer, expected: Expected) -> None:
    """Without a state and not settled a disposition says nothing yet: it is legal in AMQP 1.0, and means nothing."""
    peer.settle([0], None, settled=False)
    peer.nothing(QUIET_S)
    assert house.realm.calls == []
    settled_without_a_state(house, peer, expected)


def accepted_again(house: TcpHouse, peer: Peer, expected: Expected) -> None:
    """Settled here means settled by the gateway (1.3-A)."""
    peer.settle([0], frames.state("accepted"), settled=False)
    assert peer.outcomes(1) == {0: "accepted"}
    peer.settle([0], frames.state("accepted"), settled=False)
    told(peer, expected, 1)
    assert house.realm.calls == ["acknowledge 1"], house.realm.calls


def transactional_refused(condition: str) -> Callable[[TcpHouse, Peer, Expected], None]:
    def act(house: TcpHouse, peer: Peer, _: Expected) -> None:
        peer.settle([0], TRANSACTIONAL, settled=False)
        assert peer.detached(1) == condition
        assert all(call.startswith("return") for call in house.realm.calls), house.realm.calls

    return act


# -- attaching


def subscribe(house: TcpHouse, expected: Expected) -> None:
    """S-A3 is an attach-time row (1.3-B): the link is confirmed when the realm has completed the subscription."""
    for node, durability, mode in (("c", 0, "plain"), ("c", 2, "durable"), ("q", 0, "queue")):
        for rcv in (0, 1):
            house.realm.calls.clear()
            house.realm.holds.add("subscribe")
            with Peer(house.port) as peer:
                peer.send(frames.attach_receiver(frames.source(node, durability), rcv=rcv))
                house.until(lambda: bool(house.realm.calls))
                peer.nothing(QUIET_S)
                house.do(house.realm.release)
                attached = peer.expect("attach")
                assert attached.field(5) is not None and expected.error is None
                assert house.realm.calls == [f"{expected.native} {mode}"]


def subscribe_failing(answer: str, later: str | None = None) -> Play:
    """At attach: a null source and a closing DETACH. Later: what is in flight is rejected first (1.3-B, 1.3-P).
    `later`: another condition then."""

    def play(house: TcpHouse, expected: Expected) -> None:
        realm = house.realm
        with Peer(house.port) as peer:
            realm.answers["subscribe"] = answer
            peer.send(frames.attach_receiver(frames.source("c", 2)))
            assert peer.refused() == expected.error
            assert realm.calls == ["subscribe durable"]
            realm.answers.clear()
        with Peer(house.port) as peer:
            peer.consumer(frames.source("c", 2), credit=1)
            peer.stored("c", MESSAGE, kind="channel")
            peer.receive(1)
            house.do(lambda: realm.lose_subscriptions(answer))
            condition = later or expected.error
            assert peer.outcomes(1) == {0: f"{expected.outcome}:{condition}"}
            assert peer.detached(1) == condition

    return play


def coordinator_refused(*capabilities: str) -> Play:
    """No coordinator, so nothing is advertised, declared or discharged (1.3-F)."""

    def play(house: TcpHouse, _: Expected) -> None:
        wanted = Array(0xA3, [Symbol(capability) for capability in capabilities]) if capabilities else None
        with Peer(house.port) as peer:
            peer.send(frames.attach_sender(Described(ULong(0x30), [wanted])))
            attached = peer.expect("attach")
            assert attached.field(6) is None, attached
            detached = peer.expect("detach")
            assert detached.condition == "amqp:not-implemented"
            peer.nothing(QUIET_S)
            assert house.realm.calls == []

    return play
