"""Plays of the tables about transactions, and of what happens inside of one."""

from __future__ import annotations

from typing import Any

from mappings import TableSet
from tests.wire import frames
from tests.wire.conversation import Conversation, StoppedClock
from tests.wire.scripted_realm import ScriptedRealm
from tests.wire.stage import MESSAGE, MODES, RCV, Facts, Stage

TRANSACTION = ScriptedRealm.run.encode() + b":1"  # the first that a gateway begins
CONTROL = 7  # handle of a control link


def begin(stage: Stage, peer: Conversation, word: str = "open", outcomes: list[str] | None = None) -> None:
    """A control link with a transaction in the state of that word."""
    peer.say(frames.attach_sender(frames.COORDINATOR, CONTROL, "control", outcomes=outcomes))
    peer.say(frames.declare(peer.number()))
    transaction = next(iter(peer.connection.transactions.values()), None)
    if transaction is None:
        return
    if word == "full":
        object.__setattr__(stage.house.limits, "transaction_deliveries", 0)
    elif word == "expired":
        clock = stage.house.clock
        assert isinstance(clock, StoppedClock)
        clock.now_s += stage.house.limits.transaction_timeout_ms / 1000
        peer.connection.tick(clock.monotonic_s())
    elif word == "doomed":
        peer.say(frames.attach_sender("q", 8, "doomed"))
        peer.say(frames.transfer(peer.number(), b"", 8, settled=True, state=frames.in_transaction(TRANSACTION)))
    elif word == "torn":
        peer.say(frames.attach_sender("q", 8, "torn"))
        peer.say(frames.transfer(peer.number(), MESSAGE[:9], 8, more=True, state=frames.in_transaction(TRANSACTION)))


def play_capability(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    stage.peer("peer").say(frames.attach_sender(frames.COORDINATOR, CONTROL, "control"))
    return stage.show()


def play_coordinate(facts: Facts, tables: TableSet) -> list[Any]:
    word, request = facts["transaction"], facts["request"]
    stage = Stage(tables, **({"transactions": 1} if word == "full" else {}))
    outcomes = ["accepted"] if facts["rejected"] == "unlisted" else None
    settled = facts["presettled"] == "yes"
    peer = stage.peer("peer")
    if word in ("open", "doomed", "torn", "expired"):
        begin(stage, peer, word, outcomes)
    else:
        peer.say(frames.attach_sender(frames.COORDINATOR, CONTROL, "control", outcomes=outcomes))
    if word == "full":
        begin(stage, stage.peer("other"))
    if word == "open":
        peer.say(frames.attach_sender("q"))
        peer.say(frames.transfer(peer.number(), MESSAGE, state=frames.in_transaction(TRANSACTION)))
    if request == "declare":
        peer.say(frames.declare(peer.number(), global_id=b"global" if word == "distributed" else None, settled=settled))
    elif request == "unreadable":
        peer.say(frames.request(peer.number(), "neither", settled=settled))
    else:
        peer.say(frames.discharge(peer.number(), TRANSACTION, request == "rollback", settled=settled))
    return stage.show()


def play_committed(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    stage.realm.answers["commit"] = facts["answer"]
    peer = stage.peer("peer")
    begin(stage, peer, outcomes=["accepted"] if facts["rejected"] == "unlisted" else None)
    peer.say(frames.attach_sender("q"))
    peer.say(frames.transfer(peer.number(), MESSAGE, state=frames.in_transaction(TRANSACTION)))
    peer.say(frames.discharge(peer.number(), TRANSACTION))
    return stage.show()


def play_posted(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    peer = stage.peer("peer")
    begin(stage, peer)
    peer.say(frames.attach_sender("q", rcv=RCV.index(facts["receiver_settle_mode"])))
    stage.realm.answers["post"] = facts["answer"]
    settled = facts["presettled"] == "yes"
    peer.say(frames.transfer(peer.number(), MESSAGE, settled=settled, state=frames.in_transaction(TRANSACTION)))
    peer.say(frames.discharge(peer.number(), TRANSACTION))
    return stage.show()


def play_rolled_back(stage: Stage, facts: Facts) -> list[Any]:
    peer = stage.peer("peer")
    begin(stage, peer)
    peer.say(frames.attach_sender("q", mode=MODES.index(facts["sender_settle_mode"])))
    settled = facts["presettled"] == "yes"
    peer.say(frames.transfer(peer.number(), MESSAGE, settled=settled, state=frames.in_transaction(TRANSACTION)))
    peer.say(frames.discharge(peer.number(), TRANSACTION, fail=True))
    return stage.show()
