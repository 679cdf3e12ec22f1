"""Completions that come when no one waits for them any more, and peers that speak while the realm has not answered yet:
a gateway in this process, over a realm that holds its answers back.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from mappings import load_tables
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm

TABLES = load_tables()
MESSAGE = frames.message()
ACCEPTED = frames.state("accepted")


class Held:
    def __init__(self, *what: str) -> None:
        self.realm = ScriptedRealm()
        self.realm.holds.update(what)
        self.gateway = build_gateway(TABLES, self.realm)
        self.peer = Conversation(self.gateway)
        self.bystander = Conversation(self.gateway, "bystander")

    def outcomes(self) -> list[tuple[str, str, list[int]]]:
        """Direction, outcome and seqs of every outcome record."""
        groups = [group for record in self.realm.evidence for group in json.loads(record)["groups"]]
        return [(group["direction"], group["outcome"], group["seq"]) for group in groups]

    def finish(self) -> None:
        """The answers come; no one is harmed."""
        self.realm.release()
        self.peer.listen()
        assert self.gateway.faults["assertion"] == 0
        assert self.gateway.outcomes.open == 0
        self.gateway.outcomes.flush(at_once=True)  # a fault may have had a record just before
        assert self.gateway.in_flight_bytes == 0
        self.bystander.say(frames.attach_sender("q", name="unharmed"))
        assert [seen.state for seen in self.bystander.say(frames.transfer(0, MESSAGE))] == ["accepted"]


def gone_link(held: Held, handle: int) -> None:
    held.peer.say(frames.detach(handle))


def gone_session(held: Held, _: int) -> None:
    held.peer.say(frames.end())


def gone_connection(held: Held, _: int) -> None:
    held.peer.say(frames.close())
    held.peer.lose()
    held.peer.read = lambda: 0  # type: ignore[method-assign]


def gone_socket(held: Held, _: int) -> None:
    held.peer.lose()
    held.peer.read = lambda: 0  # type: ignore[method-assign]


GONE = [gone_link, gone_session, gone_connection, gone_socket]
Leave = Callable[[Held, int], None]


@pytest.mark.parametrize("leave", GONE)
@pytest.mark.parametrize("answer", ["stored", "access-denied"])
def test_a_publish_that_completes_too_late_leaves_its_record_and_says_nothing(leave: Leave, answer: str) -> None:
    held = Held("publish")
    held.realm.answers["publish"] = answer
    held.peer.say(frames.attach_sender("q"))
    held.peer.say(frames.transfer(0, MESSAGE), frames.transfer(1, MESSAGE, settled=True))
    leave(held, 0)
    count = len(held.peer.seen)
    held.realm.answers.clear()
    held.finish()
    assert len(held.peer.seen) == count
    outcome = "accepted" if answer == "stored" else "rejected"
    assert held.outcomes()[:2] == [("publish", outcome, [1]), ("publish", "none", [2])]
    assert held.gateway.credit.granted == held.gateway.limits.credit_per_link - 1  # the bystander has used one


@pytest.mark.parametrize("leave", GONE)
def test_a_settlement_that_completes_too_late_leaves_its_record_and_says_nothing(leave: Leave) -> None:
    held = Held("settle")
    store = held.realm.store("q")
    store.values, store.available = {1: MESSAGE, 2: MESSAGE, 3: MESSAGE}, [1, 2, 3]
    held.peer.say(frames.attach_receiver("q"), frames.flow(1, 3))
    held.peer.say(frames.disposition(0, 0, ACCEPTED, settled=False), frames.disposition(1, 1, ACCEPTED))
    leave(held, 1)
    count = len(held.peer.seen)
    held.finish()
    assert len(held.peer.seen) == count
    outcomes = {
        seq: outcome for direction, outcome, seqs in held.outcomes() if direction == "subscribe" for seq in seqs
    }
    assert outcomes == {1: "accepted", 2: "accepted", 3: "modified" if leave is gone_socket else "released"}


def say_while_it_waits(held: Held, frame: bytes) -> None:
    """Behind a message through the relay for which the realm has to be asked; the peer has an event in its hands."""
    store = held.realm.store("q")
    store.values, store.available = {1: MESSAGE}, [1]
    held.peer.say(frames.attach_receiver("q"), frames.flow(1, 1))
    held.peer.say(frames.attach_sender(frames.target(None), 5, "relay"))
    held.realm.holds.add("find")
    held.realm.node = lambda _: None  # type: ignore[method-assign,assignment,return-value]
    held.peer.say(frames.transfer(0, frames.message_to("q"), 5), frame)
    del held.realm.node  # it is the class's again


@pytest.mark.parametrize("end", [frames.detach(1), frames.end(), frames.close()], ids=["detach", "end", "close"])
def test_an_end_that_has_to_wait_gives_back_what_its_links_had(end: bytes) -> None:
    held = Held()
    say_while_it_waits(held, end)
    assert "return 1" not in held.realm.calls
    held.finish()
    assert "return 1" in held.realm.calls


@pytest.mark.requirement("F-2")
@pytest.mark.parametrize(
    ("end", "outcome"),
    [(frames.detach(1), "released"), (frames.end(), "released"), (frames.close(), "released"), (b"", "modified")],
    ids=["detach", "end", "close", "nothing"],
)
def test_a_peer_that_has_closed_is_not_cut_off_though_its_close_was_not_read_yet(end: bytes, outcome: str) -> None:
    """The connection waits for the realm when the socket goes."""
    held = Held()
    say_while_it_waits(held, end)
    gone_socket(held, 1)
    held.finish()
    assert ("subscribe", outcome, [1]) in held.outcomes()


@pytest.mark.parametrize("leave", GONE)
@pytest.mark.parametrize("what", ["find", "subscribe"])
def test_an_attach_that_is_answered_too_late_takes_nothing(leave: Leave, what: str) -> None:
    held = Held(what)
    held.peer.say(frames.attach_receiver("q"), frames.attach_sender("q", handle=0))
    held.peer.say(frames.flow(1, 5))
    leave(held, 1)
    held.finish()
    assert all(subscription.closed for subscription in held.realm.subscriptions)


@pytest.mark.requirement("H-9")
def test_H_9_a_second_outcome_that_is_another_ends_the_link_and_the_first_holds() -> None:
    held = Held("settle")
    store = held.realm.store("q")
    store.values, store.available = {1: MESSAGE}, [1]
    held.peer.say(frames.attach_receiver("q"), frames.flow(1, 3))
    held.peer.say(frames.disposition(0, 0, ACCEPTED, settled=False))
    assert held.peer.say(frames.disposition(0, 0, ACCEPTED, settled=False)) == []  # the same is harmless
    (detach,) = held.peer.say(frames.disposition(0, 0, frames.state("rejected"), settled=False))
    assert detach.condition == "amqp:illegal-state"
    held.finish()
    assert ("subscribe", "accepted", [1]) in held.outcomes()


@pytest.mark.requirement("H-9")
def test_H_9_two_outcomes_in_one_breath_are_two_outcomes() -> None:
    held = Held("settle")
    store = held.realm.store("q")
    store.values, store.available = {1: MESSAGE}, [1]
    held.peer.say(frames.attach_receiver("q"), frames.flow(1, 3))
    rejected = frames.disposition(0, 0, frames.state("rejected"), settled=False)
    (detach,) = held.peer.say(frames.disposition(0, 0, ACCEPTED, settled=False), rejected)
    assert detach.condition == "amqp:illegal-state"
    held.finish()
    assert ("subscribe", "accepted", [1]) in held.outcomes()


def test_a_subscription_that_is_lost_while_its_settlement_is_under_way() -> None:
    held = Held("settle")
    store = held.realm.store("q")
    store.values, store.available = {1: MESSAGE, 2: MESSAGE}, [1, 2]
    held.peer.say(frames.attach_receiver("q"), frames.flow(1, 3))
    held.peer.say(frames.disposition(0, 0, ACCEPTED, settled=False))
    held.realm.lose_subscriptions("not-found")
    rejected, detach = held.peer.listen()
    assert rejected.state == "rejected:amqp:resource-deleted"
    assert detach.condition == "amqp:resource-deleted"
    held.finish()


@pytest.mark.requirement("U-1")
def test_credit_is_not_given_again_before_the_answer() -> None:
    """U-1: granted for completed deliveries only."""
    held = Held("publish")
    held.gateway.credit._per_link = 10
    held.peer.say(frames.attach_sender("q"))
    reply = held.peer.say(*(frames.transfer(number, MESSAGE) for number in range(10)))
    assert not [seen for seen in reply if seen.name == "flow" and seen.field(6)]
    held.realm.release()
    reply = held.peer.listen()
    assert [seen.field(6) for seen in reply if seen.name == "flow"][-1] == 10
