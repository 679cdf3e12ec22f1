"""Outcomes that are stated inside a transaction too late: their delivery is not unsettled here any more, so what was
asked for cannot be done, and the transaction can only be rolled back (W-5). A set names each delivery in its range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.cli.stored_tables import documents
from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.transacting import Transacting
from tests.wire.conftest import serve
from transformers.codec import Described, ULong

ONE, TWO = frames.message(b"one"), frames.message(b"two")
ACCEPTED = frames.state("accepted")
ROLLED_BACK = "rejected:amqp:transaction:rollback"


def its_link_is_closed(peer: Transacting, given: list[int], _: bytes) -> int:
    peer.leave()
    return 3


def it_was_accepted_before(peer: Transacting, given: list[int], _: bytes) -> int:
    peer.settle(given[1:2], ACCEPTED)
    return 2


def it_was_released_before(peer: Transacting, given: list[int], _: bytes) -> int:
    peer.settle(given[1:2], frames.state("released"))
    return 3


def another_has_it(peer: Transacting, given: list[int], another: bytes) -> int:
    peer.retire(another, given[1])
    return 2


GONE = [its_link_is_closed, it_was_accepted_before, it_was_released_before, another_has_it]


@pytest.mark.requirement("W-5")
@pytest.mark.parametrize("as_one", ["one by one", "a set"])
@pytest.mark.parametrize("gone", GONE)
def test_W_5_an_outcome_for_a_delivery_that_is_gone_fails_the_discharge(
    gateway: GatewayProcess, node: str, gone: Callable[[Transacting, list[int], bytes], int], as_one: str
) -> None:
    """In the same breath as the discharge, too; what the others were given inside counts for nothing."""
    with Transacting(gateway.port) as peer:
        peer.stored(node, ONE, ONE, ONE)
        peer.control()
        transaction, another = peer.declare(), peer.declare()
        peer.consumer(node, credit=3)
        given = [event.field(1) for event in peer.receive(3)]
        left = gone(peer, given, another)
        state = frames.in_transaction(transaction, ACCEPTED)
        ranges = [(given[0], given[2])] if as_one == "a set" else [(delivery, delivery) for delivery in given]
        stated = [frames.disposition(first, last, state) for first, last in ranges]
        number = peer.number()
        peer.send(*stated, frames.discharge(number, transaction))
        assert peer.until_told([], number)[number] == ROLLED_BACK
        assert peer.discharge(another) == "accepted", "the other transaction is whole"
        peer.seen.clear()
        peer.send(frames.close())
        peer.closed()
        assert len(peer.there(node, left)) == left


@pytest.mark.requirement("W-5")
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "alone"])
def test_W_5_an_outcome_behind_the_end_of_its_durables_link_fails_the_discharge(
    gateway: GatewayProcess, node: str, shared: bool
) -> None:
    """Closed, accepted and discharged in one breath: the answer to the DETACH waits, because the durable ends with its
    last consumer. While another has it, that gets the event."""
    source = frames.source(node, 2, capability="shared,topic", expiry="never")
    with Transacting(gateway.port) as peer, Transacting(gateway.port, peer.container) as other:
        peer.consumer(source)
        if shared:
            other.consumer(source, name="sub|2")
        peer.stored(node, ONE, kind="channel")
        transaction = peer.begun()
        peer.credit(1)
        [given] = peer.receive(1)
        state = frames.in_transaction(transaction, ACCEPTED)
        stated = frames.disposition(given.field(1), given.field(1), state)
        number = peer.number()
        peer.send(frames.detach(1), stated, frames.discharge(number, transaction))
        assert peer.until_told([], number)[number] == ROLLED_BACK
        if shared:
            other.credit(1)
            assert [event.payload for event in other.receive(1)] == [ONE]


@pytest.mark.requirement("W-4", "G-3")
@pytest.mark.parametrize("fail", [True, False], ids=["rolled back", "refused"])
@pytest.mark.parametrize("where", ["shared", "alone", "dynamic"])
def test_W_4_a_rollback_behind_the_end_of_its_link_gives_the_default_outcome(
    tmp_path_factory: pytest.TempPathFactory, where: str, fail: bool
) -> None:
    """Accepted, closed and rolled back in one breath: the DETACH is not answered yet, and the link has ended. Each
    delivery has its outcome, so the run ends in order."""
    for gateway in serve(tmp_path_factory):
        with Transacting(gateway.port) as peer, Transacting(gateway.port, peer.container) as other:
            (done, given), transaction = _given_two(peer, other, where)
            peer.settle([done], ACCEPTED)
            state = frames.in_transaction(transaction, ACCEPTED)
            stated = frames.disposition(given, given, state, settled=False)
            late = [] if fail else [frames.disposition(done, done, state)]  # so the discharge is refused
            number = peer.number()
            peer.send(stated, frames.detach(1), *late, frames.discharge(number, transaction, fail))
            assert peer.until_told([], number)[number] == ("accepted" if fail else ROLLED_BACK)
            if where == "shared":
                other.credit(1)
                assert [event.payload for event in other.receive(1)] == [ONE]
                other.settle([0], ACCEPTED)
        gateway.stop()
        *_, last = outcome_records(gateway)
        assert (last["closed"], last["low"]) == (1, last["next"])


def _given_two(peer: Transacting, other: Transacting, where: str) -> tuple[list[int], bytes]:
    """The delivery-ids of the events that `peer` has, and its transaction. Where the durable is shared, `other` has a
    link to it, too."""
    source = frames.source("any.events", 2, capability="shared,topic", expiry="never")
    attached = peer.consumer(source if where != "dynamic" else frames.source(None, dynamic=True))
    if where == "shared":
        other.consumer(source, name="sub|2")
    if where == "dynamic":
        peer.stored(str(attached.field(5).value[0]), TWO, ONE)
    else:
        peer.stored("any.events", TWO, ONE, kind="channel")
    transaction = peer.begun()
    peer.credit(2)
    return [event.field(1) for event in peer.receive(2)], transaction


def outcome_records(gateway: GatewayProcess) -> list[dict[str, Any]]:
    settings = load_settings(gateway.config_path)
    log = open_log(settings)
    try:
        return list(documents(log, f"{settings.realm.prefix}.outcomes"))
    finally:
        log.close()


@pytest.mark.requirement("W-5")
def test_W_5_the_same_again_in_the_same_transaction_is_carried_out(gateway: GatewayProcess, node: str) -> None:
    """Alone, in a set with others, and in the same breath as the first time."""
    with Transacting(gateway.port) as peer:
        peer.stored(node, ONE, ONE, ONE)
        transaction = peer.begun()
        peer.consumer(node, credit=3)
        given = [event.field(1) for event in peer.receive(3)]
        peer.retire(transaction, given[0])
        peer.retire(transaction, given[0])
        peer.send(frames.disposition(given[0], given[2], frames.in_transaction(transaction, ACCEPTED), settled=False))
        assert peer.discharge(transaction) == "accepted"
        peer.seen.clear()
        peer.there(node, 0)


@pytest.mark.requirement("W-5")
def test_W_5_what_was_sent_settled_cannot_be_retired(gateway: GatewayProcess, node: str) -> None:
    """Nothing is known of it any more."""
    with Transacting(gateway.port) as peer:
        peer.stored(node, ONE)
        transaction = peer.begun()
        peer.consumer(node, credit=1, mode=1)
        [given] = peer.receive(1)
        peer.retire(transaction, given.field(1))
        assert peer.discharge(transaction) == ROLLED_BACK


@pytest.mark.requirement("W-5")
def test_W_5_many_outcomes_of_two_transactions_are_each_counted_in_its_own(gateway: GatewayProcess, node: str) -> None:
    """One breath of dispositions: one of the first transaction names a delivery that is gone, the others are whole."""
    with Transacting(gateway.port) as peer:
        peer.stored(node, *[ONE] * 40)
        peer.control()
        torn, whole = peer.declare(), peer.declare()
        peer.consumer(node, credit=40)
        given = [event.field(1) for event in peer.receive(40)]
        peer.settle(given[7:8], ACCEPTED)
        states = [frames.in_transaction(txn, ACCEPTED) for txn in (torn, whole)]
        peer.send(*(frames.disposition(number, number, states[at // 10 % 2]) for at, number in enumerate(given)))
        assert peer.discharge(whole) == "accepted"
        assert peer.discharge(torn) == ROLLED_BACK
        peer.send(frames.close())
        peer.closed()
        assert len(peer.there(node, 19)) == 19


def test_a_set_over_two_links_is_carried_out(gateway: GatewayProcess, node: str) -> None:
    """Deliveries of a session are counted together, on whichever of its links they came."""
    with Transacting(gateway.port) as peer:
        peer.stored(node, ONE, ONE)
        peer.stored(f"{node}.second", ONE)
        transaction = peer.begun()
        peer.consumer(node)
        peer.consumer(f"{node}.second", handle=2, name="second")
        peer.credit(2)
        peer.credit(1, handle=2)
        given = sorted(event.field(1) for handle, count in ((1, 2), (2, 1)) for event in peer.receive(count, handle))
        peer.send(frames.disposition(given[0], given[-1], frames.in_transaction(transaction, ACCEPTED)))
        assert peer.discharge(transaction) == "accepted"
        peer.there(node, 0)
        peer.there(f"{node}.second", 0)


REFUSED = {
    "an outcome that its source does not list": (frames.state("rejected"), "amqp:not-allowed"),
    "a state that AMQP does not define": (Described(ULong(0x77), []), "amqp:not-implemented"),
}


@pytest.mark.requirement("W-5", "I-7")
@pytest.mark.parametrize("refused", REFUSED)
def test_W_5_an_outcome_that_ends_its_link_fails_the_discharge(
    gateway: GatewayProcess, node: str, refused: str
) -> None:
    """To commit the others would tear the transaction: both events are there again."""
    outcome, condition = REFUSED[refused]
    with Transacting(gateway.port) as peer:
        peer.stored(node, ONE, ONE)
        transaction = peer.begun()
        peer.consumer(frames.source(node, outcomes=["accepted"]), credit=2)
        given = [event.field(1) for event in peer.receive(2)]
        peer.retire(transaction, given[0])
        peer.retire(transaction, given[1], outcome=outcome)
        assert peer.detached(1) == condition
        peer.send(frames.detach(1))
        assert peer.discharge(transaction) == ROLLED_BACK
        assert len(peer.there(node, 2)) == 2


@pytest.mark.requirement("W-5")
def test_W_5_more_outcomes_than_a_transaction_takes_fail_the_discharge(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for gateway in serve(tmp_path_factory, limits={"transaction_deliveries": 2}):
        with Transacting(gateway.port) as peer:
            peer.stored("any.orders", ONE, ONE, ONE)
            transaction = peer.begun()
            peer.consumer("any.orders", credit=3)
            given = [event.field(1) for event in peer.receive(3)]
            for number in given:
                peer.retire(transaction, number)
            assert peer.detached(1) == "amqp:resource-limit-exceeded"
            peer.send(frames.detach(1))
            assert peer.discharge(transaction) == ROLLED_BACK
            assert len(peer.there("any.orders", 3)) == 3
