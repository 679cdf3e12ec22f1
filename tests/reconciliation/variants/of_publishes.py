"""Variants of what publishers are told, and of what is in the stores: P1 to P6, A12, S1, S3, S4."""

from __future__ import annotations

from native_backend.log.port import TopicSpec
from native_backend.nodes.properties import Properties
from tests.reconciliation.variants.stage import KEY, Expected, Stage, Variant, tag


def told_and_not_there(stage: Stage, name: str) -> Expected:
    node, sent = stage.queue(name)
    eid = sent[-1].eid + 1
    stage.run.tell_publish(node, stage.run.number(1), [eid], "stored")
    return Expected({"P1": [tag(node, eid)]}, "the store has no such event")


def a_batch_that_is_not_there(stage: Stage, name: str) -> Expected:
    node, sent = stage.queue(name, 1)
    eids = [sent[-1].eid + 1, sent[-1].eid + 2, sent[-1].eid + 3]
    stage.run.tell_publish(node, stage.run.number(3), eids, "stored")
    return Expected({"P1": [tag(node, eid) for eid in eids]})


def the_same_again(stage: Stage, name: str) -> Expected:
    node, sent = stage.queue(name)
    [eid] = stage.world.append(node.topic, [KEY % (stage.run.name.encode(), sent[1].seq)], [b"x"])
    return Expected({"P2": [tag(node, eid)]}, "stored at EIDs")


def the_same_in_another_node(stage: Stage, name: str) -> Expected:
    _, sent = stage.queue(f"{name}-home")
    node, _ = stage.queue(name)
    [eid] = stage.world.append(node.topic, [KEY % (stage.run.name.encode(), sent[1].seq)], [b"x"])
    return Expected({"P2": [tag(node, eid)]}, "stored under the tags")


def of_a_foreign_writer(stage: Stage, name: str) -> Expected:
    node, _ = stage.queue(name)
    [eid] = stage.world.append(node.topic, [b"not ours"], [b"x"])
    return Expected({"P3": [tag(node, eid)]}, "written by no gateway")


def of_no_delivery(stage: Stage, name: str) -> Expected:
    """The key names a seq that the run never gave."""
    node, _ = stage.queue(name)
    [eid] = stage.world.append(node.topic, [KEY % (stage.run.name.encode(), 900_000)], [b"x"])
    return Expected({"P3": [tag(node, eid)]}, "no publish outcome")


def of_a_settlement(stage: Stage, name: str) -> Expected:
    """The key names a seq that was a consumer's."""
    node, sent = stage.queue(name)
    [seq] = stage.run.settle(node, sent[:1], "accepted")
    [eid] = stage.world.append(node.topic, [KEY % (stage.run.name.encode(), seq)], [b"x"])
    return Expected({"P3": [tag(node, eid)]})


def refused_and_there(stage: Stage, name: str) -> Expected:
    node, _ = stage.queue(name)
    seqs = stage.run.number(1)
    stage.run.tell_publish(node, seqs, [-1], "capacity-reached")
    [eid] = stage.run.store(node, seqs)
    return Expected({"P4": [tag(node, eid)]}, "refused to the publisher")


def unknown_and_there(stage: Stage, name: str) -> Expected:
    node, _ = stage.queue(name)
    seqs = stage.run.number(1)
    stage.run.tell_publish(node, seqs, [-1], "indeterminate")
    [eid] = stage.run.store(node, seqs)
    return Expected({"P5": [tag(node, eid)]}, "answer unknown: found")


def unknown_and_not_there(stage: Stage, name: str) -> Expected:
    node, _ = stage.queue(name)
    stage.run.tell_publish(node, stage.run.number(1), [-1], "indeterminate")
    return Expected({"P5": [""]}, "answer unknown: not found")


def out_of_order(stage: Stage, name: str) -> Expected:
    node, _ = stage.queue(name)
    first, second = stage.run.number(2)
    later, sooner = stage.run.store(node, [second, first])
    stage.run.tell_publish(node, [first, second], [sooner, later], "stored")
    return Expected({"P6": [tag(node, later)]}, f"sent after what is stored at EID {sooner}, and stored before it")


def out_of_order_in_two_turns(stage: Stage, name: str) -> Expected:
    node, _ = stage.queue(name)
    first, second = stage.run.number(2)
    later, sooner = stage.run.store(node, [second, first])
    stage.run.tell_publish(node, [first], [sooner], "stored")
    stage.run.turn()
    stage.run.tell_publish(node, [second], [later], "stored")
    return Expected({"P6": [tag(node, later)]})


def presettled_and_refused(stage: Stage, name: str) -> Expected:
    node, _ = stage.queue(name)
    stage.run.tell_publish(node, stage.run.number(2), [-1, -1], "capacity-reached", presettled=True)
    return Expected({"A12": [""]}, "capacity-reached")


def trimmed_unread(stage: Stage, name: str) -> Expected:
    node, sent = stage.queue(name)
    stage.run.settle(node, sent[:1], "accepted")
    stage.at_end.append(lambda: stage.world.log.control.trim(node.topic, 0, sent[2].eid))
    return Expected({"S1": [tag(node, sent[1].eid)]}, "the store begins at")


def made_again(stage: Stage, name: str) -> Expected:
    """The topic of the node is another one now."""
    node, sent = stage.queue(name, 2)

    def replace() -> None:
        stage.world.log.control.delete_topics([node.topic])
        stage.world.log.control.create_topics([TopicSpec(node.topic)])

    stage.at_end.append(replace)
    return Expected({"S3": [""], "P1": [tag(node, one.eid) for one in sent]}, "another one made of its name")


def over_capacity(stage: Stage, name: str) -> Expected:
    node = stage.world.queue(name, Properties(capacity_events=3, honour_capacity=True))
    stage.run.publish(node, 5)
    return Expected({"S4": [""]}, "holds 5 messages that were accepted, and honours a capacity of 3")


VARIANTS = [
    Variant("told-and-not-there", told_and_not_there),
    Variant("a-batch-that-is-not-there", a_batch_that_is_not_there),
    Variant("the-same-again", the_same_again),
    Variant("the-same-in-another-node", the_same_in_another_node),
    Variant("of-a-foreign-writer", of_a_foreign_writer),
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
