"""Which scenario shows which row of the documented tables in which profile, and `docs/conformance/um.md`, which says
what came of it: `python -m tests.wire.um.conformance` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mappings import TableSet, load_tables
from mappings.compiler.table_set import load_rules
from mappings.language.vocabulary import PROFILES
from tests.kit.tables.um_rows import SEED, Expected, expected
from tests.kit.wire import frames
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.wire.um.scenarios import (
    Scenario,
    accepted_again,
    consume,
    coordinator_refused,
    copy_told,
    durable_deleted,
    publish,
    publish_in_a_transaction_refused,
    publish_in_two_transfers,
    publish_in_two_transfers_reassembled,
    settled_without_a_state,
    silent_then_settled,
    state_then_told,
    subscribe,
    subscribing_fails,
    subscription_fails,
    transactional_refused,
)
from tests.wire.um.transaction_scenarios import (
    declared,
    discharged,
    discharged_in_vain,
    offered,
    posted,
    posting_refused,
    retired,
    retired_in_vain,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "conformance" / "um.md"
AS_DOCUMENTED, REFUSED = "as documented", "as documented: not supported, refused"
VERSIONS = PROFILES[:3]

_ACCEPTED = frames.state("accepted")
_RETURNED = {"S-REL": frames.state("released"), "S-MOD": frames.state("modified")}
_FAILURES = {"a": "access-denied", "b": "capacity-reached", "c": "unexpected", "d": "not-found"}
_PLAIN = {"S-A4": 0, "S-A6": 1}
_DURABLE = {"S-A5": 0, "S-A7": 1}

SCENARIOS: dict[str, list[Scenario]] = {
    "S-A1": [
        *(consume(kind, rcv, settled_without_a_state) for kind, rcv in (("durable", 0), ("queue", 1))),
        *(
            consume(kind, rcv, state_then_told(None)) for kind, rcv in (("durable", 0), ("queue", 1))
        ),  # 1.3-O: in both cases
    ],
    "S-A2": [consume("durable", 0, accepted_again)],
    "S-A3": [subscribe],
    **{row: [consume("plain", rcv, state_then_told(_ACCEPTED))] for row, rcv in _PLAIN.items()},
    **{row: [consume("durable", rcv, state_then_told(_ACCEPTED))] for row, rcv in _DURABLE.items()},
    "S-R1a": [subscribing_fails("access-denied"), subscription_fails("access-denied")],
    "S-R1b": [subscribing_fails("unexpected"), subscription_fails("unexpected")],
    "S-R1c": [subscribing_fails("not-found"), subscription_fails("not-found")],
    "S-R1d": [subscribing_fails("selector-invalid"), subscription_fails("selector-invalid")],
    "S-R1e": [subscribing_fails("already-subscribed"), subscription_fails("already-subscribed")],
    "S-R2a": [consume("durable", rcv, state_then_told(_ACCEPTED, "access-denied")) for rcv in (0, 1)],
    "S-R2b": [
        *(consume("durable", rcv, state_then_told(_ACCEPTED, "not-found")) for rcv in (0, 1)),
        durable_deleted(),
    ],
    "P-A1": [publish_in_two_transfers],
    "P-A2": [publish("mixed", payload=b"")],
    "P-A3": [publish("settled", presettled=True)],
    "P-A4": [publish("unsettled")],
    "P-A5": [publish("mixed"), publish("mixed", presettled=True)],
    "P-R1": [publish_in_two_transfers],
    **{
        f"P-R2{letter}": [
            publish("unsettled", answer=answer),
            publish("settled", presettled=True, answer=answer),
            publish("mixed", answer=answer),  # behaves per delivery (1.3-K)
            publish("mixed", presettled=True, answer=answer),
        ]
        for letter, answer in _FAILURES.items()
    },
    **{
        row: [consume("queue", 0, state_then_told(state)), consume("plain", 0, copy_told(state))]
        for row, state in _RETURNED.items()
    },
}
SCENARIOS["S-A9"] = SCENARIOS["S-A1"]
ATTACHING = {
    "S-A3": "ready",
    "S-R1a": "access-denied",
    "S-R1b": "unexpected",
    "S-R1c": "not-found",
    "S-R1d": "selector-invalid",
    "S-R1e": "already-subscribed",
}
SOURCES = {
    f"{name}.{rule.id}": rule.sources
    for name, table in load_rules()[0].items()
    for profile in table.profiles.values()
    for rule in profile.rules
}

TRANSACTION_RULES = {
    "T-C": ("capability",),
    "T-D1": ("coordinate",),
    "T-D2": ("coordinate", "committed"),
    "S-A8": ("settle",),
    "T-S1": ("settle",),
    "T-S2": ("committed",),
}
PUBLISHING = ("P-A6", "P-R3a", "P-R3b", "P-R3c", "P-R3d", "T-P1", "T-P2a", "T-P2b", "T-P2c", "T-P2d")
RETIRING = ("S-A8", "T-S1", "T-S2")
COORDINATING = ("T-C1", "T-D1", "T-D2")
NOT_OFFERED = {
    "T-C2": "distributed-transactions",
    "T-C3": "promotable-transactions",
    "T-C4": "multi-txns-per-ssn",
    "T-C5": "multi-ssns-per-txn",
}
TRANSACTIONS: dict[str, list[Scenario]] = {
    "P-A6": [posted],
    "T-P1": [posted],
    **{f"{row}{letter}": [posting_refused(answer)] for row in ("P-R3", "T-P2") for letter, answer in _FAILURES.items()},
    "S-A8": [retired],
    "T-S1": [retired],
    "T-C1": [offered("amqp:local-transactions", True)],
    **{row: [offered(f"amqp:{word}", False)] for row, word in NOT_OFFERED.items()},
    "T-D1": [declared],
    "T-D2": [discharged, discharged_in_vain],
}
REALMS = ("embedded", "Kafka")
_LATER = "nothing ends a subscription that runs with {}".format
_SQLITE = "what SQLite refuses is capacity-reached, unavailable or indeterminate"
_POSTED = "the log is not asked before the discharge, and that is what fails then (T-D2)"
_MARKER = "the setting by which Kafka refuses a record there refuses the marker that ends its transaction, too"
_JOURNAL = "an acknowledgement is written to the journal until it is there"
# By row and realm: why a scenario of the row cannot be brought about there, scenario by scenario.
SCRIPTED_ONLY: dict[str, dict[str, tuple[str, ...]]] = {
    "S-R1b": {"embedded": (_SQLITE, _LATER("unexpected")), "Kafka": (_LATER("unexpected"),)},
    "S-R1d": dict.fromkeys(REALMS, (_LATER("selector-invalid"),)),
    "S-R1e": dict.fromkeys(REALMS, (_LATER("already-subscribed"),)),
    "P-R2c": {"embedded": (_SQLITE,) * 4},
    "P-R3c": dict.fromkeys(REALMS, (_POSTED,)),
    "T-P2c": dict.fromkeys(REALMS, (_POSTED,)),
    "T-D2": {"embedded": (_SQLITE,), "Kafka": (_MARKER,)},
    "T-S2": dict.fromkeys(REALMS, (_JOURNAL,)),
}
NOT_THERE = dict.fromkeys(("P-R3c", "T-P2c", "T-D2", "T-S2"), ("um-9.9",))  # it has no transactions: refused
READINGS = {"P-R": "1.3-I", "T-P": "1.3-I", "S-A": "1.3-H", "T-S": "1.3-H"}


@dataclass(frozen=True, slots=True)
class Line:
    """A row in one profile: its scenarios, and what it shows."""

    row: str
    profile: str
    scenarios: list[Scenario]
    result: str
    rule: str = ""

    @property
    def realms(self) -> str:
        """On which realms the scenarios run besides the scripted one, and why some of them cannot there."""
        reasons = {kind: scripted_only(self.row, self.profile, kind) for kind in REALMS}
        parts = [kind for kind in REALMS if len(reasons[kind]) < len(self.scenarios)]
        for kind, why in reasons.items():
            part = ", in part" if 0 < len(why) < len(self.scenarios) else ""
            parts += [f"scripted only on {kind}{part}: {reason}" for reason in dict.fromkeys(why)]
        return "; ".join(parts)

    @property
    def test(self) -> str:
        return f"`test_um_rows[{self.row}-{self.profile}]`"

    def __str__(self) -> str:
        return f"| {self.row} | {self.profile} | {self.rule} | {self.test} | {self.realms} | {self.result} |"


def scripted_only(row: str, profile: str, kind: str) -> tuple[str, ...]:
    return () if profile in NOT_THERE.get(row, ()) else SCRIPTED_ONLY.get(row, {}).get(kind, ())


def lines() -> Iterator[Line]:
    for row in SEED:
        for profile in PROFILES:
            yield line_of(row, profile)


def line_of(row: str, profile: str) -> Line:
    """Departures are on purpose, and each says which."""
    if row in (*PUBLISHING, *RETIRING, *COORDINATING, *NOT_OFFERED):
        return _transactional(row, profile)
    if profile == "extended" and row in ("P-A1", "P-R1"):
        result = "departs: a delivery in several transfers is put together and accepted (1.3-J)"
        return Line(row, profile, [publish_in_two_transfers_reassembled], result)
    if profile == "extended" and row in ("S-A1", "S-A9"):
        result = "departs: a disposition that settles nothing and has no state says nothing yet (1.3-O)"
        scenarios = [consume("durable", 0, silent_then_settled), consume("queue", 1, silent_then_settled)]
        return Line(row, profile, scenarios, result)
    if profile == "extended" and row == "S-R1c":
        result = "departs: a node that was deleted later is amqp:resource-deleted (2.O-5)"
        scenarios = [subscribing_fails("not-found"), subscription_fails("not-found", "amqp:resource-deleted")]
        return Line(row, profile, scenarios, result)
    if profile == "extended" and row == "S-R2b":
        result = "departs: a durable that is deleted before its consumer settles is amqp:resource-deleted (2.O-5)"
        return Line(row, profile, [*SCENARIOS[row][:2], durable_deleted("amqp:resource-deleted")], result)
    if profile == "extended" and row in _RETURNED:
        scenarios = [SCENARIOS[row][0], consume("plain", 0, copy_told(_RETURNED[row], "give back 1"))]
        return Line(
            row, profile, scenarios, f"{AS_DOCUMENTED}; it comes again to a plain subscriber's link, too (2.H-7)"
        )
    return Line(row, profile, SCENARIOS[row], AS_DOCUMENTED)


def _transactional(row: str, profile: str) -> Line:
    """9.9 has none, and says so (1.3-F)."""
    if profile == "um-9.9":
        return _refused(row)
    if row == "T-S2":
        result = "departs: the discharge is refused, and the delivery is the consumer's as before (2.W-10)"
        return Line(row, profile, [retired_in_vain], result)
    if profile == "extended" and row == "T-C4":
        result = "departs: a session may have several transactions (2.W-20)"
        return Line(row, profile, [offered("amqp:multi-txns-per-ssn", True)], result)
    if profile == "extended" and row in PUBLISHING:
        return Line(row, profile, TRANSACTIONS[row], f"{AS_DOCUMENTED}, settled at once (ADR 0065)")
    result = f"{AS_DOCUMENTED} (read as {READINGS[row[:3]]})" if row[:3] in READINGS else AS_DOCUMENTED
    return Line(row, profile, TRANSACTIONS[row], result)


def _refused(row: str) -> Line:
    scenarios: dict[str, Scenario] = dict.fromkeys(PUBLISHING, publish_in_a_transaction_refused)
    scenarios |= dict.fromkeys(RETIRING, consume("durable", 0, transactional_refused("amqp:not-implemented")))
    scenarios |= dict.fromkeys(COORDINATING, coordinator_refused("amqp:local-transactions"))
    scenarios |= {capable: coordinator_refused(f"amqp:{word}") for capable, word in NOT_OFFERED.items()}
    result = AS_DOCUMENTED if row in NOT_OFFERED else REFUSED
    if row not in NOT_OFFERED and expected(row, "um-9.9").supported:
        result = "departs: 9.9 has no transactions, so no coordinator is confirmed (1.3-F)"
    return Line(row, "um-9.9", [scenarios[row]], result)


def show(line: Line, tables: TableSet) -> Line:
    """Run it; raises AssertionError where the gateway does not do what the row says."""
    rules: dict[str, None] = {}
    wanted: Expected = expected(line.row, line.profile)
    for scenario in line.scenarios:
        with ScriptedGateway(tables) as gateway:
            scenario(gateway, wanted)
            rules |= dict.fromkeys(gateway.rules())
    about = [*_asked_rules(line, tables), *(rule for rule in rules if rule.split(".")[0] in _tables_of(line.row))]
    citing = [rule for rule in about if line.row in SOURCES[rule]]
    return replace(line, rule=", ".join(citing or about))


def _tables_of(row: str) -> tuple[str, ...]:
    """The other rules only prepare."""
    return (
        ("publish", "published", "posted")
        if row.startswith(("P-", "T-P"))
        else ("default", "settle", "settled", "attached")
    )


def _asked_rules(line: Line, tables: TableSet) -> list[str]:
    """What leaves no outcome record of its own is asked for."""
    rules = TRANSACTION_RULES.get(line.row[:3] if line.row.startswith("T-C") else line.row, ())
    if rules and line.profile != "um-9.9":
        return [f"{name}.{rule}" for name, rule in _decided(line.row, rules, tables)]
    if line.row.startswith(("T-C", "T-D")):
        facts = {axis: values[0] for axis, values in tables["attach"].axes.items()}
        facts |= {"direction": "publish", "address": "coordinator", "node_kind": "unknown"}
        return [f"attach.{tables['attach'].decide(**facts).rule}"]
    if line.row in ("S-A1", "S-A9"):
        causes = ("unstated", "silent")
        return [f"default.{tables['default'].decide(cause=cause, default_outcome='unset').rule}" for cause in causes]
    if line.row not in ATTACHING:
        return []
    return [
        f"attached.{tables['attached'].decide(direction='subscribe', answer=ATTACHING[line.row], moment='attach').rule}"
    ]


def _decided(row: str, names: tuple[str, ...], tables: TableSet) -> Iterator[tuple[str, str]]:
    """The rule of each of those tables for what its row speaks of."""
    words = {"T-C1": "local-transactions", **NOT_OFFERED}
    for name in names:
        facts = {axis: values[0] for axis, values in tables[name].axes.items()}
        facts |= {
            "capability": {"capability": words.get(row, "")},
            "coordinate": {"request": "declare"} if row == "T-D1" else {"request": "commit", "transaction": "open"},
            "committed": {"answer": "unexpected" if row == "T-S2" else "done"},
            "settle": {"state": "transactional", "already_settled": "no", "subscription": "durable"},
        }[name]
        yield name, tables[name].decide(**facts).rule


HEAD = """# What Universal Messaging documents, row by row

Written by `python -m tests.wire.um.conformance`, from tests that drive the gateway over a socket with frames made by
hand and look at what comes back and at what the realm is asked; `tests/wire/um/test_rows.py` fails when a line is no
longer true. Every scenario runs on a scripted realm, which can answer anything. It runs on the realms that are named as
well (`tests/wire/um/test_rows_real.py`): there a grant is revoked, a node is full, a node or a durable is deleted, the
log refuses. The rows are those of `tests/kit/tables/um_rows.json`: the delivery-state tables of UM's "Terminal Delivery
States" (S, P) and "AMQP Transactions" (T). What is expected comes from there, never from our tables.

| row | profile | rule | test | on which realms | result |
|---|---|---|---|---|---|
"""


def main() -> None:
    sets = {profile: load_tables(profile=profile) for profile in PROFILES}
    written = [str(show(line, sets[line.profile])) for line in lines()]
    DOCUMENT.parent.mkdir(parents=True, exist_ok=True)
    DOCUMENT.write_text(HEAD + "\n".join(written) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(written)} lines in {DOCUMENT}\n")


if __name__ == "__main__":
    main()
