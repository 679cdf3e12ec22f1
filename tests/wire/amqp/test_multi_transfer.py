"""A message in several transfers is the same message: inside a transaction and outside, whole or cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.scenarios.table_scenarios import run_scenario
from tests.kit.wire import frames
from tests.kit.wire.splitting import in_several_transfers
from tests.kit.wire.transacting import Transacting
from transformers.codec import Described, UInt

TABLES = load_tables()
DOCUMENTED = load_tables(profile="um-9.12")
ONE = frames.message(b"one")
PUBLISHING = ("publish", "published", "posted", "coordinate", "committed", "settle", "fault", "default")
CELLS = [
    (name, facts)
    for name in PUBLISHING
    for facts in (TABLES[name].facts(each.cell) for each in TABLES[name].cells if each is not None)
]


def told(seen: list[Any]) -> list[Any]:
    """But for flows, which count transfers."""
    return [frame for frame in seen if frame[0] != "flow"]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(CELLS), st.randoms(use_true_random=False))
def test_every_scenario_goes_the_same_in_several_transfers(cell: tuple[str, dict[str, str]], random: Random) -> None:
    name, facts = cell
    whole = run_scenario(name, facts, TABLES)
    with in_several_transfers(random):
        split = run_scenario(name, facts, TABLES)
    assert told(split) == told(whole)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([each for each in CELLS if each[0] in ("publish", "posted")]), st.randoms(use_true_random=False))
def test_where_it_may_not_be_split_nothing_of_it_is_stored(cell: tuple[str, dict[str, str]], random: Random) -> None:
    """The documented profiles turn it away."""
    name, facts = cell
    with in_several_transfers(random):
        split = run_scenario(name, facts, DOCUMENTED)
    assert not [frame for frame in split if frame[0] == "transfer"]


@pytest.fixture
def peer(gateway: GatewayProcess) -> Iterator[Transacting]:
    with Transacting(gateway.port) as made:
        yield made


def parts(number: int, *said: list[Any]) -> bytes:
    """One delivery of `ONE`, one transfer for each list of further fields, from the delivery-id on."""
    size = len(ONE) // len(said) + 1
    pieces = [ONE[at * size : (at + 1) * size] for at in range(len(said))]
    return b"".join(
        frames.frame(frames.TRANSFER, [UInt(0), *fields], piece) for fields, piece in zip(said, pieces, strict=True)
    )


def first(number: int, state: Described | None = None) -> list[Any]:
    return [UInt(number), b"%d" % number, UInt(0), None, True, None, state]


@pytest.mark.requirement("W-4", "W-5")
@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_later_transfer_without_a_state_is_of_the_firsts_transaction(
    peer: Transacting, node: str, count: int, fail: bool
) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    number = peer.number()
    later = [[None, None, None, None, True]] * (count - 2) + [[]]
    peer.send(parts(number, first(number, frames.in_transaction(transaction)), *later))
    peer.promised(number)
    peer.there(node, 0)
    assert peer.discharge(transaction, fail=fail) == "accepted"
    assert len(peer.there(node, 0 if fail else 1)) == (0 if fail else 1)


@pytest.mark.requirement("W-5")
@pytest.mark.parametrize("which", ["another", "none-first", "an-outcome"])
def test_transfers_that_name_different_states_are_an_error(peer: Transacting, node: str, which: str) -> None:
    """The link ends, nothing of it is stored, and no transaction that was named can be committed."""
    peer.publisher(node)
    transaction = peer.begun()
    mine = frames.in_transaction(transaction)
    states = {
        "another": (mine, frames.in_transaction(b"another")),
        "none-first": (None, mine),
        "an-outcome": (mine, frames.state("accepted")),
    }
    number = peer.number()
    begun, ended = states[which]
    peer.send(parts(number, first(number, begun), [None, None, None, None, None, None, ended]))
    assert peer.detached(0) == "amqp:invalid-field"
    assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"
    peer.there(node, 0)


@pytest.mark.parametrize(
    "later",
    [[UInt(9)], [None, b"other"], [None, None, UInt(1)]],
    ids=["delivery-id", "delivery-tag", "message-format"],
)
@pytest.mark.parametrize("more", [True, False], ids=["in-the-middle", "at-the-end"])
def test_D14_a_later_transfer_says_nothing_else(peer: Transacting, node: str, later: list[Any], more: bool) -> None:
    """The link ends; its session and the other links go on, whatever else comes for the message."""
    peer.publisher(node)
    peer.publisher(f"{node}.other", handle=2)
    number = peer.number()
    odd = [*later, *[None] * (4 - len(later)), more]
    peer.send(parts(number, first(number), odd, *([[]] if more else [])))
    assert peer.detached(0) == "amqp:invalid-field"
    peer.publish(ONE, handle=2)
    assert peer.outcomes(1) == {number + 1: "accepted"}
    peer.there(node, 0)


@pytest.mark.requirement("H-15")
@pytest.mark.parametrize("later", [[], [None, None, None, None, None, None, None, True]], ids=["omitted", "repeated"])
def test_all_of_a_resumed_delivery_that_is_not_known_is_ignored(peer: Transacting, node: str, later: list[Any]) -> None:
    peer.publisher(node)
    number = peer.number()
    resumed = [*first(number), *[None] * 1]
    resumed[7:] = [True]
    peer.send(parts(number, resumed, later))
    peer.publish(ONE)
    assert peer.outcomes(1) == {number + 1: "accepted"}
    assert len(peer.there(node, 1)) == 1


@pytest.mark.requirement("W-5")
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
def test_a_message_that_is_never_whole_fails_its_discharge(peer: Transacting, node: str, closed: bool) -> None:
    """Its link goes in the middle of it."""
    peer.publisher(node)
    transaction = peer.begun()
    number = peer.number()
    peer.send(parts(number, first(number, frames.in_transaction(transaction))))
    peer.send(frames.detach(0, closed=closed))
    peer.expect("detach")
    assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"


def test_an_aborted_message_leaves_its_transaction_as_it_is(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    number = peer.number()
    peer.send(parts(number, first(number, frames.in_transaction(transaction))), frames.aborted())
    [posted] = peer.post(transaction, ONE)
    peer.promised(posted)
    assert peer.discharge(transaction) == "accepted"
    assert len(peer.there(node, 1)) == 1


@pytest.mark.requirement("W-5")
def test_what_comes_behind_the_end_of_its_link_fails_its_discharge(gateway: GatewayProcess, node: str) -> None:
    """One of several is too large, and the link ends; the rest were posted all the same, and none is stored."""
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        transaction = peer.begun()
        state = frames.in_transaction(transaction)
        numbers = [peer.number() for _ in range(6)]
        large = frames.message(b"x" * 900)
        begun = frames.transfer(numbers[0], large[:600], state=state, more=True, tag=b"t")
        wrong = frames.frame(frames.TRANSFER, [UInt(0), None, b"u"], large[600:])
        peer.send(begun, wrong, *(frames.transfer(number, ONE, state=state) for number in numbers[1:]))
        assert peer.detached(0) == "amqp:invalid-field"
        assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"
        peer.there(node, 0)


def test_a_client_that_states_the_transaction_once_sees_what_another_sees(gateway: GatewayProcess, node: str) -> None:
    """40 messages of many frames, every other one outside of the transaction."""
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        transaction = peer.begun()
        inside: list[int] = []
        outside: list[int] = []
        for at in range(40):
            number = peer.number()
            (outside if at % 2 else inside).append(number)
            state = None if at % 2 else frames.in_transaction(transaction)
            peer.send(parts(number, first(number, state), [None, None, None, None, True], [None]))
        peer.until_told(outside, max(outside))
        assert peer.discharge(transaction, fail=True) == "accepted"
        assert len(peer.there(node, 20)) == 20
