"""Variants of what the realm does by itself: copies (A7), states and group offsets (A9, A10), and what it ends without
a consumer (S2)."""

from __future__ import annotations

from collections.abc import Callable

from native_backend.nodes.group_offset import projection
from reconciliation.model.ranges import EID_SIZE
from tests.reconciliation.variants.shared_realm import Expected, SharedRealm, Variant, tag


def a_letter_is_missing(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    to = shared.world.queue(f"{name}-letters")
    shared.letters(node, to, [sent[0].eid, sent[1].eid], [sent[0].eid])
    return Expected({"A7": [tag(node, sent[1].eid)]}, "there are 0 copies of it, and should be 1")


def a_letter_is_there_twice(shared: SharedRealm, name: str) -> Expected:
    from_, sent = shared.queue(f"{name}-from")
    to = shared.world.queue(name)
    shared.letters(from_, to, [sent[0].eid], [sent[0].eid, sent[0].eid])
    return Expected({"A7": [""]}, f"there are 2 copies of {tag(from_, sent[0].eid)} here")


def a_letter_is_of_another_event(shared: SharedRealm, name: str) -> Expected:
    """As many as there should be."""
    node, sent = shared.queue(name)
    to = shared.world.queue(f"{name}-letters")
    shared.letters(node, to, [sent[0].eid, sent[1].eid], [sent[0].eid, sent[0].eid])
    return Expected({"A7": [tag(node, sent[1].eid)]})


def a_letter_that_nothing_was_given_up_for(shared: SharedRealm, name: str) -> Expected:
    from_, sent = shared.queue(f"{name}-from")
    to = shared.world.queue(name)
    shared.letters(from_, to, [], [sent[0].eid])
    return Expected({"A7": [""]}, "and the journal knows of 0")


def a_moved_event_is_missing(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    to = shared.world.queue(f"{name}-target")
    shared.world.command("a1", "move", node)
    shared.letters(node, to, [event.eid for event in sent[:2]], [sent[0].eid], "move", "command a1")
    return Expected({"A7": [tag(node, sent[1].eid)]}, "by the journal (move)")


def _shown(
    code: str, words: str, position: Callable[[int, int], tuple[int, str]]
) -> Callable[[SharedRealm, str], Expected]:
    """`position` makes of the mark and the journal's end what the group shows. Two of four events have ended."""

    def plant(shared: SharedRealm, name: str) -> Expected:
        node, sent = shared.queue(name)
        shared.run.settle(node, sent[:2], "accepted")

        def show() -> None:
            end = shared.world.journal_end
            shared.world.snapshot(node, "queue", sent[2].eid, [], end)
            shared.world.show(node, None, position(sent[2].eid, end))

        shared.at_end.append(show)
        return Expected({code: [""]}, words)

    return plant


def acknowledged_by_the_snapshot_alone(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[:1], "accepted")

    def snapshot() -> None:
        end = shared.world.journal_end
        shared.world.snapshot(node, "queue", sent[1].eid, [[sent[2].eid, sent[2].eid]], end)

    shared.at_end.append(snapshot)
    return Expected({"A9": [tag(node, sent[2].eid)]}, "its durable's snapshot says that it has ended")


def expired_without_a_time(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.journal(node, "queue", "expired", [sent[0].eid], [0], False, "ttl")
    return Expected({"S2": [tag(node, sent[0].eid)]}, "expired without a time to live")


def expired_too_early(shared: SharedRealm, name: str) -> Expected:
    node = shared.world.queue(name)
    sent = shared.run.publish(node, 2, ttl="T999999999999999")
    shared.run.journal(node, "queue", "expired", [sent[1].eid], [0], False, "ttl")
    return Expected({"S2": [tag(node, sent[1].eid)]}, "before its time to live was over")


def filtered_without_a_selector(shared: SharedRealm, name: str) -> Expected:
    node = shared.world.channel(name)
    sent = shared.run.publish(node, 3)
    shared.world.durable(node, "app:all", sent[0].eid)
    shared.run.journal(node, "app:all", "filtered", [sent[1].eid], [0], False, "selector")
    return Expected({"S2": [tag(node, sent[1].eid)]}, "for a durable that has no selector")


def evicted_without_a_capacity(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.note(node, "", "evicted", sent[0].eid, sent[1].eid, "capacity")
    return Expected({"S2": [tag(node, sent[1].eid)]}, "its node has no capacity")


def purged_by_no_command(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.run.note(node, "queue", "purge", sent[0].eid, sent[2].eid, f"command {name}")
    return Expected({"S2": [tag(node, sent[0].eid)]}, "and there is no such command")


def purged_by_the_command_for_another_node(shared: SharedRealm, name: str) -> Expected:
    other, _ = shared.queue(f"{name}-other")
    node, sent = shared.queue(name)
    shared.world.command("b2", "purge", other)
    shared.run.note(node, "queue", "purge", sent[0].eid, sent[0].eid, "command b2")
    return Expected({"S2": [tag(node, sent[0].eid)]}, f"which was to purge node {other.name}")


def purged_beyond_what_was_commanded(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.world.command("c7", "purge", node, eid=sent[2].eid)
    shared.run.note(node, "queue", "purge", sent[0].eid, sent[2].eid, "command c7")
    return Expected({"S2": [tag(node, sent[0].eid)]}, f"which was to purge what lies below EID {sent[2].eid}")


def sought_by_a_command_to_purge(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    shared.world.command("c3", "purge", node)
    shared.run.note(node, "queue", "seek", sent[2].eid, sent[2].eid, "command c3")
    return Expected({"S2": [tag(node, sent[2].eid)]}, "seek by command c3, which was to purge")


def moved_by_no_command(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    to = shared.world.queue(f"{name}-target")
    shared.letters(node, to, [sent[0].eid], [sent[0].eid], "move", f"command {name}")
    return Expected({"S2": [tag(node, sent[0].eid)]}, "move by command")


def forgotten_by_the_snapshot(shared: SharedRealm, name: str) -> Expected:
    """Both were ended before it was written."""
    node, sent = shared.queue(name)
    shared.run.settle(node, [sent[0], sent[2]], "accepted")
    shared.at_end.append(lambda: shared.world.snapshot(node, "queue", sent[1].eid, [], shared.world.journal_end))
    return Expected({"A9": [tag(node, sent[2].eid)]}, "does not say so: it will come again")


def forgotten_where_all_has_ended(shared: SharedRealm, name: str) -> Expected:
    """Of ranges, one lacks its last event; the newest event was ended after the snapshot."""
    node, sent = shared.queue(name, 6)
    eids = [event.eid for event in sent]
    shared.run.settle(node, sent[:5], "accepted")
    shared.world.snapshot(
        node, "queue", eids[1], [[eids[1], eids[1]], [eids[4], eids[4]]], shared.world.journal_end - 1
    )
    shared.world.snapshot(node, "queue", eids[1], [[eids[1], eids[2]], [eids[4], eids[4]]], shared.world.journal_end)
    shared.run.settle(node, sent[5:], "accepted")
    return Expected({"A9": [tag(node, eids[3])]}, "does not say so: it will come again")


def covered_by_the_end_of_another(shared: SharedRealm, name: str) -> Expected:
    """A digit too few: a gateway that starts takes the two before it for ended. One of them is."""
    node, sent = shared.queue(name)
    shared.run.settle(node, sent[1:2], "accepted")
    [seq] = shared.run.settle(node, sent[2:3], "accepted", journal=False)
    shared.covering(node, sent[2].eid, seq, sent[0].eid)
    return Expected({"A2": [tag(node, sent[0].eid)]}, "of the journal covers it, too")


def covered_in_earlier_blocks(shared: SharedRealm, name: str) -> Expected:
    """Every second one of the first block has ended, none of the second one, all of the third."""
    node, sent = shared.queue(name, 2 * EID_SIZE + 10)
    last = sent[2 * EID_SIZE :]
    shared.run.settle(node, sent[:EID_SIZE:2], "accepted")
    shared.run.settle(node, last[1:], "accepted")
    [seq] = shared.run.settle(node, last[:1], "accepted", journal=False)
    shared.covering(node, last[0].eid, seq, sent[EID_SIZE - 3].eid)
    taken = [sent[EID_SIZE - 3], *sent[EID_SIZE - 1 : 2 * EID_SIZE]]
    return Expected({"A2": [tag(node, event.eid) for event in taken]}, "of the journal covers it, too")


VARIANTS = [
    Variant("a-letter-is-missing", a_letter_is_missing),
    Variant("a-letter-is-there-twice", a_letter_is_there_twice),
    Variant("a-letter-is-of-another-event", a_letter_is_of_another_event),
    Variant("a-letter-that-nothing-was-given-up-for", a_letter_that_nothing_was_given_up_for),
    Variant("a-moved-event-is-missing", a_moved_event_is_missing),
    Variant("set-by-another-program", _shown("A9", "another program has set it", lambda low, _: (low, "mine"))),
    Variant("set-back-by-another-program", _shown("A10", "another program has set it", lambda low, _: (0, ""))),
    Variant("of-a-wrong-checksum", _shown("A9", "written for another offset",
                                          lambda low, end: (low, projection(low + 1, low, end)[1]))),
    Variant("moved-under-its-metadata", _shown("A10", "written for another offset",
                                               lambda low, end: (0, projection(low, low, end)[1]))),
    Variant("ahead-of-the-journal", _shown("A9", "and the journal ends at",
                                           lambda low, end: projection(low, low, end + 99_999))),
    Variant("older-than-the-snapshot", _shown("A10", "and that of the older snapshot",
                                              lambda low, end: projection(low - 1, low - 1, end))),
    Variant("acknowledged-by-the-snapshot-alone", acknowledged_by_the_snapshot_alone),
    Variant("forgotten-by-the-snapshot", forgotten_by_the_snapshot),
    Variant("forgotten-where-all-has-ended", forgotten_where_all_has_ended),
    Variant("covered-by-the-end-of-another", covered_by_the_end_of_another),
    Variant("covered-in-earlier-blocks", covered_in_earlier_blocks),
    Variant("expired-without-a-time", expired_without_a_time),
    Variant("expired-too-early", expired_too_early),
    Variant("filtered-without-a-selector", filtered_without_a_selector),
    Variant("evicted-without-a-capacity", evicted_without_a_capacity),
    Variant("purged-by-no-command", purged_by_no_command),
    Variant("purged-by-the-command-for-another-node", purged_by_the_command_for_another_node),
    Variant("purged-beyond-what-was-commanded", purged_beyond_what_was_commanded),
    Variant("sought-by-a-command-to-purge", sought_by_a_command_to_purge),
    Variant("moved-by-no-command", moved_by_no_command),
]  # fmt: skip
