"""Transactions over a socket, frame by frame: seed 002, rows T-*, P-A6, S-A8; semantics 2.W."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import count_and_first
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import CONTROL, Transacting, request
from tests.wire.conftest import serve
from transformers.codec import Symbol

ONE, TWO, THREE = (frames.message(body) for body in (b"one", b"two", b"three"))
ACCEPTED = frames.state("accepted")
COUNTS = frames.state("modified", True)


@pytest.fixture(params=["extended", "um-9.12"])
def either(request: pytest.FixtureRequest, gateway: GatewayProcess, documented: GatewayProcess) -> GatewayProcess:
    return gateway if request.param == "extended" else documented


@pytest.fixture
def peer(either: GatewayProcess, gateway: GatewayProcess) -> Iterator[Transacting]:
    with Transacting(either.port) as made:
        made.settles = either is gateway
        yield made


# -- the control link


@pytest.mark.requirement("W-2")
def test_T_C1_to_T_C5_a_coordinator_offers_what_is_held_and_nothing_else(peer: Transacting) -> None:
    attached = peer.control()
    target = attached.field(6)
    assert target.descriptor == 0x30
    several = ["amqp:multi-txns-per-ssn"] if peer.settles else []
    assert [str(capability) for capability in target.value[0].items] == ["amqp:local-transactions", *several]


def test_1_3_F_version_9_9_refuses_the_coordinator(tmp_path_factory: pytest.TempPathFactory) -> None:
    for old in serve(tmp_path_factory, mappings={"profile": "um-9.9"}):
        with Peer(old.port) as peer:
            peer.send(frames.attach_sender(frames.COORDINATOR))
            assert peer.refused() == "amqp:not-implemented"


@pytest.mark.requirement("W-19")
def test_T_D1_W_19_a_declare_is_answered_with_an_id_of_at_most_32_octets(peer: Transacting) -> None:
    transaction = peer.begun()
    assert 0 < len(transaction) <= 32
    assert peer.discharge(transaction) == "accepted", "nothing was done in it"
    assert peer.declare() != transaction


@pytest.mark.requirement("W-20")
def test_W_20_a_transaction_belongs_to_its_session(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    peer.send(frames.begin(channel=1), frames.attach_sender(node, name="elsewhere", channel=1))
    peer.expect("begin")
    peer.expect("attach")
    peer.send(frames.transfer(0, ONE, channel=1, state=frames.in_transaction(transaction)))
    assert peer.expect("disposition").state == "rejected:amqp:transaction:unknown-id"
    assert peer.discharge(transaction) == "accepted"


@pytest.mark.requirement("W-20")
def test_W_20_the_next_declare_may_be_sent_right_behind_a_discharge(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    posted = peer.post(transaction, ONE)
    peer.promised(*posted)
    discharge, declare = peer.number(), peer.number()
    peer.send(frames.discharge(discharge, transaction), frames.declare(declare))
    wanted = dict.fromkeys([discharge] if peer.settles else [discharge, *posted], ("accepted", True))
    assert peer.dispositions(1 + len(wanted)) == {**wanted, declare: ("declared", True)}


@pytest.mark.requirement("W-21")
def test_W_21_descriptors_may_be_symbolic(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    peer.control()
    peer.send(frames.request(peer.number(), request(Symbol("amqp:declare:list"), [None])))
    transaction = peer.expect("disposition").field(4).value[0]
    peer.post(transaction, ONE)
    peer.dispositions(1)
    number = peer.number()
    peer.send(frames.request(number, request(Symbol("amqp:discharge:list"), [transaction, False])))
    assert peer.dispositions(1 if peer.settles else 2)[number] == ("accepted", True)
    assert len(peer.there(node, 1)) == 1


@pytest.mark.requirement("W-12")
@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (frames.declare(0, settled=True), "amqp:not-allowed"),
        (frames.request(0, request(0x77, [])), "amqp:invalid-field"),
        (frames.transfer(0, b"garbage", CONTROL), "amqp:invalid-field"),
    ],
    ids=["W-12-presettled", "neither", "no-message"],
)
def test_what_is_no_request_ends_the_control_link(peer: Transacting, octets: bytes, condition: str) -> None:
    peer.control()
    peer.send(octets)
    assert peer.detached(CONTROL) == condition


@pytest.mark.requirement("W-19")
def test_W_19_a_distributed_transaction_is_refused(peer: Transacting) -> None:
    peer.control()
    peer.send(frames.declare(peer.number(), global_id=b"xid"))
    assert list(peer.dispositions(1).values()) == [("rejected:amqp:not-implemented", True)]


@pytest.mark.requirement("W-13")
@pytest.mark.parametrize("fail", [False, True])
def test_W_13_an_unknown_id_is_rejected_or_where_that_is_no_outcome_ends_the_link(
    peer: Transacting, fail: bool
) -> None:
    peer.control()
    assert peer.discharge(b"unknown", fail) == "rejected:amqp:transaction:unknown-id"
    transaction = peer.declare()
    assert peer.discharge(transaction, fail) == "accepted"
    assert peer.discharge(transaction, fail) == "rejected:amqp:transaction:unknown-id", "a second time"
    peer.control(8, "strict", outcomes=["accepted"])
    peer.send(frames.discharge(peer.number(), b"unknown", fail, 8))
    assert peer.detached(8) == "amqp:transaction:unknown-id"


# -- posting


@pytest.mark.requirement("W-1", "W-4", "W-5", "W-6", "W-8", "W-9")
def test_P_A6_T_P1_W_5_W_8_W_9_what_is_posted_is_there_when_it_is_discharged(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    posted = peer.post(transaction, ONE, TWO)
    peer.promised(*posted)
    peer.there(node, 0)
    assert peer.discharge(transaction) == "accepted", "before anything else is said of what it held"
    peer.ended(*posted)
    assert [event.payload for event in peer.there(node, 2)] == [ONE, TWO]


@pytest.mark.requirement("W-7", "W-14")
def test_W_7_W_14_what_is_rolled_back_never_was(peer: Transacting, node: str) -> None:
    credit = peer.publisher(node)
    transaction = peer.begun()
    posted = peer.post(transaction, ONE, TWO)
    peer.promised(*posted)
    assert peer.discharge(transaction, fail=True) == "accepted"
    peer.ended(*posted, state="released")
    peer.there(node, 0)
    transaction = peer.declare()
    more = 0
    while more < credit:  # the credit was not rolled back, and did not run out either
        batch = peer.post(transaction, *[ONE] * 500)
        peer.promised(*batch)
        more += len(batch)
    assert peer.discharge(transaction, fail=True) == "accepted"


def test_a_presettled_message_is_part_of_it_and_has_no_outcome(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    peer.post(transaction, ONE, settled=True)
    peer.nothing()
    assert peer.discharge(transaction) == "accepted"
    peer.nothing()
    assert len(peer.there(node, 1)) == 1


def test_1_3_I_a_presettled_message_that_cannot_be_makes_the_discharge_fail(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    posted = peer.post(transaction, ONE)
    peer.promised(*posted)
    peer.post(transaction, b"", settled=True)
    assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"
    peer.ended(*posted, state="released")
    peer.there(node, 0)
    transaction = peer.declare()
    peer.post(transaction, b"", settled=True)
    assert peer.discharge(transaction, fail=True) == "accepted"


@pytest.mark.requirement("W-4")
def test_P_A2_W_4_what_yields_no_event_is_rejected_inside_and_settled_once(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    bad, good = *peer.post(transaction, b""), *peer.post(transaction, ONE)
    ends = {bad: "rejected:amqp:precondition-failed", good: "accepted"}
    assert peer.dispositions(2) == {number: (f"transactional {state}", peer.settles) for number, state in ends.items()}
    assert peer.discharge(transaction) == "accepted"
    late = {} if peer.settles else {number: (state, True) for number, state in ends.items()}
    assert peer.dispositions(len(late)) == late
    peer.nothing()
    assert len(peer.there(node, 1)) == 1


@pytest.mark.requirement("W-18")
def test_W_18_a_message_for_a_transaction_that_is_not_there(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    peer.publisher(node, handle=1)
    [number] = peer.post(b"unknown", ONE)
    assert peer.outcomes(1) == {number: "rejected:amqp:transaction:unknown-id"}
    peer.post(b"unknown", ONE, settled=True)
    assert peer.detached(0) == "amqp:transaction:unknown-id"
    peer.there(node, 0)


def test_the_order_of_a_link_holds_across_its_transaction(peer: Transacting, node: str) -> None:
    peer.publisher(node)
    transaction = peer.begun()
    state = frames.in_transaction(transaction)
    numbers = [peer.number() for _ in range(8)]
    messages = [frames.message(b"%d" % at) for at in range(7)]
    peer.send(
        *(frames.transfer(numbers[at], messages[at]) for at in range(3)),
        *(frames.transfer(numbers[at], messages[at], state=state) for at in (3, 4)),
        frames.discharge(numbers[5], transaction),
        *(frames.transfer(numbers[at + 1], messages[at]) for at in (5, 6)),
    )
    wanted = dict.fromkeys(numbers, ("accepted", True))
    if peer.settles:
        wanted |= dict.fromkeys(numbers[3:5], ("transactional accepted", True))
    final: dict[int, tuple[str | None, bool]] = {}
    while final != wanted:
        final.update(peer.dispositions(1))
    assert [event.payload for event in peer.there(node, 7)] == messages


# -- retiring


@pytest.mark.requirement("W-4", "W-6", "W-10")
def test_S_A8_T_S1_W_10_an_outcome_inside_a_transaction_is_carried_out_by_its_discharge(
    peer: Transacting, node: str
) -> None:
    peer.stored(node, ONE, TWO)
    peer.consumer(node, credit=5)
    peer.receive(2)
    transaction = peer.begun()
    peer.retire(transaction, 0)
    peer.nothing()
    assert peer.discharge(transaction) == "accepted"
    assert peer.dispositions(1) == {0: ("accepted", True)}
    peer.leave()
    assert [event.payload for event in peer.there(node, 1)] == [TWO]


@pytest.mark.requirement("W-10")
def test_W_10_after_a_rollback_it_is_the_consumers_as_before(peer: Transacting, node: str) -> None:
    peer.stored(node, ONE)
    peer.consumer(node, credit=5)
    peer.receive(1)
    transaction = peer.begun()
    peer.retire(transaction, 0)
    assert peer.discharge(transaction, fail=True) == "accepted"
    peer.nothing()  # neither told nor given again
    peer.there(node, 0)
    peer.settle([0], ACCEPTED, settled=False)
    assert peer.dispositions(1) == {0: ("accepted", True)}
    peer.leave()
    peer.there(node, 0)


@pytest.mark.requirement("W-4")
@pytest.mark.parametrize(("default", "count"), [(None, 0), (COUNTS, 1)], ids=["unset", "JMS"])
def test_W_4_what_the_consumer_settled_itself_gets_the_default_outcome_on_rollback(
    peer: Transacting, node: str, default: object, count: int
) -> None:
    peer.stored(node, ONE)
    peer.consumer(frames.source(node, default=default), credit=1)
    peer.receive(1)
    transaction = peer.begun()
    peer.retire(transaction, 0, settled=True)
    peer.there(node, 0)
    assert peer.discharge(transaction, fail=True) == "accepted"
    [event] = peer.there(node, 1)
    assert count_and_first(event)[0] == count


@pytest.mark.requirement("W-5")
def test_a_consumer_may_close_before_the_discharge(peer: Transacting, node: str) -> None:
    peer.stored(node, ONE, TWO)
    peer.consumer(node, credit=2)
    peer.receive(2)
    transaction = peer.begun()
    peer.retire(transaction, 0, settled=True)
    peer.leave()
    assert [event.payload for event in peer.there(node, 1)] == [TWO], "what it had not stated is available again"
    assert peer.discharge(transaction) == "accepted"
    assert [event.payload for event in peer.there(node, 1)] == [TWO]


@pytest.mark.requirement("W-18")
def test_W_18_an_outcome_for_a_transaction_that_is_not_there_ends_the_link(peer: Transacting, node: str) -> None:
    peer.stored(node, ONE)
    peer.consumer(node, credit=1)
    peer.receive(1)
    peer.retire(b"unknown", 0)
    assert peer.detached(1) == "amqp:transaction:unknown-id"
    assert len(peer.there(node, 1)) == 1


# -- several nodes; ends


def test_several_nodes_of_both_kinds_in_one_transaction(peer: Transacting, node: str) -> None:
    orders, prices, invoices = f"{node}.orders", f"{node}.prices", f"{node}.invoices"
    peer.publisher(prices, "channel")
    peer.consumer(frames.source(prices, 2, capability="topic"), credit=1, name="durable")
    peer.stored(prices, THREE, kind="channel")
    peer.stored(orders, ONE)
    peer.receive(1)
    peer.consumer(orders, credit=1, handle=2, name="orders")
    peer.receive(1, handle=2)
    peer.publisher(invoices, handle=3)
    transaction = peer.begun()
    peer.retire(transaction, 0, 1, settled=True)
    posted = [*peer.post(transaction, TWO, handle=3), *peer.post(transaction, TWO)]
    peer.promised(*posted)
    peer.there(invoices, 0)
    assert peer.discharge(transaction) == "accepted"
    peer.ended(*posted)
    assert [event.payload for event in peer.there(invoices, 1)] == [TWO]
    peer.credit(1)
    assert [event.payload for event in peer.receive(1)] == [TWO], "to the durable, too"
    peer.leave(2)
    peer.there(orders, 0)


@pytest.mark.requirement("W-15")
def test_W_15_with_its_control_link_a_transaction_ends(peer: Transacting, node: str) -> None:
    peer.stored(node, ONE)
    peer.consumer(node, credit=1)
    peer.receive(1)
    peer.publisher(node)
    transaction = peer.begun()
    [posted] = peer.post(transaction, TWO)
    peer.promised(posted)
    peer.retire(transaction, 0)
    peer.send(frames.detach(CONTROL))
    if not peer.settles:
        assert peer.dispositions(1) == {posted: ("released", True)}
    assert peer.detached(CONTROL) is None
    [late] = peer.post(transaction, TWO)
    assert peer.dispositions(1) == {late: ("rejected:amqp:transaction:unknown-id", True)}
    peer.settle([0], ACCEPTED, settled=False)
    assert peer.dispositions(1) == {0: ("accepted", True)}
    peer.leave()
    peer.there(node, 0)


@pytest.mark.requirement("W-15")
@pytest.mark.parametrize(
    "case",
    [(frames.end(), COUNTS, 1), (frames.close(), COUNTS, 1), (frames.close(), None, 0), (None, COUNTS, 1), (None,) * 3],
    ids=["session-JMS", "connection-JMS", "connection", "socket-JMS", "socket"],
)
@pytest.mark.parametrize("first", ["consumer", "control"])
def test_an_undischarged_transaction_is_rolled_back_when_its_peer_goes(
    either: GatewayProcess,
    documented: GatewayProcess,
    node: str,
    case: tuple[bytes | None, object, int | None],
    first: str,
) -> None:
    """A connection that breaks off has failed, but as documented, whichever of its links is the first to go."""
    end, default, count = case
    with Peer(either.port) as witness:
        with Transacting(either.port) as peer:
            peer.stored(node, ONE)
            if first == "control":
                transaction = peer.begun()
            peer.consumer(frames.source(node, default=default), credit=1)
            peer.receive(1)
            peer.publisher(node)
            if first == "consumer":
                transaction = peer.begun()
            peer.post(transaction, TWO)
            peer.dispositions(1)
            peer.retire(transaction, 0, settled=True)
            if end is not None:
                peer.send(end)
                peer.until("end" if end == frames.end() else "close")
        witness.consumer(node, credit=5)
        [event] = witness.receive(1)
        witness.nothing()
        assert event.payload.endswith(ONE)
        assert count_and_first(event)[0] == (count if count is not None else either is not documented)
