"""What no record contains is named, with what each value would have led to. It is never guessed; where it makes no
difference it is not asked for."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.recorded import Recorded
from reconciliation.what_if.verdict import Verdict, decide
from tests.reconciliation.what_if import deciding
from tests.reconciliation.what_if.deciding import World, compiled, expanded

LINK = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
SETTLED: World = {
    **LINK, "cause": "disposition", "state": "accepted", "default_outcome": "unset", "in_transaction": "no",
    "attempts": "below", "answer": "done", "peer_settled": "no",
}  # fmt: skip
PUBLISHED: World = {
    "framing": "whole", "transformed": "event", "transactional": "no", "sender_settle_mode": "unsettled",
    "presettled": "no", "rejected": "agreed", "released": "agreed", "receiver_settle_mode": "first",
    "may_publish": "ready", "answer": "stored",
}  # fmt: skip


def settled(profile: str, **facts: str) -> Recorded:
    world = {**SETTLED, **facts}
    return deciding.settle(compiled(profile), world).recorded("subscribe", world["cause"], False, profile)


def published(profile: str, **facts: str) -> Recorded:
    return deciding.publish(compiled(profile), {**PUBLISHED, **facts}).recorded("publish", "transfer", False, profile)


def verdict(record: Recorded, own: str, other: str, **assumed: str) -> Verdict:
    return decide(record, expanded(own), expanded(other), assumed)


def changed(profile: str, table: str, change: Any) -> ExpandedTables:
    """The same tables, one of them changed as a document."""
    document = deepcopy(compiled(profile).expanded())
    change(document["tables"][table])
    return ExpandedTables({**document, "digest": "f" * 32})


CASES = [
    (settled("um-9.12", state="modified-failed"), "um-9.12", "extended", "attempts", {"below", "last"}),
    (published("extended"), "extended", "um-9.12", "framing", {"whole", "partial"}),
    (settled("um-9.12"), "um-9.12", "um-9.9", "in_transaction", {"no", "yes"}),
]


@pytest.mark.parametrize(("record", "own", "other", "fact", "values"), CASES)
def test_a_fact_that_matters_is_named_with_its_values(
    record: Recorded, own: str, other: str, fact: str, values: set[str]
) -> None:
    ruling = verdict(record, own, other)
    assert (ruling.kind, ruling.missing) == ("undecided", (fact,))
    assert {value for option in ruling.alternatives for choice in option.choices for _, value in choice} == values
    [as_recorded] = [option for option in ruling.alternatives if option.change.is_none]
    assert len(as_recorded.choices) == 1


def test_a_fact_that_makes_no_difference_is_not_asked_for() -> None:
    """Whether it is stated inside a transaction, and which default-outcome the source has."""
    lost = settled("um-9.12", cause="lost", default_outcome="modified")
    assert verdict(lost, "um-9.12", "extended").kind == "alike"


def test_what_is_assumed_decides() -> None:
    record = published("extended", answer="unavailable")
    assert verdict(record, "extended", "um-9.12").kind == "undecided"
    ruling = verdict(record, "extended", "um-9.12", framing="whole")
    assert ruling.kind == "differs" and ruling.change is not None
    assert (ruling.change.old_rules, ruling.change.new_rules) == (
        "published.not-stored-released",
        "published.not-stored-rejected",
    )
    assert verdict(record, "extended", "um-9.12", framing="in one piece").kind == "undecided", "no such value"
    last = settled("extended", state="modified-failed", attempts="last")
    assert verdict(last, "extended", "um-9.12", attempts="below").kind == "differs", (
        "the record says that it was the last"
    )


def test_another_operation_leaves_the_realms_answer_open() -> None:
    ruling = verdict(settled("extended", state="rejected"), "extended", "um-9.12")
    assert ruling.kind == "differs" and ruling.change is not None
    assert {field.name: (field.old, field.new) for field in ruling.change.effects} == {
        "operation": ("dead-letter", "discard"),
        "outcome": ("rejected", None),
    }
    assert ruling.change.unrecorded == "the realm's answer to discard"


def test_where_the_realm_is_asked_nothing_the_outcome_is_known() -> None:
    ruling = verdict(settled("extended", state="released", subscription="plain"), "extended", "um-9.12")
    assert ruling.kind == "differs" and ruling.change is not None and not ruling.change.unrecorded
    assert {field.name: (field.old, field.new) for field in ruling.change.effects} == {"operation": ("return", "none")}


def test_the_default_outcome_follows_from_the_state_where_only_one_leads_to_it() -> None:
    """`modified-failed` is what cut-off links leave in `extended`, whether the source says so or nothing."""
    ruling = verdict(settled("extended", cause="cut-off", default_outcome="unset"), "extended", "um-9.12")
    assert ruling.kind == "undecided" and "default_outcome" in ruling.missing
    only = verdict(settled("extended", cause="cut-off", default_outcome="rejected"), "extended", "um-9.12")
    assert only.kind == "differs" and only.change is not None
    assert only.change.new_rules == "settle.rejected-discards"


def test_an_axis_that_the_record_does_not_have() -> None:
    """`settled` of these tables asks where the node is; for one answer it makes a difference."""

    def with_place(table: dict[str, Any]) -> None:
        table["axes"] = {**table["axes"], "place": ["near", "far"]}
        table["rules"]["done-far"] = {**table["rules"]["done-as-asked"], "outcome": "none"}
        twice = [rule for rule in table["cells"] for _ in range(2)]
        table["cells"] = ["done-far" if rule == "done-as-asked" and at % 2 else rule for at, rule in enumerate(twice)]

    other = changed("extended", "settled", with_place)
    ruling = decide(settled("extended"), expanded("extended"), other)
    assert (ruling.kind, ruling.missing) == ("undecided", ("place",))
    assert decide(settled("extended", answer="not-found"), expanded("extended"), other).kind == "alike"
    assert decide(settled("extended"), expanded("extended"), other, {"place": "near"}).kind == "alike"


def test_a_value_that_the_other_tables_do_not_know() -> None:
    def without_second(table: dict[str, Any]) -> None:
        table["axes"]["receiver_settle_mode"] = ["first", "third"]

    other = changed("extended", "settle", without_second)
    assert decide(settled("extended"), expanded("extended"), other).kind == "alike"
    ruling = decide(settled("extended", receiver_settle_mode="second"), expanded("extended"), other)
    assert (ruling.kind, ruling.reason) == ("undecided", "table settle does not know receiver_settle_mode second")


def test_facts_that_the_other_tables_declare_impossible() -> None:
    def none(table: dict[str, Any]) -> None:
        table["cells"] = [None] * len(table["cells"])

    ruling = decide(settled("extended"), expanded("extended"), changed("extended", "settled", none))
    assert (ruling.kind, ruling.reason) == ("undecided", "the other tables declare the recorded facts impossible")


def test_a_record_that_its_own_tables_deny() -> None:
    record = replace(settled("extended"), answer_cell=settled("extended", state="rejected").answer_cell)
    ruling = decide(record, expanded("extended"), expanded("extended"))
    assert ruling.kind == "undecided" and "reconcile: A3" in ruling.reason


def test_another_transformer_may_make_no_event_of_it() -> None:
    document = deepcopy(compiled("extended").expanded())
    naming = {"names": ["x"], "unless": [], "node_class": "default", "transformer": "complete"}
    other = ExpandedTables({**document, "classify": {"node_classes": ["default"], "rules": {"ours": naming}}})
    record = published("extended")
    assert decide(record, expanded("extended"), other).kind == "alike", "its node is not named"
    ruling = decide(replace(record, other_naming="ours"), expanded("extended"), other)
    assert (ruling.kind, ruling.missing) == ("undecided", ("transformed",))


def test_other_decisions_than_about_deliveries() -> None:
    """A refused attach: refused alike, refused differently, or confirmed, which asks the realm."""
    table = compiled("um-9.12")["attach"]
    facts = {"direction": "subscribe", "address": "node", "node_kind": "queue", "source_durability": "none"}
    rule = table.decide(**facts, distribution_mode="copy", filter="none", sharing="exclusive")
    assert rule.then["attach"] == "refuse"
    record = replace(
        settled("um-9.12"), what="attach", table="attach", cell=rule.cell, rule=rule.rule, answer_table=None,
        answer_cell=None, answer_rule=None, operation=None, cause=None, answer=None,
    )  # fmt: skip
    assert verdict(record, "um-9.12", "um-9.10").kind == "alike"
    ruling = verdict(record, "um-9.12", "extended")
    assert ruling.kind == "differs" and ruling.change is not None
    assert [(field.name, field.old, field.new) for field in ruling.change.effects] == [("link", "refuse", "confirm")]
    assert ruling.change.unrecorded == "the realm's answer to native subscribe"
