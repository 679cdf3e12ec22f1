"""Variants of what consumers are told, and of what the journal says: A1 to A6, and the rules (A3)."""

from __future__ import annotations

from native_backend.nodes.properties import Properties
from reconciliation.transforms.copies import LATE_US
from tests.reconciliation.variants.shared_realm import Expected, SharedRealm, Variant, tag
from tests.reconciliation.world import TABLES


def told_and_not_noted(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[:1], "accepted", journal=False)
    return Expected({"A1": [tag(node, sent[0].eid)]}, "acknowledge was answered done")


def discarded_and_not_noted(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[1:2], "rejected", journal=False)
    return Expected({"A1": [tag(node, sent[1].eid)]}, "dead-letter was answered done")


def noted_of_another_event(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    [seq] = shared.run.settle(node, sent[:1], "accepted", journal=False)
    shared.run.journal(node, "queue", "acknowledge", [sent[1].eid], [seq], False, "disposition")
    return Expected({"A1": [tag(node, sent[0].eid)], "A2": [tag(node, sent[1].eid)]})


def noted_and_told_otherwise(shared: SharedRealm, name: str) -> Expected:
    """Released, its consumer heard; the journal has ended it."""
    node, sent = shared.queue(name)
    [seq] = shared.run.number(1)
    shared.settled(node, [sent[1].eid], [seq], "released")
    shared.run.journal(node, "queue", "acknowledge", [sent[1].eid], [seq], False, "disposition")
    return Expected({"A2": [tag(node, sent[1].eid)]}, "its outcome record says: return")


def noted_and_not_told(shared: SharedRealm, name: str) -> Expected:
    """Under a seq that the run never gave."""
    node, sent = shared.queue(name)
    shared.run.journal(node, "queue", "acknowledge", [sent[0].eid], [800_000], False, "disposition")
    return Expected({"A2": [tag(node, sent[0].eid)]}, "no outcome record speaks of it")


def noted_for_no_delivery(shared: SharedRealm, name: str) -> Expected:
    """As only the realm itself writes, and never with a consumer's verb."""
    node, sent = shared.queue(name)
    shared.run.journal(node, "queue", "acknowledge", [sent[0].eid], [0], False, "disposition")
    return Expected({"A2": [tag(node, sent[0].eid)]}, "no consumer can have asked for it")


def another_outcome(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[:1], "accepted")
    shared.told(shared.last_group, outcome="released")
    return Expected({"A3": [tag(node, sent[0].eid)]}, "outcome released where the table says accepted")


def another_rule(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[:1], "accepted")
    shared.told(shared.last_group, rule="released-returns")
    return Expected({"A3": [tag(node, sent[0].eid)]}, "rule released-returns where the table says")


def another_condition(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    shared.run.tell_publish(node, shared.run.number(1), [-1], "capacity-reached")
    shared.told(shared.last_group, condition="amqp:internal-error")
    return Expected({"A3": [""]}, "condition amqp:internal-error where the table says")


def another_class_of_error(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    shared.run.tell_publish(node, shared.run.number(1), [-1], "capacity-reached")
    is_fatal = shared.last_group["class"] == "fatal"
    shared.told(shared.last_group, **{"class": "transient" if is_fatal else "fatal"})
    return Expected({"A3": [""]}, "class ")


def another_operation_in_the_journal(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    [seq] = shared.run.settle(node, sent[:1], "accepted", journal=False)
    shared.run.journal(node, "queue", "discard", [sent[0].eid], [seq], False, "disposition")
    return Expected({"A3": [tag(node, sent[0].eid)]}, "told acknowledge, in the journal discard")


def decided_as_of_a_durable(shared: SharedRealm, name: str) -> Expected:
    """The cell says what the node is not: the outcome is the same."""
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[:1], "accepted")
    other = TABLES["settle"].decide(
        state="accepted", already_settled="no", subscription="durable", source_durability="unsettled-state",
        receiver_settle_mode="first", attempts="below",
    )  # fmt: skip
    shared.told(shared.last_group, cell=other.cell, rule=other.rule)
    return Expected(
        {"A3": [tag(node, sent[0].eid)]}, "subscription durable in the cell of settle, where the record says queue"
    )


def decided_as_presettled(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name, 1)
    shared.told(shared.last_group, presettled=1)
    return Expected({"A3": [tag(node, sent[0].eid)]}, "presettled no in the cell of publish, where the record says yes")


def answered_otherwise(shared: SharedRealm, name: str) -> Expected:
    """The answer's cell is that of another answer; all that was told goes with it."""
    node, _ = shared.queue(name)
    shared.run.tell_publish(node, shared.run.number(1), [-1], "capacity-reached")
    shared.told(shared.last_group, answer="unexpected")
    return Expected({"A3": [""]}, "answer capacity-reached in the cell of published, where the record says unexpected")


def ended_twice(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[1:2], "accepted")
    shared.run.turn()
    shared.run.settle(node, sent[1:2], "accepted")
    return Expected({"A4": [tag(node, sent[1].eid)]}, "ended 2 times in the journal")


def expired_after_its_end(shared: SharedRealm, name: str) -> Expected:
    node = shared.world.queue(name)
    sent = shared.run.publish(node, 3, ttl="T1000")
    shared.run.settle(node, sent[:1], "accepted")
    shared.run.journal(node, "queue", "expired", [sent[0].eid], [0], False, "ttl")
    return Expected({"A4": [tag(node, sent[0].eid)]}, "ended 2 times in the journal")


def given_back_after_its_end(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[2:3], "accepted")
    shared.run.turn()
    shared.run.settle(node, sent[2:3], "released")
    return Expected({"A4": [tag(node, sent[2].eid)]}, "and given back at offset")


def passed_over(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[1:2], "accepted")
    shared.at_end.append(lambda: shared.world.project(node, None, sent[2].eid))
    return Expected({"A5": [tag(node, sent[0].eid)]}, "never ended in the journal")


def passed_over_by_a_snapshot(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[1:2], "accepted")

    def snapshot() -> None:
        end = shared.world.journal_end
        shared.world.snapshot(node, "queue", sent[2].eid, [], end)

    shared.at_end.append(snapshot)
    return Expected({"A5": [tag(node, sent[0].eid)]}, "never ended in the journal")


def returned_and_not_noted(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.returned(node, sent[0], "released", failed=None)
    return Expected({"A6": [tag(node, sent[0].eid)]}, "told return; the journal has no return of it")


def failed_and_not_counted(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.returned(node, sent[0], "modified-failed", failed=0)
    return Expected({"A6": [tag(node, sent[0].eid)]}, "told return failed, in the journal return")


def released_and_counted(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.returned(node, sent[0], "released", failed=1)
    shared.returned(node, sent[1], "modified", failed=1)
    return Expected({"A6": [tag(node, event.eid) for event in sent[:2]]}, "told return, in the journal return failed")


def returned_is_another_event(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    [seq] = shared.run.number(1)
    shared.settled(node, [sent[0].eid], [seq], "released")
    shared.run.journal(node, "queue", "return", [sent[3].eid], [seq], False, "disposition")
    return Expected({"A6": [tag(node, sent[0].eid)]}, "told return; the journal has no return of it")


def returned_twice(shared: SharedRealm, name: str) -> Expected:
    """One attempt, and the next gateway counts two."""
    node, sent = shared.queue(name)
    seq = shared.returned(node, sent[0], "modified-failed", failed=1)
    shared.noted(node, "return", sent[0], seq, failed=True)
    return Expected({"A6": [tag(node, sent[0].eid)]}, "journal return failed 2 times by one delivery")


def returned_twice_in_one_record(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    [seq] = shared.run.number(1)
    shared.settled(node, [sent[1].eid], [seq], "modified-failed")
    shared.run.journal(node, "queue", "return", 2 * [sent[1].eid], 2 * [seq], True, "disposition")
    return Expected({"A6": [tag(node, sent[1].eid)]}, "journal return failed 2 times by one delivery")


def returned_and_counted_besides(shared: SharedRealm, name: str) -> Expected:
    """One of the two is as its outcome record says."""
    node, sent = shared.queue(name)
    seq = shared.returned(node, sent[0], "released", failed=0)
    shared.noted(node, "return", sent[0], seq, failed=True)
    words = "journal return, journal return failed 2 times by one delivery"
    return Expected({"A6": [tag(node, sent[0].eid)]}, words)


def returned_for_no_delivery(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.noted(node, "return", sent[1], 0, failed=True)
    return Expected({"A6": [tag(node, sent[1].eid)]}, "return in the journal, for no delivery")


def returned_and_not_told(shared: SharedRealm, name: str) -> Expected:
    """Under a seq that the run never gave."""
    node, sent = shared.queue(name)
    shared.noted(node, "return", sent[1], 810_000, failed=True)
    return Expected({"A6": [tag(node, sent[1].eid)]}, "journal return failed: no outcome record speaks of it")


def returned_under_the_seq_of_a_publish(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.noted(node, "return", sent[2], sent[2].seq)
    return Expected({"A6": [tag(node, sent[2].eid)]}, "journal return: its outcome record says: stored")


def returned_and_then_ended(shared: SharedRealm, name: str) -> Expected:
    """By one delivery, whose outcome record has the end."""
    node, sent = shared.queue(name)
    [seq] = shared.run.settle(node, sent[:1], "accepted", journal=False)
    shared.noted(node, "return", sent[0], seq, failed=True)
    shared.noted(node, "acknowledge", sent[0], seq)
    return Expected({"A6": [tag(node, sent[0].eid)]}, "journal return failed: its outcome record says: acknowledge")


def ended_in_two_ways(shared: SharedRealm, name: str) -> Expected:
    """By one delivery: the end that its outcome record has is there, too."""
    node, sent = shared.queue(name)
    [seq] = shared.run.settle(node, sent[:1], "rejected")
    shared.noted(node, "acknowledge", sent[0], seq)
    words = "journal acknowledge, journal dead-letter 2 times by one delivery"
    return Expected({"A3": [tag(node, sent[0].eid)]}, words)


def ended_again_by_the_same_delivery(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    [seq] = shared.run.settle(node, sent[3:], "accepted")
    shared.noted(node, "acknowledge", sent[3], seq)
    return Expected({"A4": [tag(node, sent[3].eid)]}, "journal acknowledge 2 times by one delivery")


def ended_with_another_event(shared: SharedRealm, name: str) -> Expected:
    """By one delivery, which was of the first one."""
    node, sent = shared.queue(name)
    [seq] = shared.run.settle(node, sent[1:2], "accepted")
    shared.noted(node, "acknowledge", sent[0], seq)
    words = f"journal acknowledge 2 times by one delivery, also of EID {sent[1].eid}"
    return Expected({"A2": [tag(node, sent[0].eid)]}, words)


def given_up_and_kept_nowhere(shared: SharedRealm, name: str) -> Expected:
    """Its node has a dead-letter node, and had it long before. A letter that is given up again is kept nowhere."""
    shared.world.queue(f"{name}-letters")
    node = shared.world.queue(name, Properties(dead_letter=f"{name}-letters"))
    others, [other] = shared.queue(f"{name}-others", 1)
    shared.letters(others, node, [other.eid], [other.eid])
    sent = shared.run.publish(node, 2)
    shared.world.clock.now_us += 2 * LATE_US
    shared.letters(node, others, [sent[1].eid], [sent[1].eid])
    shared.letters(node, None, [0, sent[0].eid], [])
    words = f"given up, and by the journal it is not kept in node {name}-letters"
    return Expected({"A7": [tag(node, sent[0].eid)]}, words)


def another_node_named(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[:1], "accepted")
    shared.told(shared.last_group, node="elsewhere")
    return Expected({"A3": [tag(node, sent[0].eid)]}, f"node elsewhere where the store is of node {name}")


VARIANTS = [
    Variant("given-up-and-kept-nowhere", given_up_and_kept_nowhere),
    Variant("another-node-named", another_node_named),
    Variant("told-and-not-noted", told_and_not_noted),
    Variant("discarded-and-not-noted", discarded_and_not_noted),
    Variant("noted-of-another-event", noted_of_another_event),
    Variant("noted-and-told-otherwise", noted_and_told_otherwise),
    Variant("noted-and-not-told", noted_and_not_told),
    Variant("noted-for-no-delivery", noted_for_no_delivery),
    Variant("another-outcome", another_outcome),
    Variant("another-rule", another_rule),
    Variant("another-condition", another_condition),
    Variant("another-class-of-error", another_class_of_error),
    Variant("another-operation-in-the-journal", another_operation_in_the_journal),
    Variant("decided-as-of-a-durable", decided_as_of_a_durable),
    Variant("decided-as-presettled", decided_as_presettled),
    Variant("answered-otherwise", answered_otherwise),
    Variant("ended-twice", ended_twice),
    Variant("expired-after-its-end", expired_after_its_end),
    Variant("given-back-after-its-end", given_back_after_its_end),
    Variant("passed-over", passed_over),
    Variant("passed-over-by-a-snapshot", passed_over_by_a_snapshot),
    Variant("returned-and-not-noted", returned_and_not_noted),
    Variant("failed-and-not-counted", failed_and_not_counted),
    Variant("released-and-counted", released_and_counted),
    Variant("returned-is-another-event", returned_is_another_event),
    Variant("returned-twice", returned_twice),
    Variant("returned-twice-in-one-record", returned_twice_in_one_record),
    Variant("returned-and-counted-besides", returned_and_counted_besides),
    Variant("returned-for-no-delivery", returned_for_no_delivery),
    Variant("returned-and-not-told", returned_and_not_told),
    Variant("returned-under-the-seq-of-a-publish", returned_under_the_seq_of_a_publish),
    Variant("returned-and-then-ended", returned_and_then_ended),
    Variant("ended-in-two-ways", ended_in_two_ways),
    Variant("ended-again-by-the-same-delivery", ended_again_by_the_same_delivery),
    Variant("ended-with-another-event", ended_with_another_event),
]
