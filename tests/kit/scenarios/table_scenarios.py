"""Plays: for any combination of facts of any mapping table, a conversation in which the gateway meets it.

    frames = play("settle", {"state": "accepted", ...}, tables)

What is returned is everything that every peer was sent, in a form that can be compared; after what the combination is
about, a second consumer shows what became of the event. A fault that is not known here cannot be played: `KeyError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mappings import TableSet
from tests.wire import frames
from tests.wire.conversation import Conversation, StoppedClock, build_house
from tests.wire.stage import MESSAGE, MODES, RCV, Facts, Stage
from tests.wire.transaction_plays import (
    TRANSACTION,
    begin,
    play_capability,
    play_committed,
    play_coordinate,
    play_posted,
    play_rolled_back,
)
from transformers.amqp_types import AmqpMap, Described, Symbol, ULong

SHARING = {"exclusive": None, "shared": "shared"}
DURABILITY = ("none", "configuration", "unsettled-state")
FILTERS = {
    "none": None,
    "selector": AmqpMap([(Symbol("a"), Described(Symbol("apache.org:selector-filter:string"), "a = 1"))]),
    "position": AmqpMap([(Symbol("a"), Described(Symbol("rabbitmq:stream-offset-spec"), "first"))]),
    "unsupported": AmqpMap([(Symbol("apache.org:selector-filter:string"), Described(Symbol("another"), "a = 1"))]),
}


def play(table: str, facts: Facts, tables: TableSet) -> list[Any]:
    return PLAYS[table](facts, tables)


def _attach(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    node = {"queue": "q", "channel": "c", "unknown": "missing"}[facts["node_kind"]]
    stage.store(node)
    named = node if facts["address"] == "node" else None
    dynamic = True if facts["address"] == "dynamic" else None
    peer = stage.peer("peer")
    if facts["direction"] == "publish":
        target = frames.COORDINATOR if facts["address"] == "coordinator" else frames.target(named, dynamic)
        peer.say(frames.attach_sender(target))
        peer.say(frames.transfer(0, MESSAGE))
    else:
        mode = None if facts["distribution_mode"] == "unset" else facts["distribution_mode"]
        filters = FILTERS[facts["filter"]]
        durable, capability = DURABILITY.index(facts["source_durability"]), SHARING[facts["sharing"]]
        source = frames.source(named, durable, mode, filters, dynamic=dynamic, capability=capability)
        source = frames.COORDINATOR if facts["address"] == "coordinator" else source
        peer.say(frames.attach_receiver(source), frames.flow(1, 5))
    return stage.show(node)


def _attached(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    stage.store("q")
    peer = stage.peer("peer")
    if facts["direction"] == "publish":
        stage.realm.answers["find"] = facts["answer"]
        peer.say(frames.attach_sender("q"))
        peer.say(frames.transfer(0, MESSAGE))
    elif facts["moment"] == "attach":
        stage.realm.answers["subscribe"] = facts["answer"]
        peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    else:
        peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
        stage.realm.lose_subscriptions(facts["answer"])
        peer.listen()
    stage.realm.answers.clear()
    return stage.show()


def _publish(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    settled = facts["presettled"] == "yes"
    payload = b"" if facts["transformed"] == "null" and facts["framing"] == "whole" else MESSAGE
    peer = stage.peer("peer")
    word = facts["transactional"]
    state = frames.in_transaction(TRANSACTION) if word != "no" else None
    if word not in ("no", "unknown"):
        begin(stage, peer, word)
    peer.say(frames.attach_sender("q", mode=MODES.index(facts["sender_settle_mode"])))
    if facts["framing"] == "partial":
        number = peer.number()
        peer.say(frames.transfer(number, payload[:9], settled=settled, more=True, state=state))
        peer.say(frames.transfer(number, payload[9:], settled=settled))
    else:
        peer.say(frames.transfer(peer.number(), payload, settled=settled, state=state))
    if word == "open":
        peer.say(frames.discharge(peer.number(), TRANSACTION))
    return stage.show()


def _published(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    if facts["answer"] == "rolled-back":
        return play_rolled_back(stage, facts)
    stage.realm.answers["publish"] = facts["answer"]
    peer = stage.peer("peer")
    peer.say(frames.attach_sender("q", mode=MODES.index(facts["sender_settle_mode"])))
    peer.say(frames.transfer(peer.number(), MESSAGE, settled=facts["presettled"] == "yes"))
    return stage.show()


def _default(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    stage.store("q")
    outcome = facts["default_outcome"]
    default = None if outcome == "unset" else _state(outcome)
    peer = stage.peer("peer")
    peer.say(frames.attach_receiver(frames.source("q", default=default)), frames.flow(1, 5))
    if facts["cause"] == "unstated":
        peer.say(frames.disposition(0, 0, None))
    elif facts["cause"] == "silent":
        peer.say(frames.disposition(0, 0, None, settled=False))
    elif facts["cause"] == "cut-off":
        peer.lose()
    elif facts["cause"] == "rolled-back":
        begin(stage, peer)
        peer.say(frames.disposition(0, 0, frames.in_transaction(TRANSACTION, frames.state("accepted"))))
        peer.say(frames.discharge(peer.number(), TRANSACTION, fail=True))
    elif facts["cause"] == "lost":
        peer.say(frames.detach(1))
    else:
        stage.house.close_connections()
        peer.listen()
        stage.house = build_house(tables, stage.realm)
    return stage.show()


def _state(state: str) -> Described:
    if state.startswith("modified"):
        return frames.state("modified", "-failed" in state, "-undeliverable" in state)
    if state == "received":
        return frames.state("received", ULong(0), ULong(0))
    if state.startswith("transactional"):
        return frames.in_transaction(TRANSACTION, frames.state("accepted"))
    return Described(ULong(0x77), []) if state == "unknown" else frames.state(state)


def _settle(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    stage.realm.attempts_end = facts["attempts"] == "last"
    node = "q" if facts["subscription"] == "queue" else "c"
    durable = DURABILITY.index(facts["source_durability"])
    if facts["subscription"] != "plain":
        stage.store(node)
    state, settled = facts["state"], 1 if facts["state"] == "sent-settled" else 2
    peer = stage.peer("peer")
    rcv = RCV.index(facts["receiver_settle_mode"])
    peer.say(frames.attach_receiver(frames.source(node, durable), mode=settled, rcv=rcv), frames.flow(1, 3))
    if state in ("transactional", "transactional-full"):
        begin(stage, peer, "full" if state == "transactional-full" else "open")
    if facts["subscription"] == "plain":
        publisher = stage.peer("publisher")
        publisher.say(frames.attach_sender("c"))
        publisher.say(frames.transfer(0, MESSAGE))
        peer.listen()
    if state != "sent-settled":
        repeat = facts["already_settled"] == "yes"
        if repeat:
            stage.realm.holds.add("settle")
            peer.say(frames.disposition(0, 0, _state(state), settled=False))
        peer.say(frames.disposition(0, 0, _state(state), settled=False))
        stage.realm.release()
    if state == "transactional":
        peer.say(frames.discharge(peer.number(), TRANSACTION))
    return stage.show(node, durable)


def _settled(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables)
    stage.store("q")
    stage.realm.answers["settle"] = facts["answer"]
    link = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
    states = tables["settle"].slice(**link, already_settled="no", attempts="below")
    words = [state for state in states.axes["state"] if state != "sent-settled"]
    state = next((word for word in words if _does(states, word, facts["operation"])), "accepted")
    peer = stage.peer("peer")
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    peer.say(frames.disposition(0, 0, _state(state), settled=facts["peer_settled"] == "yes"))
    stage.realm.answers.clear()
    return stage.show()


def _does(states: Any, state: str, operation: str) -> bool:
    return bool(states.decide(state=state).then["native"] == operation)


def _fault(facts: Facts, tables: TableSet) -> list[Any]:
    stage = Stage(tables, **LIMITS.get(facts["fault"], {}))
    stage.store("q", 2)
    peer = stage.peer("peer")
    peer.say(frames.begin(channel=1), frames.attach_sender("q", name="bystander", channel=1))
    FAULTS[facts["fault"]](stage, peer)
    peer.say(frames.transfer(0, MESSAGE, channel=1))
    return stage.show()


def _framing(_: Stage, peer: Conversation) -> None:
    peer.say(b"\x00\x00\x00\x07\x02\x00\x00\x00")


def _unknown_performative(_: Stage, peer: Conversation) -> None:
    peer.say(frames.frame(0x77, []))


def _malformed_performative(_: Stage, peer: Conversation) -> None:
    peer.say(b"\x00\x00\x00\x0e\x02\x00\x00\x00\x00\x53\x12\xc0\x20\x05")


def _out_of_order(_: Stage, peer: Conversation) -> None:
    peer.say(frames.open_("peer"))


def _over_credit(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"))
    peer.say(*(frames.transfer(number, MESSAGE) for number in range(5)))


def _message_too_large(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"))
    peer.say(frames.transfer(0, frames.message(b"x" * 500)))


def _unattached_handle(_: Stage, peer: Conversation) -> None:
    peer.say(frames.transfer(0, MESSAGE, handle=9))


def _errant_link(stage: Stage, peer: Conversation) -> None:
    _message_too_large(stage, peer)
    peer.say(*(frames.transfer(number, MESSAGE) for number in range(1, 30)))


def _handle_in_use(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"), frames.attach_sender("q", name="another"))


def _conflicting_outcome(stage: Stage, peer: Conversation) -> None:
    stage.realm.holds.add("settle")
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    peer.say(frames.disposition(0, 0, frames.state("accepted"), settled=False))
    peer.say(frames.disposition(0, 0, frames.state("rejected"), settled=False))
    stage.realm.release()


def _outcome_not_agreed(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_receiver(frames.source("q", outcomes=["accepted"])), frames.flow(1, 5))
    peer.say(frames.disposition(0, 0, frames.state("rejected")))


def _transactional_acquisition(_: Stage, peer: Conversation) -> None:
    properties = AmqpMap([(Symbol("txn-id"), b"txn")])
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5, properties=properties))


def _link_name_in_use(stage: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q", name="mine"))
    stage.peer("peer").say(frames.attach_sender("q", name="mine"))
    peer.listen()


def _sole(stage: Stage, policy: int) -> None:
    newcomer = Conversation(stage.house, begin=False)
    stage.peers.append(newcomer)
    newcomer.say(frames.AMQP_HEADER, frames.open_("sole", policy), frames.begin(), frames.attach_sender("q"))


def _container_in_use(stage: Stage, _: Conversation) -> None:
    _sole(stage, 0)
    _sole(stage, 0)


def _container_taken_over(stage: Stage, _: Conversation) -> None:
    _sole(stage, 0)
    _sole(stage, 1)


def _too_many_links(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"), frames.attach_sender("q", handle=5, name="one too many"))


def _too_many_nodes(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_sender(frames.target(None, dynamic=True)))


def _invalid_terminus(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_sender(frames.target("q", dynamic=True)))


def _idle(stage: Stage, peer: Conversation) -> None:
    clock = stage.house.clock
    assert isinstance(clock, StoppedClock)
    for _ in range(3):
        clock.now_s += 0.6
        peer.connection.tick(clock.monotonic_s())


def _outcome_unknown(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_receiver(frames.source("q", outcomes=["foo"])), frames.flow(1, 5))


def _delivery_mode_forced(_: Stage, peer: Conversation) -> None:
    peer.say(frames.attach_with_properties("q", {"delivery-mode": "exactly-once"}), frames.flow(1, 5))


def _session_in_use(_: Stage, peer: Conversation) -> None:
    peer.say(frames.begin())


def _sent(transfer: bytes) -> Callable[[Stage, Conversation], None]:
    def play(_: Stage, peer: Conversation) -> None:
        peer.say(frames.attach_sender("q"))
        peer.say(transfer)

    return play


def _answer_too_large(stage: Stage, _: Conversation) -> None:
    stage.peers.append(small := Conversation(stage.house, begin=False))
    small.say(frames.AMQP_HEADER, frames.open_("small", frame_size=512), frames.begin())
    small.say(frames.attach_sender("q" * 450))


LIMITS: dict[str, dict[str, int]] = {
    "over-credit": {"credit_per_link": 2},
    "message-too-large": {"message_size_bytes": 100},
    "errant-link": {"message_size_bytes": 100, "credit_per_link": 5},
    "too-many-links": {"links_per_session": 1},
    "too-many-nodes": {"temporary_nodes": 0},
    "idle": {"idle_timeout_ms": 1000},
}
FAULTS: dict[str, Callable[[Stage, Conversation], None]] = {
    "framing": _framing,
    "unknown-performative": _unknown_performative,
    "malformed-performative": _malformed_performative,
    "out-of-order": _out_of_order,
    "over-credit": _over_credit,
    "message-too-large": _message_too_large,
    "unattached-handle": _unattached_handle,
    "errant-link": _errant_link,
    "handle-in-use": _handle_in_use,
    "conflicting-outcome": _conflicting_outcome,
    "outcome-not-agreed": _outcome_not_agreed,
    "transactional-acquisition": _transactional_acquisition,
    "link-name-in-use": _link_name_in_use,
    "container-in-use": _container_in_use,
    "container-taken-over": _container_taken_over,
    "too-many-links": _too_many_links,
    "too-many-nodes": _too_many_nodes,
    "invalid-terminus": _invalid_terminus,
    "idle": _idle,
    "message-malformed": _sent(frames.transfer(0, b"garbage")),
    "annotation-unknown": _sent(frames.transfer(0, frames.annotated({"foo": 1}))),
    "annotation-invalid": _sent(frames.transfer(0, frames.annotated({"rejected": 5}, 0x71))),
    "outcome-unknown": _outcome_unknown,
    "delivery-mode-forced": _delivery_mode_forced,
    "session-in-use": _session_in_use,
    "delivery-tag-too-long": _sent(frames.transfer(0, MESSAGE, tag=b"t" * 33)),
    "settle-mode-not-agreed": _sent(frames.transfer(0, MESSAGE, rcv=1)),
    "answer-too-large": _answer_too_large,
}
PLAYS: dict[str, Callable[[Facts, TableSet], list[Any]]] = {
    "attach": _attach,
    "attached": _attached,
    "publish": _publish,
    "published": _published,
    "default": _default,
    "settle": _settle,
    "settled": _settled,
    "fault": _fault,
    "capability": play_capability,
    "coordinate": play_coordinate,
    "committed": play_committed,
    "posted": play_posted,
}
