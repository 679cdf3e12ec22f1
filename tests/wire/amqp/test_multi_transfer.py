"""A message in several transfers is the same message: inside a transaction and outside, whole or cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mappings import load_tables
from native_backend.nodes.answers import NodeFound
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.scenarios.environment import MODES, Environment
from tests.kit.scenarios.table_scenarios import run_scenario
from tests.kit.scenarios.transaction_scenarios import TRANSACTION, begin
from tests.kit.wire import frames
from tests.kit.wire.splitting import in_several_transfers, split
from tests.kit.wire.transacting import Transacting
from transformers.codec import Described, UInt

TABLES = load_tables()
DOCUMENTED = load_tables(profile="um-9.12")
ONE = frames.message(b"one")
Facts = dict[str, str]


def cells_of(name: str) -> list[Facts]:
    """Of a table, those in whose scenario a peer sends messages."""
    cells = [TABLES[name].facts(decision.cell) for decision in TABLES[name].cells if decision is not None]
    return [facts for facts in cells if name not in ("attach", "attached") or facts["direction"] == "publish"]


RELAY = [
    dict(zip(("to", "known", "mode", "transaction"), values, strict=True))
    for values in product(("q", "missing", "nowhere"), ("yes", "asked-for"), MODES, ("no", "commit", "rollback"))
]
CELLS = {
    "relay": RELAY,
    **{
        name: cells_of(name)
        for name in (
            "attach", "attached", "publish", "published", "posted", "coordinate", "committed", "fault", "default",
        )
    },
}  # fmt: skip
SETTLE = cells_of("settle")


def run_relay(facts: Facts) -> list[Any]:
    """Two messages on a link without a target, one of them to where it can go."""
    env = Environment(TABLES)
    if facts["known"] == "asked-for":
        _ask_for_nodes(env)
    peer = env.peer("peer")
    inside = facts["transaction"] != "no"
    if inside:
        begin(env, peer)
    peer.say(frames.attach_sender(frames.target(None), 0, "relay", MODES.index(facts["mode"])))
    state = frames.in_transaction(TRANSACTION) if inside else None
    env.realm.holds.add("find")
    for to in ("q", None if facts["to"] == "nowhere" else facts["to"]):
        settled = facts["mode"] == "settled"
        peer.say(frames.transfer(peer.number(), frames.message_to(to), settled=settled, state=state))
    if inside:
        peer.say(frames.discharge(peer.number(), TRANSACTION, fail=facts["transaction"] == "rollback"))
    env.realm.release()
    return env.show()


def _ask_for_nodes(env: Environment) -> None:
    """The realm knows no node before it was asked for it, so a message waits for that."""
    realm, node = env.realm, env.realm.node

    def find(name: str, owner: object) -> None:
        target = None if name.startswith("missing") else node(name)
        realm.answer("find", NodeFound(owner, target, "ready" if target else "not-found", ""))

    realm.find_node = find  # type: ignore[method-assign]
    realm.node = lambda name: None  # type: ignore[method-assign,assignment,return-value]


def run(name: str, facts: Facts) -> list[Any]:
    """What every peer heard, but for flows, which count transfers."""
    seen = run_relay(facts) if name == "relay" else run_scenario(name, facts, TABLES)
    return [frame for frame in seen if frame[0] != "flow"]


@cache
def whole(name: str, at: int) -> list[Any]:
    return run(name, CELLS[name][at])


def differ(name: str, at: int, seed: int) -> bool:
    with in_several_transfers(Random(seed)):
        return run(name, CELLS[name][at]) != whole(name, at)


@pytest.mark.parametrize("name", CELLS)
def test_every_scenario_goes_the_same_in_several_transfers(name: str) -> None:
    """Each cell, cut once; `..._however_they_are_cut` cuts it in three more ways."""
    assert not [CELLS[name][at] for at in range(len(CELLS[name])) if differ(name, at, at)]


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("seed", range(3))
def test_all_scenarios_go_the_same_however_they_are_cut(name: str, seed: int) -> None:
    count = len(CELLS[name])
    assert not [CELLS[name][at] for at in range(count) if differ(name, at, (seed + 1) * 10_000 + at)]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SETTLE), st.randoms(use_true_random=False))
def test_what_consumers_settle_goes_the_same_in_several_transfers(facts: Facts, random: Random) -> None:
    """Their scenarios differ in what consumers say; messages are published, and requests made, in a few ways."""
    expected = run("settle", facts)
    with in_several_transfers(random):
        assert run("settle", facts) == expected


def test_all_that_consumers_settle_goes_the_same_in_several_transfers() -> None:
    different = []
    for at, facts in enumerate(SETTLE):
        expected = run("settle", facts)
        with in_several_transfers(Random(at)):
            if run("settle", facts) != expected:
                different.append(facts)
    assert not different


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([*CELLS["publish"], *CELLS["posted"]]), st.randoms(use_true_random=False))
def test_where_it_may_not_be_split_nothing_of_it_is_stored(facts: Facts, random: Random) -> None:
    """The documented profiles turn it away."""
    with in_several_transfers(random):
        seen = run_scenario("posted" if "answer" in facts else "publish", facts, DOCUMENTED)
    assert not [frame for frame in seen if frame[0] == "transfer"]


def test_the_cuts_leave_out_all_that_may_be_left_out() -> None:
    """Of a message as of its parts: each field of a later transfer said and not said, empty parts, short lists."""
    state = frames.in_transaction(b"txn")
    message = frames.transfer(0, ONE, settled=True, state=state, rcv=0)
    counts, lengths, empty = set(), set(), False
    presence: dict[tuple[bool, int], set[bool]] = {}  # by first or later, and field: was it there?
    for seed in range(300):
        cut, rest = frames.read(split(message, Random(seed)))
        assert not rest
        assert b"".join(part.payload for part in cut) == ONE
        assert [bool(part.field(5)) for part in cut] == [True] * (len(cut) - 1) + [False]
        assert any(part.field(4) for part in cut)
        counts.add(len(cut))
        for at, part in enumerate(cut):
            lengths.add(len(part.fields))
            empty = empty or not part.payload
            for field in range(11):
                presence.setdefault((at > 0, field), set()).add(part.field(field) is not None)
    assert counts == {2, 3, 4} and empty and {*range(2, 12)} >= lengths >= {8, 9, 10, 11}
    always = {(False, 0), (False, 1), (False, 2), (False, 5), (False, 6), (False, 7), (True, 0)}
    assert {key for key, was in presence.items() if was == {True}} == always
    assert {key for key, was in presence.items() if was == {False}} == set()


@pytest.fixture
def peer(gateway: GatewayProcess) -> Iterator[Transacting]:
    with Transacting(gateway.port) as made:
        yield made


def parts(number: int, *specs: list[Any]) -> bytes:
    """One delivery of `ONE`, one transfer for each list of further fields, from the delivery-id on."""
    size = len(ONE) // len(specs) + 1
    pieces = [ONE[at * size : (at + 1) * size] for at in range(len(specs))]
    return b"".join(
        frames.frame(frames.TRANSFER, [UInt(0), *fields], piece) for fields, piece in zip(specs, pieces, strict=True)
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


def test_1_3_J_a_message_of_which_a_part_is_there_ends_the_control_link(peer: Transacting, node: str) -> None:
    """At the discharge. What comes later of it is of no transaction any more, and is not stored."""
    peer.publisher(node)
    transaction = peer.begun()
    number = peer.number()
    peer.send(parts(number, first(number, frames.in_transaction(transaction))))
    peer.send(frames.discharge(peer.number(), transaction))
    assert peer.expect("detach").condition == "amqp:transaction:rollback"
    peer.send(frames.frame(frames.TRANSFER, [UInt(0)], b""))
    assert peer.outcomes(1) == {number: "rejected:amqp:transaction:unknown-id"}
    peer.there(node, 0)


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


@pytest.mark.requirement("W-5")
@pytest.mark.parametrize("count", [1, 5])
def test_whole_messages_behind_the_end_of_their_link_fail_their_discharge(
    gateway: GatewayProcess, node: str, count: int
) -> None:
    """What ended the link was of no transaction."""
    with Transacting(gateway.port) as peer:
        peer.publisher(node)
        transaction = peer.begun()
        state = frames.in_transaction(transaction)
        wrong, *numbers = (peer.number() for _ in range(count + 1))
        posted = (frames.transfer(number, ONE, state=state) for number in numbers)
        peer.send(frames.transfer(wrong, ONE, tag=b"t" * 33), *posted)
        peer.detached(0)
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
