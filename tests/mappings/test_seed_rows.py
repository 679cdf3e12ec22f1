"""The rows of the documented delivery-state tables (`um_rows.json`), against the decisions of each profile.

A row's conditions become facts word by word; what the row's text adds (which native answer it speaks of) is in
`ROWS`. For every combination that a row covers, outcome, condition, class and native operation must be the row's, and
the rule that decides must cite the row. Where `extended` departs from a row on purpose, `DEPARTURES` says so.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mappings import Decision, ImpossibleFacts, Table, TableSet, load_tables
from mappings.compiler.table_set import load_rules
from mappings.language.rules import RuleBook
from mappings.language.vocabulary import PROFILES

SEED: dict[str, dict[str, Any]] = {
    row["id"]: row
    for row in json.loads((Path(__file__).parents[1] / "kit" / "tables" / "um_rows.json").read_text(encoding="utf-8"))
}
Facts = dict[str, tuple[str, ...]]

# seed condition -> (axis, seed word -> values); a seed word that is not here restricts nothing ("n/a", "ANY")
CONDITIONS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "receiver_settle_mode": (
        "receiver_settle_mode",
        {"FIRST": ("first",), "SECOND": ("second",), "FIRST|SECOND": ("first", "second")},
    ),
    "source_durability": (
        "source_durability",
        {"NONE": ("none",), "CONFIGURATION|UNSETTLED_STATE": ("configuration", "unsettled-state")},
    ),
    "delivery_settled": ("already_settled", {"true": ("yes",), "false": ("no",)}),
    "partial": ("framing", {"true": ("partial",), "false": ("whole",)}),
    "transformer_result": ("transformed", {"null": ("null",), "NOT null": ("event",)}),
    "sender_settle_mode": (
        "sender_settle_mode",
        {"SETTLED": ("settled",), "UNSETTLED": ("unsettled",), "MIXED": ("mixed",)},
    ),  # P-R2 says UNSETTLED|SETTLED and omits MIXED: it behaves per delivery (1.3-K), so all three are asked
    "remote_state": ("transactional", {"NOT transactional": ("no",)}),
}

# row -> the tables that carry it out, with the facts that the row's text (not its columns) states
# A row speaks of outcomes that the publisher's source lists, or names none.
_LISTED: Facts = {"rejected": ("agreed",), "released": ("agreed",)}
_UNSETTLED: Facts = {"presettled": ("no",), **_LISTED}
ROWS: dict[str, list[tuple[str, Facts]]] = {
    "S-A1": [("default", {"cause": ("unstated",), "default_outcome": ("unset", "accepted")})],
    "S-A2": [("settle", {"state": ("accepted",)})],
    "S-A3": [
        ("attach", {"direction": ("subscribe",), "address": ("node",), "node_kind": ("queue", "channel")}),
        ("attached", {"direction": ("subscribe",), "answer": ("ready",)}),
    ],
    "S-A4": [("settle", {"state": ("accepted",), "subscription": ("plain",)})],
    "S-A5": [("settle", {"state": ("accepted",), "subscription": ("durable",)}), ("settled", {"answer": ("done",)})],
    "S-A6": [("settle", {"state": ("accepted",), "subscription": ("plain",)})],
    "S-A7": [("settle", {"state": ("accepted",), "subscription": ("durable",)}), ("settled", {"answer": ("done",)})],
    "S-R1a": [("attached", {"direction": ("subscribe",), "answer": ("access-denied",)})],
    "S-R1b": [
        ("attached", {"direction": ("subscribe",), "answer": ("unexpected",)}),
        ("settled", {"answer": ("unexpected",)}),
    ],
    "S-R1c": [("attached", {"direction": ("subscribe",), "answer": ("not-found",)})],
    "S-R1d": [("attached", {"direction": ("subscribe",), "answer": ("selector-invalid",)})],
    "S-R1e": [("attached", {"direction": ("subscribe",), "answer": ("already-subscribed",)})],
    "S-R2a": [("settled", {"operation": ("acknowledge",), "answer": ("access-denied",)})],
    "S-R2b": [("settled", {"operation": ("acknowledge",), "answer": ("not-found",)})],
    "P-A1": [("publish", _UNSETTLED)],
    "P-A2": [("publish", {"transactional": ("no",), **_UNSETTLED})],
    "P-A3": [("publish", {}), ("published", {"answer": ("stored",)})],
    "P-A4": [("publish", {}), ("published", {"answer": ("stored",)})],
    "P-A5": [("publish", {}), ("published", {"answer": ("stored",)})],
    "P-R1": [("publish", _UNSETTLED)],
    "P-R2a": [("published", {"answer": ("access-denied",), **_LISTED})],
    "P-R2b": [("published", {"answer": ("capacity-reached",), **_LISTED})],
    "P-R2c": [("published", {"answer": ("unexpected",), **_LISTED})],
    "P-R2d": [("published", {"answer": ("not-found",), **_LISTED})],
    "S-REL": [("settle", {"state": ("released",), "already_settled": ("no",)})],
    "S-MOD": [
        ("settle", {"state": ("modified", "modified-failed", "modified-undeliverable"), "already_settled": ("no",)})
    ],
}

# (profile, row, table) -> what the profile decides instead, on purpose
DEPARTURES: dict[tuple[str, str, str], dict[str, Any]] = {
    ("extended", "P-A1", "publish"): {"native": "reassemble", "outcome": "none", "condition": None, "class": None},
    ("extended", "P-R1", "publish"): {"native": "reassemble", "outcome": "none", "condition": None, "class": None},
}
LATER_DEPARTURES = {("extended", "S-R1c"): "amqp:resource-deleted"}  # 2.O-5: the node was there and was deleted

# S-A3 speaks of a subscription that is made: what is refused for its mode (2.K-3) or filter (2.J-4) is not this row
_REFUSED = {
    "refuse-a-filter-on-a-queue",
    "refuse-a-filter-on-a-channel",
    "refuse-to-browse-a-queue",
    "refuse-a-filter-when-browsing",
    "refuse-an-unknown-filter-on-a-channel",
    "refuse-to-move-from-a-channel",
    "refuse-an-unknown-mode",
}


@pytest.fixture(scope="module", params=PROFILES)
def tables(request: pytest.FixtureRequest) -> TableSet:
    return load_tables(profile=request.param)


@cache
def rules() -> RuleBook:
    """The shipped ones: to read them takes a tenth of a second."""
    return load_rules()[0]


def decisions(table: Table, row: str, facts: Facts) -> list[tuple[dict[str, str], Decision]]:
    """Every possible combination that the row covers, decided."""
    narrowed = dict(table.axes)
    for condition, word in SEED[row]["conditions"].items():
        axis, words = CONDITIONS.get(condition, ("", {}))
        if axis in narrowed and word in words:
            narrowed[axis] = words[word]
    narrowed.update(facts)
    cases = []
    for values in product(*narrowed.values()):
        combination = dict(zip(narrowed, values, strict=True))
        try:
            cases.append((combination, table.decide(**combination)))
        except ImpossibleFacts:
            continue
    return [(facts, decision) for facts, decision in cases if decision.rule not in _REFUSED]


def expected(row: str, table: str, facts: dict[str, str]) -> dict[str, Any]:
    """What the row says, in the words of that table's `then`."""
    response = SEED[row]["response"]
    then: dict[str, Any] = {"condition": response["error"]}
    if response["error_class"] not in (None, "not stated"):
        then["class"] = response["error_class"]
    outcome = response["outcome"].split()[0]  # "accepted (only after the ACK completed)" -> accepted
    if table == "attach":
        return {"native": "subscribe", "attach": "confirm", "condition": None}
    if table == "attached":
        if response["error"] is None:
            return {"attach": "confirm", "in_flight": "none", "condition": None, "class": None}
        late = facts["moment"] == "later"
        return then | {"attach": "detach" if late else "refuse", "in_flight": outcome if late else "none"}
    if table == "default":
        return {"state": "accepted"}
    if table == "settled":
        return then | ({"outcome": "asked"} if response["error"] is None else {"outcome": outcome, "settle": True})
    if table == "publish" and response["error"] is None:
        return {"native": "publish", "outcome": "none", "condition": None}
    if facts.get("presettled") == "yes":
        outcome = "none"  # a settled delivery has no one to tell (P-A3, P-A5, 1.3-K)
    then["outcome"] = outcome
    if table in ("published", "publish", "settle"):
        then["settle"] = outcome != "none"
    if table == "publish":
        then["native"] = "none"
    return then | _native(row, facts) if table == "settle" else then


def _native(row: str, facts: dict[str, str]) -> dict[str, str]:
    text = SEED[row]["native_operation"]
    if text.startswith("none stated"):
        return {}  # released and modified are left to the engine: the operation is ours
    return {"native": "acknowledge" if "ACK(" in text or text == "as S-A5" else "none"}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_decided_as_documented(tables: TableSet, row: str) -> None:
    for name, facts in ROWS[row]:
        cases = decisions(tables[name], row, facts)
        assert cases, f"{row} covers nothing in {name}"
        for combination, decision in cases:
            wanted = DEPARTURES.get((tables.profile, row, name)) or expected(row, name, combination)
            if combination.get("moment") == "later" and (tables.profile, row) in LATER_DEPARTURES:
                wanted = wanted | {"condition": LATER_DEPARTURES[tables.profile, row]}
            decided = {key: decision.then[key] for key in wanted}
            assert decided == wanted, (row, name, combination, decision.rule)


@pytest.mark.parametrize("row", ROWS)
def test_the_rule_that_decides_a_row_cites_it(tables: TableSet, row: str) -> None:
    for name, facts in ROWS[row]:
        sources = {rule.id: rule.sources for rule in rules()[name].profiles[tables.profile].rules}
        for combination, decision in decisions(tables[name], row, facts):
            assert row in sources[decision.rule], (row, name, combination, decision.rule)


def test_every_row_of_the_seed_is_asked() -> None:
    """Transactions have tests of their own; S-A9 repeats S-A1."""
    transactional = {row for row in SEED if row.startswith(("T-", "P-R3"))} | {"P-A6", "S-A8"}
    assert ROWS.keys() == SEED.keys() - transactional - {"S-A9"}
    assert len(SEED) == 47
