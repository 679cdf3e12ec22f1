"""Variants of what publishers are told, and of what is in the stores: P1 to P6, A12, S1, S3, S4."""

from __future__ import annotations

from native_backend.log.port import TopicSpec
from native_backend.nodes.properties import Properties
from tests.reconciliation.variants.shared_realm import KEY, Expected, SharedRealm, Variant, tag


def told_and_not_there(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    eid = sent[-1].eid + 1
    shared.run.tell_publish(node, shared.run.number(1), [eid], "stored")
    return Expected({"P1": [tag(node, eid)]}, "the store has no such event")


def a_batch_that_is_not_there(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name, 1)
    eids = [sent[-1].eid + 1, sent[-1].eid + 2, sent[-1].eid + 3]
    shared.run.tell_publish(node, shared.run.number(3), eids, "stored")
    return Expected({"P1": [tag(node, eid) for eid in eids]})


def the_same_again(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.world.append(node.topic, [KEY % (shared.run.name.encode(), sent[1].seq)], [b"x"])
    return Expected({"P2": [tag(node, sent[1].eid)]}, "stored at EIDs")


def the_same_in_another_node(shared: SharedRealm, name: str) -> Expected:
    _, sent = shared.queue(f"{name}-home")
    node, _ = shared.queue(name)
    [eid] = shared.world.append(node.topic, [KEY % (shared.run.name.encode(), sent[1].seq)], [b"x"])
    return Expected({"P2": [tag(node, eid)]}, "stored under the tags")


def of_a_foreign_writer(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    [eid] = shared.world.append(node.topic, [b"not ours"], [b"x"])
    return Expected({"P3": [tag(node, eid)]}, "written by no gateway")


def as_a_copy_of_an_eid_that_is_none(shared: SharedRealm, name: str) -> Expected:
    """Nineteen digits: more than an EID can have. It ended every reconciliation."""
    node, _ = shared.queue(name)
    [eid] = shared.world.append(node.topic, [b"2;1;9999999999999999999;rejected;k"], [b"x"])
    return Expected({"P3": [tag(node, eid)]}, "written by no gateway")


def of_no_delivery(shared: SharedRealm, name: str) -> Expected:
    """The key names a seq that the run never gave."""
    node, _ = shared.queue(name)
    [eid] = shared.world.append(node.topic, [KEY % (shared.run.name.encode(), 900_000)], [b"x"])
    return Expected({"P3": [tag(node, eid)]}, "no publish outcome")


def of_a_settlement(shared: SharedRealm, name: str) -> Expected:
    """The key names a seq that was a consumer's."""
    node, sent = shared.queue(name)
    [seq] = shared.run.settle(node, sent[:1], "accepted")
    [eid] = shared.world.append(node.topic, [KEY % (shared.run.name.encode(), seq)], [b"x"])
    return Expected({"P3": [tag(node, eid)]})


def refused_and_there(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    seqs = shared.run.number(1)
    shared.run.tell_publish(node, seqs, [-1], "capacity-reached")
    [eid] = shared.run.store(node, seqs)
    return Expected({"P4": [tag(node, eid)]}, "refused to the publisher")


def unknown_and_there(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    seqs = shared.run.number(1)
    shared.run.tell_publish(node, seqs, [-1], "indeterminate")
    [eid] = shared.run.store(node, seqs)
    return Expected({"P5": [tag(node, eid)]}, "answer unknown: found")


def unknown_and_not_there(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    shared.run.tell_publish(node, shared.run.number(1), [-1], "indeterminate")
    return Expected({"P5": [""]}, "answer unknown: not found")


def out_of_order(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    first, second = shared.run.number(2)
    later, sooner = shared.run.store(node, [second, first])
    shared.run.tell_publish(node, [first, second], [sooner, later], "stored")
    return Expected({"P6": [tag(node, later)]}, f"sent after what is stored at EID {sooner}, and stored before it")


def out_of_order_in_two_turns(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    first, second = shared.run.number(2)
    later, sooner = shared.run.store(node, [second, first])
    shared.run.tell_publish(node, [first], [sooner], "stored")
    shared.run.turn()
    shared.run.tell_publish(node, [second], [later], "stored")
    return Expected({"P6": [tag(node, later)]})


def presettled_and_refused(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    shared.run.tell_publish(node, shared.run.number(2), [-1, -1], "capacity-reached", presettled=True)
    return Expected({"A12": [""]}, "capacity-reached")


def trimmed_unread(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[:1], "accepted")
    shared.at_end.append(lambda: shared.world.log.control.trim(node.topic, 0, sent[2].eid))
    return Expected({"S1": [tag(node, sent[1].eid)]}, "the store begins at")


def made_again(shared: SharedRealm, name: str) -> Expected:
    """The topic of the node is another one now."""
    node, sent = shared.queue(name, 2)

    def replace() -> None:
        shared.world.log.control.delete_topics([node.topic])
        shared.world.log.control.create_topics([TopicSpec(node.topic)])

    shared.at_end.append(replace)
    return Expected({"S3": [""], "P1": [tag(node, event.eid) for event in sent]}, "another one made of its name")


def over_capacity(shared: SharedRealm, name: str) -> Expected:
    node = shared.world.queue(name, Properties(capacity_events=3, honour_capacity=True))
    shared.run.publish(node, 5)
    return Expected({"S4": [""]}, "holds 5 messages that were accepted, and honours a capacity of 3")


VARIANTS = [
    Variant("told-and-not-there", told_and_not_there),
    Variant("a-batch-that-is-not-there", a_batch_that_is_not_there),
    Variant("the-same-again", the_same_again),
    Variant("the-same-in-another-node", the_same_in_another_node),
    Variant("of-a-foreign-writer", of_a_foreign_writer),
    Variant("as-a-copy-of-an-eid-that-is-none", as_a_copy_of_an_eid_that_is_none),
    Variant("of-no-delivery", of_no_delivery),
    Variant("of-a-settlement", of_a_settlement),
    Variant("refused-and-there", refused_and_there),
    Variant("unknown-and-there", unknown_and_there),
    Variant("unknown-and-not-there", unknown_and_not_there),
    Variant("out-of-order", out_of_order),
    Variant("out-of-order-in-two-turns", out_of_order_in_two_turns),
    Variant("presettled-and-refused", presettled_and_refused),
    Variant("trimmed-unread", trimmed_unread),
    Variant("made-again", made_again),
    Variant("over-capacity", over_capacity),
]
