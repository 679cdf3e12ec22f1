"""Publishers that settle first: rcv-settle-mode second, the three steps of exactly once (X-3)."""

from __future__ import annotations

from itertools import takewhile

import pytest

from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.scenarios.environment import Environment
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting

MESSAGE = frames.message()
SECOND = 1
CREDIT, CONTROL = 5, 7
TABLES = load_tables()
ACCEPTED = frames.state("accepted")


def settle(peer: Peer, numbers: list[int]) -> None:
    peer.send(frames.disposition(numbers[0], numbers[-1], ACCEPTED, sender=True))


@pytest.mark.requirement("X-3")
@pytest.mark.parametrize("count", [1, 3, 50])
def test_X_3_an_outcome_is_settled_when_its_publisher_has_settled(
    gateway: GatewayProcess, documented: GatewayProcess, node: str, count: int
) -> None:
    """One by one, and in runs."""
    for server in (gateway, documented):
        with Peer(server.port) as peer:
            peer.publisher(node, mode=0, rcv=SECOND)
            numbers = peer.publish(*[MESSAGE] * count)
            assert peer.dispositions(count) == dict.fromkeys(numbers, ("accepted", False))
            peer.nothing()
            settle(peer, numbers)
            peer.nothing()
            numbers = peer.publish(MESSAGE, b"", MESSAGE)
            rejected = "rejected:amqp:precondition-failed"
            assert peer.dispositions(3) == {
                numbers[0]: ("accepted", False),
                numbers[1]: (rejected, False),
                numbers[2]: ("accepted", False),
            }
            settle(peer, numbers)
            assert len(peer.there(node, count + 2)) == count + 2


@pytest.mark.requirement("X-3")
def test_who_never_settles_is_given_no_more_credit_and_who_does_goes_on(small: GatewayProcess, node: str) -> None:
    with Peer(small.port) as peer:
        credit = peer.publisher(node, mode=0, rcv=SECOND)
        numbers = peer.publish(*[MESSAGE] * credit)
        assert peer.dispositions(credit) == dict.fromkeys(numbers, ("accepted", False))
        peer.nothing()
        assert not peer.seen, "no credit"
        for _ in range(20):
            settle(peer, numbers)
            assert int(peer.expect("flow").field(6)) == credit
            numbers = peer.publish(*[MESSAGE] * credit)
            assert peer.dispositions(credit) == dict.fromkeys(numbers, ("accepted", False))


class Publisher:
    """It settles first, and has so much credit at most, on a link with a target or on a relay. It settles its
    messages, which have their outcomes, when it wants."""

    def __init__(self, where: str | None = "q") -> None:
        self.peer = Environment(TABLES, credit_per_link=CREDIT).peer("peer")
        self.peer.say(frames.attach_sender(frames.COORDINATOR, CONTROL, "control"))
        self.peer.say(frames.attach_sender(where, rcv=SECOND))
        self.numbers: list[int] = []  # of its messages
        _, self._handle = (seen.field(1) for seen in self.peer.seen if seen.name == "attach")

    @property
    def credit(self) -> int:
        flow = next(seen for seen in reversed(self.peer.seen) if seen.name == "flow" and seen.field(4) == self._handle)
        return int(flow.field(5) + flow.field(6)) - len(self.numbers)

    def publish(
        self, *messages: bytes, transaction: bytes | None = None, rcv: int | None = None, settle: bool = False
    ) -> list[Seen]:
        """`settle`: in the same breath."""
        state = None if transaction is None else frames.in_transaction(transaction)
        numbers = [self.peer.number() for _ in messages]
        self.numbers += numbers
        sent = [
            frames.transfer(number, octets, state=state, rcv=rcv)
            for number, octets in zip(numbers, messages, strict=True)
        ]
        settled = [frames.disposition(numbers[0], numbers[-1], None, sender=True)] if settle else []
        return self.peer.say(*sent, *settled)

    def declare(self) -> bytes:
        replies = self.peer.say(frames.declare(self.peer.number(), CONTROL))
        [declared] = [seen for seen in replies if seen.name == "disposition"]
        transaction: bytes = declared.field(4).value[0]
        return transaction

    def discharge(self, transaction: bytes, fail: bool = False) -> None:
        replies = self.peer.say(frames.discharge(self.peer.number(), transaction, fail, CONTROL))
        assert next(seen.state for seen in replies if seen.name == "disposition") == "accepted"

    def settle(self, numbers: list[int]) -> None:
        self.peer.say(*(frames.disposition(number, number, ACCEPTED, sender=True) for number in numbers))


PLACES = {"target": "q", "relay": None}


@pytest.mark.requirement("X-3", "W-7")
@pytest.mark.parametrize("fail", [False, True], ids=["committed", "rolled back"])
@pytest.mark.parametrize("message", [MESSAGE, frames.message_to("q"), b""], ids=["stored", "addressed", "refused"])
@pytest.mark.parametrize("where", PLACES)
def test_X_3_who_never_settles_what_it_has_posted_is_given_no_more_credit(
    where: str, message: bytes, fail: bool
) -> None:
    """Whatever became of it. Once all is settled, it goes on."""
    publisher = Publisher(PLACES[where])
    for _ in range(3):
        before = len(publisher.numbers)
        for _ in takewhile(lambda _: publisher.credit, range(20)):
            transaction = publisher.declare()
            publisher.publish(*[message] * publisher.credit, transaction=transaction)
            publisher.discharge(transaction, fail)
        posted = publisher.numbers[before:]
        assert publisher.credit == 0 and len(posted) <= 2 * CREDIT
        publisher.settle(posted[:-CREDIT])
        assert publisher.credit == 0
        publisher.settle(posted[-CREDIT:])
        assert publisher.credit == CREDIT


@pytest.mark.requirement("X-3", "W-18")
@pytest.mark.parametrize("where", PLACES)
def test_X_3_what_is_posted_in_no_transaction_takes_credit_until_it_is_settled(where: str) -> None:
    publisher = Publisher(PLACES[where])
    for _ in takewhile(lambda _: publisher.credit, range(20)):
        replies = publisher.publish(*[frames.message_to("q")] * publisher.credit, transaction=b"unknown")
        assert {seen.state for seen in replies if seen.name == "disposition"} == {
            "rejected:amqp:transaction:unknown-id"
        }
    assert publisher.credit == 0
    publisher.settle(publisher.numbers)
    assert publisher.credit == CREDIT


@pytest.mark.requirement("X-3")
def test_X_3_to_settle_what_was_posted_gives_no_credit_for_what_was_published() -> None:
    publisher = Publisher()
    transaction = publisher.declare()
    publisher.publish(*[MESSAGE] * 3, transaction=transaction)
    posted = publisher.numbers[:]
    publisher.discharge(transaction)
    assert publisher.credit == CREDIT
    publisher.publish(*[MESSAGE] * CREDIT)
    publisher.settle(posted)
    assert publisher.credit == 0
    publisher.settle(publisher.numbers[3:])
    assert publisher.credit == CREDIT


@pytest.mark.requirement("X-3")
@pytest.mark.parametrize("how", ["wanted", "settled"])
@pytest.mark.parametrize("posts", [False, True])
def test_X_3_what_waits_for_no_settlement_keeps_no_credit(how: str, posts: bool) -> None:
    """Its transfer wants the gateway to settle first, or its publisher has settled before it heard the outcome."""
    publisher = Publisher()
    for _ in range(4 * CREDIT):
        transaction = publisher.declare() if posts else None
        rcv, settle = (0, False) if how == "wanted" else (None, True)
        publisher.publish(MESSAGE, transaction=transaction, rcv=rcv, settle=settle)
        if transaction is not None:
            publisher.discharge(transaction)
        assert publisher.credit > 0


def test_a_publisher_may_settle_before_it_has_heard_the_outcome(gateway: GatewayProcess, node: str) -> None:
    """Nothing is said of it any more; what comes settled is not answered either."""
    with Peer(gateway.port) as peer:
        peer.publisher(node, mode=2, rcv=SECOND)
        peer.send(frames.transfer(0, MESSAGE), frames.disposition(0, 0, None, sender=True))
        peer.send(frames.transfer(1, MESSAGE, settled=True), frames.transfer(2, MESSAGE))
        assert peer.dispositions(1) == {2: ("accepted", False)}
        settle(peer, [2])
        peer.nothing()
        assert len(peer.there(node, 3)) == 3


def test_one_transfer_may_ask_for_the_receiver_to_settle_first_but_not_the_other_way_round(
    gateway: GatewayProcess, node: str
) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, rcv=SECOND)
        peer.send(frames.transfer(0, MESSAGE, rcv=0), frames.transfer(1, MESSAGE, rcv=SECOND))
        assert peer.dispositions(2) == {0: ("accepted", True), 1: ("accepted", False)}
        peer.publisher(node, handle=1)
        peer.send(frames.transfer(2, MESSAGE, 1))
        assert peer.dispositions(1) == {2: ("accepted", True)}
        peer.send(frames.transfer(3, MESSAGE, 1, rcv=SECOND))
        assert peer.detached(1) == "amqp:invalid-field"


@pytest.mark.requirement("X-3")
def test_a_relay_settles_second_too_and_its_links_share_the_credit(small: GatewayProcess, node: str) -> None:
    with Peer(small.port) as peer, Peer(small.port) as maker:
        maker.publisher(f"{node}.one")
        peer.send(frames.attach_sender(None, rcv=SECOND))
        assert peer.expect("attach").field(4) == SECOND
        credit = int(peer.expect("flow").field(6))
        addresses = [f"{node}.one", "missing"]
        messages = [frames.message_to(addresses[number % 2]) for number in range(credit)]
        numbers = peer.publish(*messages)
        outcomes = peer.dispositions(credit)
        assert {settled for _, settled in outcomes.values()} == {False}
        assert [outcomes[number][0] for number in numbers[:2]] == ["accepted", "rejected:amqp:not-found"]
        settle(peer, numbers)
        assert int(peer.expect("flow").field(6)) == credit


@pytest.mark.requirement("X-3", "W-4")
def test_what_is_posted_is_settled_by_its_publisher_when_it_has_been_discharged(
    gateway: GatewayProcess, node: str
) -> None:
    with Transacting(gateway.port) as peer:
        assert peer.control().field(4) == 0, "a coordinator settles by itself"
        peer.publisher(node, rcv=SECOND)
        transaction = peer.declare()
        numbers = peer.post(transaction, MESSAGE, b"", MESSAGE)
        states = dict(zip(numbers, ("accepted", "rejected:amqp:precondition-failed", "accepted"), strict=True))
        assert peer.dispositions(3) == {number: (f"transactional {state}", False) for number, state in states.items()}
        last = peer.number()
        peer.send(frames.discharge(last, transaction))
        assert peer.dispositions(4) == {
            last: ("accepted", True),
            **{number: (state, False) for number, state in states.items()},
        }
        settle(peer, numbers)
        assert len(peer.there(node, 2)) == 2
