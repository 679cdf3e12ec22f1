"""Scenarios for the rows about transactions, as `scenarios`: what is done inside of one, and what becomes of it."""

from __future__ import annotations

from tests.kit.tables.um_rows import Expected
from tests.kit.wire import frames
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.kit.wire.transacting import Transacting
from tests.wire.um.scenarios import MESSAGE, Scenario
from transformers.codec import Array, Described, Symbol, ULong


def offered(capability: str, wanted: bool) -> Scenario:
    """Asked for, it is offered or it is not."""

    def scenario(gateway: ScriptedGateway, _: Expected) -> None:
        capabilities = Array(0xA3, [Symbol(capability), Symbol("amqp:local-transactions")])
        with Transacting(gateway.port) as peer:
            peer.send(frames.attach_sender(Described(ULong(0x30), [capabilities]), 7))
            offers = [str(symbol) for symbol in peer.expect("attach").field(6).value[0].items]
            assert (capability in offers) is wanted, offers

    return scenario


def declared(gateway: ScriptedGateway, _: Expected) -> None:
    with Transacting(gateway.port) as peer:
        assert peer.begun()
        assert gateway.realm.calls == [], "nothing is held open in the log"


def discharged(gateway: ScriptedGateway, _: Expected) -> None:
    """Committed, and rolled back."""
    _discharge(gateway, ("done", False, "accepted", ["commit 0 1"]), ("done", True, "accepted", []))


def discharged_in_vain(gateway: ScriptedGateway, _: Expected) -> None:
    """It cannot be honoured."""
    _discharge(gateway, ("unexpected", False, "rejected:amqp:transaction:rollback", ["commit 0 1"]))


def _discharge(gateway: ScriptedGateway, *cases: tuple[str, bool, str, list[str]]) -> None:
    for answer, fail, outcome, calls in cases:
        with Transacting(gateway.port) as peer:
            peer.publisher(gateway.queue)
            transaction = peer.begun()
            peer.post(transaction, MESSAGE)
            peer.dispositions(1)
            gateway.realm.calls.clear()
            gateway.realm.answers["commit"] = answer
            assert peer.discharge(transaction, fail) == outcome
            assert gateway.realm.calls == calls


def posted(gateway: ScriptedGateway, _: Expected) -> None:
    """Published by the discharge; until then accepted only provisionally, and settled at once or with it."""
    with Transacting(gateway.port) as peer:
        peer.settles = _settles(gateway)
        peer.publisher(gateway.queue)
        transaction = peer.begun()
        [number] = peer.post(transaction, MESSAGE)
        peer.promised(number)
        peer.post(transaction, MESSAGE, settled=True)
        peer.nothing_at_once()
        assert gateway.realm.calls == []
        assert peer.discharge(transaction) == "accepted"
        assert gateway.realm.calls == ["commit 0 2"]
        peer.ended(number)


def posting_refused(answer: str) -> Scenario:
    """Rejected inside the transactional state, and settled at once or with the discharge (1.3-I)."""

    def scenario(gateway: ScriptedGateway, expected: Expected) -> None:
        with Transacting(gateway.port) as peer:
            peer.settles = _settles(gateway)
            peer.publisher(gateway.queue)
            transaction = peer.begun()
            gateway.realm.answers["post"] = answer
            gateway.realm.calls.clear()
            [number] = peer.post(transaction, MESSAGE)
            if expected.closes:
                assert peer.until("detach").condition == expected.error
            else:
                peer.promised(number, state=f"rejected:{expected.error}")
            assert peer.discharge(transaction) == "accepted"
            if not expected.closes:
                peer.ended(number, state=f"rejected:{expected.error}")
            assert gateway.realm.calls == []

    return scenario


def retired(gateway: ScriptedGateway, _: Expected) -> None:
    """Nothing happens before the discharge; then it is acknowledged, told and settled (1.3-H)."""
    with Transacting(gateway.port) as peer:
        transaction = _given(gateway, peer)
        peer.retire(transaction, 0)
        peer.nothing_at_once()
        assert gateway.realm.calls == []
        assert peer.discharge(transaction) == "accepted"
        assert gateway.realm.calls == ["commit 1 0"]
        assert peer.dispositions(1) == {0: ("accepted", True)}


def retired_in_vain(gateway: ScriptedGateway, _: Expected) -> None:
    """The discharge is refused, and the delivery is the consumer's as before (W-10)."""
    with Transacting(gateway.port) as peer:
        transaction = _given(gateway, peer)
        gateway.fail_retiring()
        peer.retire(transaction, 0)
        assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"
        peer.nothing_at_once()
        peer.settle([0], frames.state("accepted"), settled=False)
        assert peer.dispositions(1) == {0: ("accepted", True)}
        assert gateway.realm.calls == ["commit 1 0", "acknowledge 1"]


def _settles(gateway: ScriptedGateway) -> bool:
    """What is posted is settled at once."""
    return gateway.tables.profile == "extended"


def _given(gateway: ScriptedGateway, peer: Transacting) -> bytes:
    """A durable subscriber's event, and a transaction."""
    peer.consumer(frames.source(gateway.channel, 2), credit=1)
    peer.stored(gateway.channel, MESSAGE, kind="channel")
    peer.receive(1)
    transaction = peer.begun()
    gateway.realm.calls.clear()
    return transaction
