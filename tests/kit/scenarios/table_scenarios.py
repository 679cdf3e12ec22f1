"""Scenarios: for any combination of facts of any mapping table, a conversation in which the gateway meets it.

    frames = run_scenario("settle", {"state": "accepted", ...}, tables)

What is returned is everything that every peer was sent, in a form that can be compared; after what the combination is
about, a second consumer shows what became of the event. A fault that is not known here cannot be brought about:
`KeyError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mappings import TableSet
from tests.kit.scenarios.environment import MESSAGE, MODES, RCV, Environment, Facts
from tests.kit.scenarios.fault_scenarios import run_fault
from tests.kit.scenarios.transaction_scenarios import (
    TRANSACTION,
    begin,
    listed,
    run_capability,
    run_committed,
    run_coordinate,
    run_posted,
    run_rolled_back,
)
from tests.kit.wire import frames
from tests.kit.wire.conversation import build_gateway
from transformers.codec import AmqpMap, Described, Symbol, UInt, ULong

SHARING = {"exclusive": None, "shared": "shared"}
DURABILITY = ("none", "configuration", "unsettled-state")
FILTERS = {
    "none": None,
    "selector": AmqpMap([(Symbol("a"), Described(Symbol("apache.org:selector-filter:string"), "a = 1"))]),
    "position": AmqpMap([(Symbol("a"), Described(Symbol("rabbitmq:stream-offset-spec"), "first"))]),
    "unsupported": AmqpMap([(Symbol("apache.org:selector-filter:string"), Described(Symbol("another"), "a = 1"))]),
}


def run_scenario(table: str, facts: Facts, tables: TableSet) -> list[Any]:
    return SCENARIOS[table](facts, tables)


def _attach(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    node = {"queue": "q", "channel": "c", "unknown": "missing"}[facts["node_kind"]]
    env.store(node)
    named = node if facts["address"] == "node" else None
    dynamic = True if facts["address"] == "dynamic" else None
    peer = env.peer("peer")
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
    return env.show(node)


def _attached(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    env.store("q")
    peer = env.peer("peer")
    if facts["direction"] == "publish" and facts["moment"] == "later":
        peer.say(frames.attach_sender("q"))
        env.realm.delete("q")
        peer.listen()
    elif facts["direction"] == "publish":
        env.realm.answers["find"] = facts["answer"]
        peer.say(frames.attach_sender("q"))
        peer.say(frames.transfer(0, MESSAGE))
    elif facts["moment"] == "attach":
        env.realm.answers["subscribe"] = facts["answer"]
        peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    else:
        peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
        env.realm.lose_subscriptions(facts["answer"])
        peer.listen()
    env.realm.answers.clear()
    return env.show()


def _publish(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    settled = facts["presettled"] == "yes"
    payload = b"" if facts["transformed"] == "null" and facts["framing"] == "whole" else MESSAGE
    peer = env.peer("peer")
    word = facts["transactional"]
    state = frames.in_transaction(TRANSACTION) if word != "no" else None
    if word not in ("no", "unknown"):
        begin(env, peer, word)
    peer.say(frames.attach_sender("q", mode=MODES.index(facts["sender_settle_mode"]), outcomes=listed(facts)))
    if facts["framing"] == "partial":
        number = peer.number()
        peer.say(frames.transfer(number, payload[:9], settled=settled, more=True, state=state))
        peer.say(frames.transfer(number, payload[9:], settled=settled))
    else:
        peer.say(frames.transfer(peer.number(), payload, settled=settled, state=state))
    if word == "open":
        peer.say(frames.discharge(peer.number(), TRANSACTION))
    return env.show()


def _published(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    if facts["answer"] == "rolled-back":
        return run_rolled_back(env, facts)
    env.realm.answers["publish"] = facts["answer"]
    peer = env.peer("peer")
    peer.say(frames.attach_sender("q", mode=MODES.index(facts["sender_settle_mode"]), outcomes=listed(facts)))
    peer.say(frames.transfer(peer.number(), MESSAGE, settled=facts["presettled"] == "yes"))
    return env.show()


def _default(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    env.store("q")
    outcome = facts["default_outcome"]
    default = None if outcome == "unset" else _state(outcome)
    peer = env.peer("peer")
    peer.say(frames.attach_receiver(frames.source("q", default=default)), frames.flow(1, 5))
    if facts["cause"] == "unstated":
        peer.say(frames.disposition(0, 0, None))
    elif facts["cause"] == "silent":
        peer.say(frames.disposition(0, 0, None, settled=False))
    elif facts["cause"] == "cut-off":
        peer.lose()
    elif facts["cause"] == "rolled-back":
        begin(env, peer)
        peer.say(frames.disposition(0, 0, frames.in_transaction(TRANSACTION, frames.state("accepted"))))
        peer.say(frames.discharge(peer.number(), TRANSACTION, fail=True))
    elif facts["cause"] == "lost":
        peer.say(frames.detach(1))
    else:
        env.gateway.close_connections()
        peer.listen()
        env.gateway = build_gateway(tables, env.realm)
    return env.show()


def _state(state: str) -> Described:
    if state.startswith("modified"):
        return frames.state("modified", "-failed" in state, "-undeliverable" in state)
    if state == "received":
        return frames.state("received", UInt(0), ULong(0))
    if state.startswith("transactional"):
        return frames.in_transaction(TRANSACTION, frames.state("accepted"))
    return Described(ULong(0x77), []) if state == "unknown" else frames.state(state)


NOT_STATED = ("sent-settled", "too-large")  # by a peer


def _settle(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    env.realm.attempts_end = facts["attempts"] == "last"
    node = "q" if facts["subscription"] in ("queue", "browse") else "c"
    mode = "copy" if facts["subscription"] == "browse" else None
    durable = DURABILITY.index(facts["source_durability"])
    if facts["subscription"] != "plain":
        env.store(node)
    state, settled = facts["state"], 1 if facts["state"] == "sent-settled" else 2
    peer = env.peer("peer")
    rcv = RCV.index(facts["receiver_settle_mode"])
    size_max = len(MESSAGE) - 1 if state == "too-large" else 0
    where = frames.source(node, durable, mode)
    peer.say(frames.attach_receiver(where, mode=settled, rcv=rcv, size_max=size_max), frames.flow(1, 3))
    if state in ("transactional", "transactional-full"):
        begin(env, peer, "full" if state == "transactional-full" else "open")
    if facts["subscription"] == "plain":
        publisher = env.peer("publisher")
        publisher.say(frames.attach_sender("c"))
        publisher.say(frames.transfer(0, MESSAGE))
        peer.listen()
    if state not in NOT_STATED:
        repeat = facts["already_settled"] == "yes"
        if repeat:
            env.realm.holds.add("settle")
            peer.say(frames.disposition(0, 0, _state(state), settled=False))
        peer.say(frames.disposition(0, 0, _state(state), settled=False))
        env.realm.release()
    if state == "transactional":
        peer.say(frames.discharge(peer.number(), TRANSACTION))
    return env.show(node, durable)


def _settled(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables)
    env.store("q")
    env.realm.answers["settle"] = facts["answer"]
    link = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
    states = tables["settle"].slice(**link, already_settled="no", attempts="below")
    words = [state for state in states.axes["state"] if state not in NOT_STATED]
    state = next((word for word in words if _does(states, word, facts["operation"])), "accepted")
    peer = env.peer("peer")
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    peer.say(frames.disposition(0, 0, _state(state), settled=facts["peer_settled"] == "yes"))
    env.realm.answers.clear()
    return env.show()


def _does(states: Any, state: str, operation: str) -> bool:
    return bool(states.decide(state=state).then["native"] == operation)


SCENARIOS: dict[str, Callable[[Facts, TableSet], list[Any]]] = {
    "attach": _attach,
    "attached": _attached,
    "publish": _publish,
    "published": _published,
    "default": _default,
    "settle": _settle,
    "settled": _settled,
    "fault": run_fault,
    "capability": run_capability,
    "coordinate": run_coordinate,
    "committed": run_committed,
    "posted": run_posted,
}
