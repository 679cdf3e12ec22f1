"""Variants of evidence that is missing, doubled, unreadable or changed: Q1, G2. They name a run, or no place at all."""

from __future__ import annotations

import json

from tests.reconciliation.variants.shared_realm import KEY, Expected, SharedRealm, Variant
from tests.reconciliation.world import TABLES

UNKNOWN = "1a2b3c4d5e6-beef"


def outcomes_with_a_hole(shared: SharedRealm, name: str) -> Expected:
    run = shared.world.run()
    run.turn()
    run.records += 2
    run.close()
    return Expected({"Q1": [""]}, "2 outcomes records missing: n 3 to 4", run.name)


def outcomes_cut_off(shared: SharedRealm, name: str) -> Expected:
    run = shared.world.run()
    run.records += 3
    run.attest()
    return Expected({"Q1": [""]}, "the journal notes that 4 were stored", run.name)


def a_delivery_without_outcome(shared: SharedRealm, name: str) -> Expected:
    node = shared.world.queue(name)
    run = shared.world.run()
    run.publish(node, 1)
    run.told.update(run.number(1))  # counted by `low`, and in no record
    run.close()
    return Expected({"Q1": [""]}, "1 deliveries without outcome record, seqs 2 to 2", run.name)


def two_outcomes_of_one_delivery(shared: SharedRealm, name: str) -> Expected:
    node = shared.world.queue(name)
    run = shared.world.run()
    [sent] = run.publish(node, 1)
    run.turn()
    run.tell_publish(node, [sent.seq], [sent.eid], "stored")
    run.close()
    return Expected({"Q1": [f"{node.store}:{sent.eid}"]}, "2 outcome records speak of this delivery", run.name)


def a_record_that_is_there_twice(shared: SharedRealm, name: str) -> Expected:
    run = shared.world.run()
    run.records -= 1
    run.turn()
    run.close()
    return Expected({"Q1": [""]}, "1 outcomes records are there twice", run.name)


def journal_records_that_are_there_twice(shared: SharedRealm, name: str) -> Expected:
    """An earlier release wrote them again when the result of a transaction was unknown: what they say counts once."""
    node, run = shared.world.queue(name), shared.world.run()
    sent = run.publish(node, 2)
    for state in ("released", "modified-failed", "accepted"):
        run.settle(node, sent, state)
        run.commit_again()
    run.close()
    return Expected({"Q1": [""]}, "3 journal records are there twice", run.name)


def journal_with_a_hole(shared: SharedRealm, name: str) -> Expected:
    run = shared.world.run()
    run.commits += 2
    run.attest()
    run.close()
    return Expected({"Q1": [""]}, "2 journal records missing: n 2 to 3", run.name)


def tables_that_are_not_stored(shared: SharedRealm, name: str) -> Expected:
    run = shared.world.run()
    run.records += 1
    record = {"v": 1, "run": run.name, "n": 2, "at": 1, "low": 1, "next": 1, "digest": "f" * 32, "profile": "x",
              "closed": 1, "groups": []}  # fmt: skip
    shared.world.append(f"{shared.world.prefix}.outcomes", [run.name.encode()], [json.dumps(record).encode()])
    return Expected({"Q1": [""]}, f"no expanded tables under digest {'f' * 32}", run.name)


def events_of_a_run_that_is_unknown(shared: SharedRealm, name: str) -> Expected:
    node, _ = shared.queue(name)
    [eid] = shared.world.append(node.topic, [KEY % (UNKNOWN.encode(), 3)], [b"x"])
    return Expected({"Q1": [f"{node.store}:{eid}"]}, "no such run is known")


def ends_of_a_run_that_is_unknown(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name)
    entry = shared.run.entry(node, "queue", "acknowledge", "disposition", [[sent[0].eid, sent[0].eid, 9, sent[0].eid]])
    shared.world.commit(shared.run.name, {"v": 1, "run": "1a2b3c4d5e7-beef", "n": 1, "at": 1, "entries": [entry]})
    return Expected({"Q1": [f"{node.store}:{sent[0].eid}"]}, "no outcome record of this run is there")


def a_cell_without_a_rule(shared: SharedRealm, name: str) -> Expected:
    node, sent = shared.queue(name, 1)
    shared.told(shared.last_group, cell=9999)
    return Expected({"Q1": [f"{node.store}:{sent[0].eid}"]}, "have no rule in cell 9999 of table publish")


def an_outcome_record_that_is_no_json(shared: SharedRealm, name: str) -> Expected:
    shared.world.append(f"{shared.world.prefix}.outcomes", [b"x"], [b"no json"])
    return Expected({"Q1": [""]}, "1 outcomes records cannot be read")


def a_journal_record_of_what_is_no_run(shared: SharedRealm, name: str) -> Expected:
    """One octet of its run is another one. It is JSON still."""
    record = {"v": 1, "run": "19aa5b3c1g0-9c2e", "n": 1, "at": 1, "entries": []}
    shared.world.commit(shared.run.name, record)
    return Expected({"Q1": [""]}, "1 journal records cannot be read")


def a_snapshot_without_its_place(shared: SharedRealm, name: str) -> Expected:
    value = {"v": 1, "node": "n", "durable": "d", "store": 7, "jousnal": 1, "low": 1, "acked": [], "failed": []}
    shared.put("state", b'[7,"d"]', value)
    return Expected({"Q1": [""]}, 'state record of [7,"d"]: it has no journal')


def a_snapshot_of_no_durable(shared: SharedRealm, name: str) -> Expected:
    value = {"v": 1, "node": "n", "durable": "d", "store": 7, "journal": 1, "low": 1, "acked": [], "failed": []}
    shared.put("state", b'[7,"e]', value)
    return Expected({"Q1": [""]}, 'state record of [7,"e]: ')


def tables_without_a_digest(shared: SharedRealm, name: str) -> Expected:
    document = {"digesu" if key == "digest" else key: value for key, value in TABLES.expanded().items()}
    shared.put("tables", b"one more", document)
    return Expected({"Q1": [""]}, "tables record of one more: it has no digest")


def metadata_that_is_no_json(shared: SharedRealm, name: str) -> Expected:
    shared.put("realm", b'["node","not-json"]', b"nor this")
    return Expected({"Q1": [""]}, "realm record at offset")


def tables_under_the_digest_of_others(shared: SharedRealm, name: str) -> Expected:
    document = {**TABLES.expanded(), "profile": "changed", "stored_us": 7}
    shared.put("tables", b"another key", document)
    return Expected({"G2": [""]}, f"the tables stored under digest {TABLES.digest} have the digest ")


VARIANTS = [
    Variant("outcomes-with-a-hole", outcomes_with_a_hole),
    Variant("outcomes-cut-off", outcomes_cut_off),
    Variant("a-delivery-without-outcome", a_delivery_without_outcome),
    Variant("two-outcomes-of-one-delivery", two_outcomes_of_one_delivery),
    Variant("a-record-that-is-there-twice", a_record_that_is_there_twice),
    Variant("journal-records-that-are-there-twice", journal_records_that_are_there_twice),
    Variant("journal-with-a-hole", journal_with_a_hole),
    Variant("tables-that-are-not-stored", tables_that_are_not_stored),
    Variant("events-of-a-run-that-is-unknown", events_of_a_run_that_is_unknown),
    Variant("ends-of-a-run-that-is-unknown", ends_of_a_run_that_is_unknown),
    Variant("a-cell-without-a-rule", a_cell_without_a_rule),
    Variant("an-outcome-record-that-is-no-json", an_outcome_record_that_is_no_json),
    Variant("a-journal-record-of-what-is-no-run", a_journal_record_of_what_is_no_run),
    Variant("a-snapshot-without-its-place", a_snapshot_without_its_place),
    Variant("a-snapshot-of-no-durable", a_snapshot_of_no_durable),
    Variant("tables-without-a-digest", tables_without_a_digest),
    Variant("metadata-that-is-no-json", metadata_that_is_no_json),
    Variant("tables-under-the-digest-of-others", tables_under_the_digest_of_others),
]
