"""Deliveries as a gateway decides them, by compiled tables: what it would record of one, and what it would do with the
same one under other tables. The verdict is held against this.

A world is everything that is so, recorded or not. Written from the gateway's links and transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from mappings import Decision, TableSet, load_tables
from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.recorded import Recorded

World = dict[str, str]
UNKNOWN = "unknown"  # what the realm would have answered to something else than it was asked
PROFILES = ("um-9.9", "um-9.10", "um-9.12", "extended")


@cache
def compiled(profile: str) -> TableSet:
    return load_tables(profile=profile)


@cache
def expanded(profile: str) -> ExpandedTables:
    return ExpandedTables(compiled(profile).expanded())


@dataclass(frozen=True, slots=True)
class Done:
    """What a gateway did, and the rules that decided."""

    rule: Decision
    answer_rule: Decision | None
    operation: str
    answer: str | None
    then: dict[str, Any]  # outcome, condition, class

    def recorded(self, direction: str, cause: str, presettled: bool, digest: str) -> Recorded:
        answer = self.answer_rule
        return Recorded(
            "delivery", direction, digest, self.rule.table, self.rule.cell, self.rule.rule,
            answer.table if answer else None, answer.cell if answer else None, answer.rule if answer else None,
            self.operation, cause, self.answer, self.then["outcome"], self.then["condition"], self.then["class"],
            int(presettled), None, None,
        )  # fmt: skip

    @property
    def columns(self) -> dict[str, str]:
        return {"operation": self.operation, **{name: self.then[name] or "none" for name in self.then}}


def _then(rule: Decision) -> dict[str, Any]:
    return {name: rule.then[name] for name in ("outcome", "condition", "class")}


_PUBLISHED = ("sender_settle_mode", "presettled", "rejected", "released")


def publish(tables: TableSet, world: World) -> Done:
    """One message that a peer sends."""
    link = {name: world[name] for name in _PUBLISHED}
    if world["framing"] == "partial":
        part = tables["publish"].decide(framing="partial", transformed="null", transactional="no", **link)
        if part.then["native"] != "reassemble":
            return Done(part, None, "none", None, _then(part))
    rule = tables["publish"].decide(
        framing="whole", transformed=world["transformed"], transactional=world["transactional"], **link
    )
    if rule.then["native"] != "publish":
        return Done(rule, None, "none", None, _then(rule))
    if world["transactional"] != "no" and world["may_publish"] != "ready":
        settles = {"receiver_settle_mode": world["receiver_settle_mode"]}
        facts = {"answer": world["may_publish"], "presettled": world["presettled"], "rejected": world["rejected"]}
        posted = tables["posted"].decide(**facts, **settles)
        return Done(rule, posted, "publish", world["may_publish"], _then(posted))
    answered = tables["published"].decide(answer=world["answer"], **link)
    return Done(rule, answered, "publish", world["answer"], _then(answered))


def settle(tables: TableSet, world: World) -> Done:
    """One delivery to a consumer."""
    link = {name: world[name] for name in ("subscription", "source_durability", "receiver_settle_mode")}
    decide = tables["settle"].decide
    if world["in_transaction"] == "yes":
        enlisting = decide(state="transactional", already_settled="no", attempts="below", **link)
        if enlisting.then["native"] != "enlist":
            return Done(enlisting, None, "none", None, _then(enlisting))
    state = world["state"]
    if world["cause"] != "disposition" and state not in ("sent-settled", "too-large"):
        state = tables["default"].decide(cause=world["cause"], default_outcome=world["default_outcome"]).then["state"]
    rule = decide(state=state, already_settled="no", attempts="below", **link)
    last = decide(state=state, already_settled="no", attempts="last", **link)
    if last.rule != rule.rule and world["attempts"] == "last":
        rule = last
    operation = rule.then["native"]
    if operation == "none":
        return Done(rule, None, operation, None, _then(rule))
    answered = tables["settled"].decide(operation=operation, answer=world["answer"], peer_settled=world["peer_settled"])
    then = _then(answered)
    if then["outcome"] == "asked":
        then["outcome"] = rule.then["outcome"]
    return Done(rule, answered, operation, world["answer"], then)


_MODES = (("unsettled", "no"), ("settled", "yes"), ("mixed", "no"), ("mixed", "yes"))


def publishes() -> Iterator[World]:
    tables = compiled("extended")
    axes = tables["publish"].axes
    may = [("ready", answer) for answer in tables["published"].axes["answer"]]
    refused = [(answer, "stored") for answer in tables["posted"].axes["answer"] if answer != "ready"]
    framed = [*product(("whole", "partial"), axes["transformed"], axes["transactional"])]
    listed = tuple(product(axes["rejected"], axes["released"], ("first", "second")))
    for (framing, event, within), (mode, settled), listing in product(framed, _MODES, listed):
        answers = [*may, *refused] if within != "no" else may
        for may_publish, answer in answers:
            rejected, released, receiver = listing
            yield {
                "framing": framing, "transformed": event, "transactional": within, "sender_settle_mode": mode,
                "presettled": settled, "rejected": rejected, "released": released, "receiver_settle_mode": receiver,
                "may_publish": may_publish, "answer": answer,
            }  # fmt: skip


def _stated() -> Iterator[tuple[str, str, str, str]]:
    """Cause, state, default-outcome, whether in a transaction."""
    tables = compiled("extended")
    for state in tables["settle"].axes["state"]:
        if state in ("sent-settled", "too-large"):
            yield state, state, "unset", "no"
        elif state not in ("received", "transactional"):
            yield "disposition", state, "unset", "no"
            if not state.startswith("transactional") and state != "unknown":
                yield "disposition", state, "unset", "yes"
    for cause, default in product(*tables["default"].axes.values()):
        within = {"silent": ("no",), "rolled-back": ("yes",)}.get(cause, ("no", "yes"))
        yield from ((cause, "", default, transacted) for transacted in within)


def settlements() -> Iterator[World]:
    tables = compiled("extended")
    axes, answers = tables["settle"].axes, tables["settled"].axes["answer"]
    links = (axes["subscription"], axes["source_durability"], axes["receiver_settle_mode"], axes["attempts"])
    for (cause, state, default, within), link, answer in product(_stated(), product(*links), answers):
        heard = ("no", "yes") if cause == "disposition" else ("no",) if cause == "silent" else ("yes",)
        for peer_settled in heard:
            yield {
                "cause": cause, "state": state, "default_outcome": default, "in_transaction": within,
                "subscription": link[0], "source_durability": link[1], "receiver_settle_mode": link[2],
                "attempts": link[3], "answer": answer, "peer_settled": peer_settled,
            }  # fmt: skip
