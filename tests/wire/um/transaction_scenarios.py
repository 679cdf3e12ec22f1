"""Plays for the rows about transactions, as `um_plays`: what is done inside of one, and what becomes of it."""

from __future__ import annotations

from tests.wire import frames
from tests.wire.tcp_house import TcpHouse
from tests.wire.transacting import Transacting
from tests.wire.um_expectations import Expected
from tests.wire.um_plays import MESSAGE, QUIET_S, Play
from transformers.amqp_types import Array, Described, Symbol, ULong


def offered(capability: str, wanted: bool) -> Play:
    """Asked for, it is offered or it is not."""

    def play(house: TcpHouse, _: Expected) -> None:
        asked = Array(0xA3, [Symbol(capability), Symbol("amqp:local-transactions")])
        with Transacting(house.port) as peer:
            peer.send(frames.attach_sender(Described(ULong(0x30), [asked]), 7))
            said = [str(each) for each in peer.expect("attach").field(6).value[0].items]
            assert (capability in said) is wanted, said

    return play


def declared(house: TcpHouse, _: Expected) -> None:
    with Transacting(house.port) as peer:
        assert peer.begun()
        assert house.realm.calls == [], "nothing is held open in the log"


def discharged(house: TcpHouse, _: Expected) -> None:
    """Committed, rolled back, and one that cannot be honoured."""
    for answer, fail, said, calls in (
        ("done", False, "accepted", ["commit 0 1"]),
        ("done", True, "accepted", []),
        ("unexpected", False, "rejected:amqp:transaction:rollback", ["commit 0 1"]),
    ):
        with Transacting(house.port) as peer:
            peer.publisher("q")
            transaction = peer.begun()
            peer.post(transaction, MESSAGE)
            peer.told(1)
            house.realm.calls.clear()
            house.realm.answers["commit"] = answer
            assert peer.discharge(transaction, fail) == said
            assert house.realm.calls == calls


def posted(house: TcpHouse, _: Expected) -> None:
    """Published by the discharge; until then accepted only provisionally, and settled at once or with it."""
    with Transacting(house.port) as peer:
        peer.settles = _settles(house)
        peer.publisher("q")
        transaction = peer.begun()
        [number] = peer.post(transaction, MESSAGE)
        peer.promised(number)
        peer.post(transaction, MESSAGE, settled=True)
        peer.nothing(QUIET_S)
        assert house.realm.calls == []
        assert peer.discharge(transaction) == "accepted"
        assert house.realm.calls == ["commit 0 2"]
        peer.ended(number)


def posting_refused(answer: str) -> Play:
    """Rejected inside the transactional state, and settled at once or with the discharge (1.3-I)."""

    def play(house: TcpHouse, expected: Expected) -> None:
        with Transacting(house.port) as peer:
            peer.settles = _settles(house)
            peer.publisher("q")
            transaction = peer.begun()
            house.realm.answers["post"] = answer
            [number] = peer.post(transaction, MESSAGE)
            if expected.closes:
                assert peer.until("detach").condition == expected.error
            else:
                peer.promised(number, state=f"rejected:{expected.error}")
            assert peer.discharge(transaction) == "accepted"
            if not expected.closes:
                peer.ended(number, state=f"rejected:{expected.error}")
            assert house.realm.calls == []

    return play


def retired(house: TcpHouse, _: Expected) -> None:
    """Nothing happens before the discharge; then it is acknowledged, told and settled (1.3-H)."""
    with Transacting(house.port) as peer:
        transaction = _given(house, peer)
        peer.retire(transaction, 0)
        peer.nothing(QUIET_S)
        assert house.realm.calls == []
        assert peer.discharge(transaction) == "accepted"
        assert house.realm.calls == ["commit 1 0"]
        assert peer.told(1) == {0: ("accepted", True)}


def retired_in_vain(house: TcpHouse, _: Expected) -> None:
    """The discharge is refused, and the delivery is the consumer's as before (W-10)."""
    with Transacting(house.port) as peer:
        transaction = _given(house, peer)
        house.realm.answers["commit"] = "unexpected"
        peer.retire(transaction, 0)
        assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"
        peer.nothing(QUIET_S)
        peer.settle([0], frames.state("accepted"), settled=False)
        assert peer.told(1) == {0: ("accepted", True)}
        assert house.realm.calls == ["commit 1 0", "acknowledge 1"]


def _settles(house: TcpHouse) -> bool:
    """What is posted is settled at once."""
    return house.tables.profile == "extended"


def _given(house: TcpHouse, peer: Transacting) -> bytes:
    """A durable subscriber's event, and a transaction."""
    peer.consumer(frames.source("c", 2), credit=1)
    peer.stored("c", MESSAGE, kind="channel")
    peer.receive(1)
    transaction = peer.begun()
    house.realm.calls.clear()
    return transaction
