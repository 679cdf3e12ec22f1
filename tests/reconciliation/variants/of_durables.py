"""Variants of what a durable is given again after its end (A4), where another durable has or had its name: what the one
did is no excuse for the other."""

from __future__ import annotations

from native_backend.nodes.node import Node
from tests.reconciliation.variants.shared_realm import Expected, SharedRealm, Variant, tag
from tests.reconciliation.world import Sent

DURABLE = "app:durable"
TWICE = "and again at offset"


def _begun(shared: SharedRealm, name: str) -> tuple[Node, list[Sent]]:
    node = shared.world.channel(name)
    shared.world.durable_again(node, DURABLE, 0)
    return node, shared.run.publish(node, 4)


def _made_again(shared: SharedRealm, node: Node, start: int) -> list[Sent]:
    shared.run.unsubscribe(node, DURABLE)
    shared.world.durable_again(node, DURABLE, start)
    more = shared.run.publish(node, 3)
    shared.run.settle(node, more[:1], "accepted", DURABLE)
    return more


def ended_twice_before(shared: SharedRealm, name: str) -> Expected:
    """Below the start of the next one."""
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    shared.run.settle(node, sent[1:2], "accepted", DURABLE)
    _made_again(shared, node, sent[-1].eid + 1)
    return Expected({"A4": [tag(node, sent[1].eid)]}, TWICE)


def ended_twice_before_and_once_since(shared: SharedRealm, name: str) -> Expected:
    """The next one begins with the oldest event."""
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    shared.run.settle(node, sent[1:2], "accepted", DURABLE)
    _made_again(shared, node, 0)
    shared.run.settle(node, sent, "accepted", DURABLE)
    return Expected({"A4": [tag(node, sent[1].eid)]}, TWICE)


def ended_once_before_and_twice_since(shared: SharedRealm, name: str) -> Expected:
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent, "accepted", DURABLE)
    _made_again(shared, node, 0)
    shared.run.settle(node, sent[:3], "accepted", DURABLE)
    shared.run.settle(node, sent[2:3], "accepted", DURABLE)
    return Expected({"A4": [tag(node, sent[2].eid)]}, "ended 2 times in the journal")


def ended_twice_since(shared: SharedRealm, name: str) -> Expected:
    """Of what was published for the second one alone."""
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    more = _made_again(shared, node, sent[-1].eid + 1)
    shared.run.settle(node, more[:1], "accepted", DURABLE)
    return Expected({"A4": [tag(node, more[0].eid)]}, "ended 2 times in the journal")


def given_back_before(shared: SharedRealm, name: str) -> Expected:
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    shared.run.settle(node, sent[:1], "released", DURABLE)
    _made_again(shared, node, sent[-1].eid + 1)
    return Expected({"A4": [tag(node, sent[0].eid)]}, "and given back at offset")


def given_back_since(shared: SharedRealm, name: str) -> Expected:
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    _made_again(shared, node, 0)
    shared.run.settle(node, sent[:2], "released", DURABLE)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    shared.run.settle(node, sent[:1], "released", DURABLE)
    return Expected({"A4": [tag(node, sent[0].eid)]}, "and given back at offset")


def ended_twice_by_one_that_is_gone(shared: SharedRealm, name: str) -> Expected:
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    shared.run.settle(node, sent[1:2], "accepted", DURABLE)
    shared.run.unsubscribe(node, DURABLE)
    return Expected({"A4": [tag(node, sent[1].eid)]}, TWICE)


def ended_twice_before_a_seek(shared: SharedRealm, name: str) -> Expected:
    """By an operator, who knew nothing of it."""
    node, sent = _begun(shared, name)
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    shared.run.settle(node, sent[1:2], "accepted", DURABLE)
    shared.world.command(name, "seek", node, durable=DURABLE)
    shared.run.note(node, DURABLE, "seek", sent[0].eid, sent[0].eid, f"command {name}")
    shared.run.settle(node, sent[:2], "accepted", DURABLE)
    return Expected({"A4": [tag(node, sent[1].eid)]}, TWICE)


def expired_too_early_before(shared: SharedRealm, name: str) -> Expected:
    """S2, by the first durable."""
    node = shared.world.channel(name)
    shared.world.durable_again(node, DURABLE, 0)
    sent = shared.run.publish(node, 2, ttl="T999999999999")
    shared.run.journal(node, DURABLE, "expired", [sent[0].eid], [0], False, "ttl")
    _made_again(shared, node, sent[-1].eid + 1)
    return Expected({"S2": [tag(node, sent[0].eid)]}, "ms before its time to live was over")


VARIANTS = [
    Variant("ended-twice-before", ended_twice_before),
    Variant("ended-twice-before-and-once-since", ended_twice_before_and_once_since),
    Variant("ended-once-before-and-twice-since", ended_once_before_and_twice_since),
    Variant("ended-twice-since", ended_twice_since),
    Variant("given-back-before", given_back_before),
    Variant("given-back-since", given_back_since),
    Variant("ended-twice-by-one-that-is-gone", ended_twice_by_one_that_is_gone),
    Variant("ended-twice-before-a-seek", ended_twice_before_a_seek),
    Variant("expired-too-early-before", expired_too_early_before),
]
