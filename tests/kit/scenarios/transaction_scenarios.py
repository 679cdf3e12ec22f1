"""Scenarios of the tables about transactions, and of what happens inside of one."""

from __future__ import annotations

from typing import Any

from mappings import TableSet
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.scenarios.environment import MESSAGE, MODES, RCV, Environment, Facts
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation
from tests.kit.wire.scripted_realm import ScriptedRealm

TRANSACTION = ScriptedRealm.run.encode() + b":1"  # the first that a gateway begins
CONTROL = 7  # handle of a control link


def begin(env: Environment, peer: Conversation, word: str = "open", outcomes: list[str] | None = None) -> None:
    """A control link with a transaction in the state of that word."""
    peer.say(frames.attach_sender(frames.COORDINATOR, CONTROL, "control", outcomes=outcomes))
    peer.say(frames.declare(peer.number()))
    if not env.gateway.transactions:
        return
    if word == "full":
        object.__setattr__(env.gateway.limits, "transaction_deliveries", 0)
    elif word == "expired":
        clock = env.gateway.clock
        assert isinstance(clock, StoppedClock)
        clock.now_s += env.gateway.limits.transaction_timeout_ms / 1000
        peer.connection.tick(clock.monotonic_s())
    elif word == "doomed":
        peer.say(frames.attach_sender("q", 8, "doomed"))
        peer.say(frames.transfer(peer.number(), b"", 8, settled=True, state=frames.in_transaction(TRANSACTION)))
    elif word == "torn":
        peer.say(frames.attach_sender("q", 8, "torn"))
        peer.say(frames.transfer(peer.number(), MESSAGE[:9], 8, more=True, state=frames.in_transaction(TRANSACTION)))


def run_capability(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    env.peer("peer").say(frames.attach_sender(frames.COORDINATOR, CONTROL, "control"))
    return env.show()


def run_coordinate(facts: Facts, tables: TableSet) -> list[Any]:
    word, request = facts["transaction"], facts["request"]
    env = Environment(tables, **({"transactions": 1} if word == "full" else {}))
    outcomes = ["accepted"] if facts["rejected"] == "unlisted" else None
    settled = facts["presettled"] == "yes"
    peer = env.peer("peer")
    if word in ("open", "doomed", "torn", "expired"):
        begin(env, peer, word, outcomes)
    else:
        peer.say(frames.attach_sender(frames.COORDINATOR, CONTROL, "control", outcomes=outcomes))
    if word == "full":
        begin(env, env.peer("other"))
    if word == "open":
        peer.say(frames.attach_sender("q"))
        peer.say(frames.transfer(peer.number(), MESSAGE, state=frames.in_transaction(TRANSACTION)))
    if request == "declare":
        peer.say(frames.declare(peer.number(), global_id=b"global" if word == "distributed" else None, settled=settled))
    elif request == "unreadable":
        peer.say(frames.request(peer.number(), "neither", settled=settled))
    else:
        peer.say(frames.discharge(peer.number(), TRANSACTION, request == "rollback", settled=settled))
    return env.show()


def run_committed(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    env.realm.answers["commit"] = facts["answer"]
    peer = env.peer("peer")
    begin(env, peer, outcomes=["accepted"] if facts["rejected"] == "unlisted" else None)
    peer.say(frames.attach_sender("q"))
    peer.say(frames.transfer(peer.number(), MESSAGE, state=frames.in_transaction(TRANSACTION)))
    peer.say(frames.discharge(peer.number(), TRANSACTION))
    return env.show()


def listed(facts: Facts) -> list[str] | None:
    """The outcomes in the source of a publisher, by the axes of that name."""
    unlisted = {word for word in ("rejected", "released") if facts.get(word) == "unlisted"}
    return (
        [word for word in ("accepted", "rejected", "released", "modified") if word not in unlisted]
        if unlisted
        else None
    )


def run_posted(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    peer = env.peer("peer")
    begin(env, peer)
    peer.say(frames.attach_sender("q", rcv=RCV.index(facts["receiver_settle_mode"]), outcomes=listed(facts)))
    env.realm.answers["post"] = facts["answer"]
    settled = facts["presettled"] == "yes"
    peer.say(frames.transfer(peer.number(), MESSAGE, settled=settled, state=frames.in_transaction(TRANSACTION)))
    peer.say(frames.discharge(peer.number(), TRANSACTION))
    return env.show()


def run_rolled_back(env: Environment, facts: Facts) -> list[Any]:
    peer = env.peer("peer")
    begin(env, peer)
    peer.say(frames.attach_sender("q", mode=MODES.index(facts["sender_settle_mode"]), outcomes=listed(facts)))
    settled = facts["presettled"] == "yes"
    peer.say(frames.transfer(peer.number(), MESSAGE, settled=settled, state=frames.in_transaction(TRANSACTION)))
    peer.say(frames.discharge(peer.number(), TRANSACTION, fail=True))
    return env.show()
