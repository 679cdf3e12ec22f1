"""How tables chain: from the facts of a delivery to what was done and told. A rule about what came names the native
operation; when the realm has answered, a rule about the answer says which outcome the peer gets.

The same steps as a gateway takes, written from docs/tables-vocabulary.md. Each function takes the tables, what is
recorded, and the facts (a value for each axis); what the realm would have answered to another operation is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciliation.what_if.expanded_tables import ExpandedTables, Rule
from reconciliation.what_if.recorded import Recorded

Facts = Mapping[str, str]
Effects = dict[str, str]
"""What peers and the realm see of a decision: name -> value."""
NONE = "none"
BY_DEFAULT = ("unstated", "silent", "lost", "cut-off", "stopped", "rolled-back")
"""Causes in which table `default` says which state a delivery is taken for."""
_YES_NO = {False: "no", True: "yes"}


@dataclass(frozen=True, slots=True)
class Told:
    """`first` and `answer` are the rules that a record names, `beside` is another one that was asked. `unrecorded`: why
    no more is known; then the outcome is not among the effects."""

    first: Rule
    answer: Rule | None
    beside: Rule | None
    effects: Effects
    unrecorded: str = ""

    @property
    def steps(self) -> tuple[tuple[str, int], ...]:
        rules = (self.first,) if self.answer is None else (self.first, self.answer)
        return tuple((rule.table, rule.cell) for rule in rules)

    @property
    def rules(self) -> dict[str, str]:
        """By table, in the order in which they were asked."""
        by_default = self.beside is not None and self.beside.table == "default"
        lookups = (self.beside, self.first, self.answer) if by_default else (self.first, self.beside, self.answer)
        return {rule.table: rule.label for rule in lookups if rule is not None}


Chain = Callable[[ExpandedTables, Recorded, Facts], Told]


def _answered_to(operation: str) -> str:
    return f"the realm's answer to {operation}"


def _result(then: Mapping[str, Any], outcome: str = "outcome") -> Effects:
    """A table without classes ends link, session or connection where it names a condition."""
    condition = then.get("condition")
    severity = then.get("class", "fatal" if condition else None)
    return {"outcome": then.get(outcome) or NONE, "condition": condition or NONE, "class": severity or NONE}


def publish(tables: ExpandedTables, recorded: Recorded, facts: Facts) -> Told:
    """A message that a peer sent. `framing` partial: it came in several transfers; `whole` unknown: no more than the
    first of them was looked at."""
    look_up = tables.table
    if facts.get("framing") == "partial":
        rule = look_up("publish").look_up({**facts, "transformed": "null", "transactional": "no"})
        if rule.then["native"] != "reassemble":
            return Told(rule, None, None, {"operation": NONE, **_result(rule.then), **_settled(rule.then, facts)})
        if facts["whole"] == "unknown":
            return Told(rule, None, None, {"operation": "reassemble"}, "what became of the whole message")
        facts = {**facts, "framing": "whole"}
    rule = look_up("publish").look_up(facts)
    in_transaction = facts["transactional"] != "no"
    kept = {"transaction": rule.then.get("transaction") or "keep"} if in_transaction else {}
    if rule.then["native"] != "publish":
        return Told(rule, None, None, {"operation": NONE, **_result(rule.then), **_settled(rule.then, facts), **kept})
    return _published(tables, recorded, facts, rule) if not in_transaction else _posted(tables, recorded, facts, rule)


def _published(tables: ExpandedTables, recorded: Recorded, facts: Facts, rule: Rule) -> Told:
    if recorded.answer_table != "published":
        return Told(rule, None, None, {"operation": "publish"}, _answered_to("publish"))
    answer = tables.table("published").look_up(facts)
    return Told(rule, answer, None, {"operation": "publish", **_result(answer.then), **_settled(answer.then, facts)})


def _posted(tables: ExpandedTables, recorded: Recorded, facts: Facts, rule: Rule) -> Told:
    """Inside a transaction: `posted` says what the peer gets before its discharge, `published` what is recorded."""
    if recorded.answer_table not in ("posted", "published"):
        return Told(rule, None, None, {"operation": "publish"}, _answered_to("publish"))
    is_kept = recorded.answer_table == "published"
    posted = tables.table("posted").look_up({**facts, "answer": "ready"} if is_kept else facts)
    doom = {"transaction": posted.then.get("transaction") or "keep"}
    if not is_kept:
        effects = {"operation": "publish", **_result(posted.then), **_settled(posted.then, facts), **doom}
        return Told(rule, posted, None, effects)
    answer = tables.table("published").look_up(facts)
    before = {f"{name} before the discharge": value for name, value in _result(posted.then).items()}
    settled = _settled(posted.then, facts)
    before |= {f"{name} before the discharge": value for name, value in settled.items()}
    after = _settled(answer.then, facts) if settled.get("settled") != "yes" else {}  # it gets nothing any more
    effects = {"operation": "publish", **_result(answer.then), **after, **before, **doom}
    return Told(rule, answer, posted, effects)


def _settled(then: Mapping[str, Any], facts: Facts) -> Effects:
    """Whether the peer gets the settlement; one that has settled itself gets nothing."""
    heard = facts.get("peer_settled", "no") == "no" and facts.get("presettled", "no") == "no"
    return {"settled": _YES_NO[bool(then["settle"])]} if heard else {}


def settle(tables: ExpandedTables, recorded: Recorded, facts: Facts) -> Told:
    """A delivery to a consumer. `in_transaction`: its outcome was stated inside of one."""
    table = tables.table("settle")
    beside: Rule | None = None
    if facts["in_transaction"] == "yes":
        enlisting = table.look_up({**facts, "state": "transactional", "attempts": "below"})
        if enlisting.then["native"] != "enlist":
            return _at_once(enlisting, None, facts)
    if recorded.cause in BY_DEFAULT:
        default = tables.table("default").look_up({**facts, "cause": str(recorded.cause)})
        beside, facts = default, {**facts, "state": default.then["state"]}
        if facts["state"] == "received":
            noted = table.look_up({**facts, "attempts": "below"})
            return Told(noted, None, beside, {"operation": NONE}, "what its consumer said of it later")
    rule = table.look_up({**facts, "attempts": "below"})
    if facts["attempts"] == "last":
        last = table.look_up(facts)
        rule = last if last.name != rule.name else rule  # else no gateway asks which attempt it is
    operation = rule.then["native"]
    if operation == NONE:
        return _at_once(rule, beside, facts)
    request = {"operation": operation}
    if operation == "return":
        request |= {name: _YES_NO[bool(rule.then.get(name))] for name in ("failed", "elsewhere")}
    if operation == "enlist":
        return Told(rule, None, beside, request, "the outcome that was stated inside the transaction")
    if operation != recorded.operation or recorded.answer_table != "settled":
        return Told(rule, None, beside, request, _answered_to(operation))
    answer = tables.table("settled").look_up({**facts, "operation": operation})
    result = _result(answer.then)
    if result["outcome"] == "asked":
        result["outcome"] = rule.then["outcome"]
    return Told(rule, answer, beside, {**request, **result, **_settled(answer.then, facts)})


def _at_once(rule: Rule, beside: Rule | None, facts: Facts) -> Told:
    """The realm is asked nothing."""
    return Told(rule, None, beside, {"operation": NONE, **_result(rule.then), **_settled(rule.then, facts)})


def attached(tables: ExpandedTables, recorded: Recorded, facts: Facts) -> Told:
    """What was in flight when its subscription failed, and the link that failed or was refused by the realm."""
    rule = tables.table("attached").look_up(facts)
    result = _result(rule.then, "in_flight")
    if not recorded.is_delivery and facts["moment"] == "attach":
        del result["outcome"]
    return Told(rule, None, None, {"link": rule.then["attach"], **result})


def attach(tables: ExpandedTables, recorded: Recorded, facts: Facts) -> Told:
    """An attach that was refused before the realm was asked."""
    rule = tables.table("attach").look_up(facts)
    if rule.then["attach"] == "refuse" and rule.then["native"] == NONE:
        return Told(rule, None, None, {"link": "refuse", "condition": rule.then["condition"] or NONE})
    return Told(rule, None, None, {"link": rule.then["attach"]}, _answered_to(f"native {rule.then['native']}"))


def fault(tables: ExpandedTables, recorded: Recorded, facts: Facts) -> Told:
    """A peer broke the protocol."""
    rule = tables.table("fault").look_up(facts)
    return Told(rule, None, None, {"ends": rule.then["scope"], "condition": rule.then["condition"] or NONE})


def coordinate(tables: ExpandedTables, recorded: Recorded, facts: Facts) -> Told:
    """A request on a control link."""
    rule = tables.table("coordinate").look_up(facts)
    operation = rule.then["native"]
    if operation != "commit":
        return Told(rule, None, None, {"operation": operation, **_result(rule.then), **_settled(rule.then, facts)})
    if recorded.answer_table != "committed":
        return Told(rule, None, None, {"operation": operation}, _answered_to(operation))
    answer = tables.table("committed").look_up(facts)
    return Told(rule, answer, None, {"operation": operation, **_result(answer.then), **_settled(answer.then, facts)})


CHAINS: Mapping[str, tuple[Chain, tuple[str, ...]]] = {
    "publish": (publish, ("publish", "posted", "published")),
    "settle": (settle, ("settle", "settled", "default")),
    "attached": (attached, ("attached",)),
    "attach": (attach, ("attach",)),
    "fault": (fault, ("fault",)),
    "coordinate": (coordinate, ("coordinate", "committed")),
}
"""By the table that a record names first: how it goes on, and the tables that are asked."""
