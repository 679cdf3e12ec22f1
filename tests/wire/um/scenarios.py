"""A scenario for each row of the documented delivery-state tables: a peer on a socket brings its conditions about, and
what comes back, and what the realm was asked, must be what the row says (`Expected`).

Readings of what rows leave ambiguous are those of semantics reference 1.3; where a scenario follows one, it says so.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.kit.tables.um_rows import Expected
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway
from transformers.codec import Array, Described, Symbol, ULong

Scenario = Callable[[ScriptedGateway, Expected], None]

MESSAGE = frames.message(b"event")
TRANSACTIONAL = Described(ULong(0x34), [b"no such transaction", None])
MODES = ("unsettled", "settled", "mixed")
_DURABILITIES = {"none": (0,), "durable": (1, 2)}


def hears(peer: Peer, expected: Expected, handle: int, presettled: bool = False) -> None:
    """The disposition, and the end of the link, or that there is none."""
    if expected.outcome != "none" and not presettled:
        seen = peer.expect("disposition")
        assert (seen.state, seen.field(3)) == (expected.state, True), seen
    if expected.closes:
        assert peer.detached(handle) == expected.error
    peer.nothing_at_once()


# -- publishing


def publish(mode: str, presettled: bool = False, payload: bytes = MESSAGE, answer: str | None = None) -> Scenario:
    """One message; the answer waits until the realm has given one (NF-5)."""

    def scenario(gateway: ScriptedGateway, expected: Expected) -> None:
        realm = gateway.realm
        with Peer(gateway.port) as peer:
            peer.publisher(gateway.queue, mode=MODES.index(mode))
            if answer is not None:
                realm.answers["publish"] = answer
            realm.calls.clear()
            realm.holds.add("publish")
            peer.publish(payload, settled=presettled)
            if expected.native == "publish":
                gateway.until(lambda: bool(realm.calls))
                peer.nothing_at_once()
                gateway.do(realm.release)
            hears(peer, expected, 0, presettled)
            assert realm.calls == (["publish 1"] if expected.native == "publish" else []), realm.calls
            realm.answers.clear()
            gateway.do(realm.release)
            if not expected.closes and not presettled:
                [number] = peer.publish(MESSAGE)
                assert peer.outcomes(1) == {number: "accepted"}

    return scenario


def publish_in_two_transfers(gateway: ScriptedGateway, expected: Expected) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(gateway.queue)
        peer.send(frames.transfer(0, MESSAGE[:3], more=True), frames.transfer(0, MESSAGE[3:]))
        hears(peer, expected, 0)
        assert gateway.realm.calls == []


def publish_in_two_transfers_reassembled(gateway: ScriptedGateway, _: Expected) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(gateway.queue)
        peer.send(frames.transfer(0, MESSAGE[:3], more=True), frames.transfer(0, MESSAGE[3:]))
        assert peer.outcomes(1) == {0: "accepted"}
        assert gateway.stored(gateway.queue) == [MESSAGE]


def publish_in_a_transaction_refused(gateway: ScriptedGateway, _: Expected) -> None:
    """Neither published outside of one, nor told that it was."""
    with Peer(gateway.port) as peer:
        peer.publisher(gateway.queue)
        peer.send(frames.transfer(0, MESSAGE, state=TRANSACTIONAL))
        assert peer.outcomes(1) == {0: "rejected:amqp:not-implemented"}
        assert peer.detached(0) == "amqp:not-implemented"
        assert gateway.realm.calls == []


# -- consuming


def consume(kind: str, rcv: int, step: Callable[[ScriptedGateway, Peer, Expected], None]) -> Scenario:
    """One event, given to a consumer of that kind, with each durability that makes it one; then `step`."""

    def scenario(gateway: ScriptedGateway, expected: Expected) -> None:
        node = gateway.queue if kind == "queue" else gateway.channel
        for durability in _DURABILITIES["durable" if kind == "durable" else "none"]:
            with Peer(gateway.port) as peer:
                peer.consumer(frames.source(node, durability), credit=1, rcv=rcv)
                peer.stored(node, MESSAGE, kind="queue" if kind == "queue" else "channel")
                peer.receive(1)
                gateway.realm.calls.clear()
                step(gateway, peer, expected)
                gateway.do(gateway.realm.release)
                gateway.realm.answers.clear()

    return scenario


def state_then_told(state: Described | None, answer: str = "done") -> Callable[[ScriptedGateway, Peer, Expected], None]:
    """A disposition that is not settled; it is answered when the realm has answered, and not before (NF-4)."""

    def step(gateway: ScriptedGateway, peer: Peer, expected: Expected) -> None:
        realm = gateway.realm
        realm.holds.add("settle")
        realm.answers["settle"] = answer
        peer.settle([0], state, settled=False)
        if expected.native in ("acknowledge", "open"):
            gateway.until(lambda: bool(realm.calls))
            peer.nothing_at_once()
            gateway.do(realm.release)
        hears(peer, expected, 1)
        wanted = {"acknowledge": ["acknowledge 1"], "open": ["return 1"], "none": []}[expected.native]
        assert realm.calls == wanted, realm.calls

    return step


def copy_told(state: Described, *calls: str) -> Callable[[ScriptedGateway, Peer, Expected], None]:
    """Of a plain subscriber, for whom the journal is not asked: answered at once. `calls`: what the realm is asked."""

    def step(gateway: ScriptedGateway, peer: Peer, expected: Expected) -> None:
        peer.settle([0], state, settled=False)
        hears(peer, expected, 1)
        assert gateway.realm.calls == [*calls], gateway.realm.calls

    return step


def settled_without_a_state(gateway: ScriptedGateway, peer: Peer, expected: Expected) -> None:
    """The default outcome decides, with its native effect (1.3-O); who has settled hears nothing more."""
    peer.settle([0], None, settled=True)
    gateway.until(lambda: bool(gateway.realm.calls))
    assert (expected.outcome, expected.native) == ("accepted", "acknowledge")
    assert gateway.realm.calls == ["acknowledge 1"], gateway.realm.calls
    peer.nothing_at_once()
    gateway.until(lambda: gateway.gateway.outcomes.open == 0)


def silent_then_settled(gateway: ScriptedGateway, peer: Peer, expected: Expected) -> None:
    """Without a state and not settled a disposition says nothing yet: it is legal in AMQP 1.0, and means nothing."""
    peer.settle([0], None, settled=False)
    peer.nothing_at_once()
    assert gateway.realm.calls == []
    settled_without_a_state(gateway, peer, expected)


def accepted_again(gateway: ScriptedGateway, peer: Peer, expected: Expected) -> None:
    """Settled here means settled by the gateway (1.3-A)."""
    peer.settle([0], frames.state("accepted"), settled=False)
    assert peer.outcomes(1) == {0: "accepted"}
    peer.settle([0], frames.state("accepted"), settled=False)
    hears(peer, expected, 1)
    assert gateway.realm.calls == ["acknowledge 1"], gateway.realm.calls


def transactional_refused(condition: str) -> Callable[[ScriptedGateway, Peer, Expected], None]:
    def step(gateway: ScriptedGateway, peer: Peer, _: Expected) -> None:
        peer.settle([0], TRANSACTIONAL, settled=False)
        assert peer.detached(1) == condition
        assert all(call.startswith("return") for call in gateway.realm.calls), gateway.realm.calls

    return step


# -- attaching


def subscribe(gateway: ScriptedGateway, expected: Expected) -> None:
    """S-A3 is an attach-time row (1.3-B): the link is confirmed when the realm has completed the subscription."""
    kinds = (gateway.channel, 0, "plain"), (gateway.channel, 2, "durable"), (gateway.queue, 0, "queue")
    for node, durability, mode in kinds:
        for rcv in (0, 1):
            gateway.realm.calls.clear()
            gateway.realm.holds.add("subscribe")
            with Peer(gateway.port) as peer:
                peer.send(frames.attach_receiver(frames.source(node, durability), rcv=rcv))
                gateway.until(lambda: bool(gateway.realm.calls))
                peer.nothing_at_once()
                gateway.do(gateway.realm.release)
                attached = peer.expect("attach")
                assert attached.field(5) is not None and expected.error is None
                assert gateway.realm.calls == [f"{expected.native} {mode}"]


def subscribing_fails(answer: str) -> Scenario:
    """At attach: a null source and a closing DETACH (1.3-B)."""

    def scenario(gateway: ScriptedGateway, expected: Expected) -> None:
        with Peer(gateway.port) as peer:
            filters = gateway.fail_attach(answer, peer)
            peer.send(frames.attach_receiver(frames.source(gateway.channel, 2, filters=filters)))
            assert peer.refused() == expected.error

    return scenario


def subscription_fails(answer: str, condition: str | None = None) -> Scenario:
    """Later: what is in flight is rejected, then the link is detached (1.3-B, 1.3-P). `condition`: another one."""

    def scenario(gateway: ScriptedGateway, expected: Expected) -> None:
        with Peer(gateway.port) as peer:
            peer.consumer(frames.source(gateway.channel, 2), credit=1)
            peer.stored(gateway.channel, MESSAGE, kind="channel")
            peer.receive(1)
            gateway.lose(answer)
            error = condition or expected.error
            assert peer.outcomes(1) == {0: f"{expected.outcome}:{error}"}
            assert peer.detached(1) == error

    return scenario


def durable_deleted(condition: str | None = None) -> Scenario:
    """Before its consumer settles what it has: as any subscription that ends."""

    def scenario(gateway: ScriptedGateway, expected: Expected) -> None:
        with Peer(gateway.port) as peer:
            peer.consumer(frames.source(gateway.channel, 2), credit=1)
            peer.stored(gateway.channel, MESSAGE, kind="channel")
            peer.receive(1)
            gateway.delete_durables()
            error = condition or expected.error
            assert peer.outcomes(1) == {0: f"{expected.outcome}:{error}"}
            assert peer.detached(1) == error

    return scenario


def coordinator_refused(*capabilities: str) -> Scenario:
    """No coordinator, so nothing is advertised, declared or discharged (1.3-F)."""

    def scenario(gateway: ScriptedGateway, _: Expected) -> None:
        wanted = Array(0xA3, [Symbol(capability) for capability in capabilities]) if capabilities else None
        with Peer(gateway.port) as peer:
            peer.send(frames.attach_sender(Described(ULong(0x30), [wanted])))
            attached = peer.expect("attach")
            assert attached.field(6) is None, attached
            detached = peer.expect("detach")
            assert detached.condition == "amqp:not-implemented"
            peer.nothing_at_once()
            assert gateway.realm.calls == []

    return scenario
