"""What is held against other records on the driver: group offsets (A9, A10), commands and capacities (S2), stored
tables (G2), and what cells stand for (A3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mappings import load_tables
from native_backend.nodes.group_offset import projection
from reconciliation.model.acts import (
    Act,
    evicted_below,
    laid_to_commands,
    orders,
    places,
    without_command,
    without_delivery,
    without_room,
)
from reconciliation.model.ranges import GroupPosition
from reconciliation.model.tally import Example, Tally
from reconciliation.read.group_positions import Held, position_findings
from reconciliation.read.stored_tables import Cells, by_digest, digest_findings

TABLES = load_tables()
DOCUMENT = {**TABLES.expanded(), "stored_us": 5}
HELD = Held("orders", "queue", 7, low=20, journal=100, moved=False)
"""Its snapshot, as of journal offset 100, has the mark 20."""


@pytest.mark.parametrize(
    ("position", "code"),
    [
        (projection(25, 20, 100), None),
        (projection(25, 23, 120), None),
        (projection(20, 18, 90), None),  # older than the snapshot
        ((20, "realmgate1;100;" + projection(20, 20, 100)[1].rpartition(";")[2]), "A9"),
        ((25, ""), "A9"),
        ((4, ""), "A10"),
        ((25, "another's"), "A9"),
        ((25, projection(24, 20, 100)[1]), "A9"),
        ((4, projection(24, 20, 100)[1]), "A10"),
        (projection(25, 20, 203), "A9"),  # beyond the end of the journal
        (projection(25, 20, 202), None),  # which may skip offsets
        (projection(25, 19, 101), "A10"),
        (projection(25, 22, 99), "A9"),
    ],
)
def test_what_a_group_shows(position: tuple[int, str], code: str | None) -> None:
    shown = GroupPosition("um.queue.orders", "um.node.orders", 0, *position)
    rows = position_findings([(HELD, shown)], 200)
    assert [row["class"] for row in rows] == ([] if code is None else [code])
    assert all((row["node"], row["durable"], row["store"]) == ("orders", "queue", 7) for row in rows)


def test_a_durable_that_was_moved_is_not_compared_with_its_snapshot() -> None:
    moved = replace(HELD, moved=True)
    for position in (projection(25, 19, 101), projection(25, 22, 99)):
        assert position_findings([(moved, GroupPosition("g", "t", 0, *position))], 200) == []
    [foreign] = position_findings([(moved, GroupPosition("g", "t", 0, 4, ""))], None)
    assert foreign["class"] == "A9", "what lies below is no step back"


def act(operation: str, cause: str, **changed: Any) -> Act:
    honest = {"store": 7, "durable": "queue", "operation": operation, "cause": cause, "offset": None, "first": None,
              "last": None, "node": "orders", "lowest": 3, "highest": 8, "count": 6, "at": 50,
              "run": "a-1"}  # fmt: skip
    return Act(**{**honest, **changed})


COMMANDS: dict[str, dict[str, Any]] = {
    "p": {"id": "p", "what": "purge", "node": "orders"},
    "r": {"id": "r", "what": "resend", "node": "orders"},
    "d": {"id": "d", "what": "delete-node", "node": "orders"},
    "o": {"id": "o", "what": "purge", "node": "other"},
    "b": {"id": "b", "what": "purge", "node": "orders", "store": 7, "durable": "queue", "eid": 9},
    "m": {"id": "m", "what": "move", "node": "orders", "store": 7, "durable": "queue", "eid": 0, "count": 2},
    "u": {"id": "u", "what": "delete", "node": "orders", "store": 7, "durable": "audit"},
}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (act("purge", "command p"), None),
        (act("move", "command r"), None),
        (act("delete", "command d"), None),
        (act("delete", "unsubscribed"), None),
        (act("expired", "ttl"), None),
        (act("purge", "command x", at=49), None),  # from before
        (act("purge", "command x"), "purge by command x, and there is no such command"),
        (act("seek", "command p"), "seek by command p, which was to purge node orders"),
        (act("purge", "command o"), "purge by command o, which was to purge node other"),
        (act("purge", "command b"), None),
        (act("purge", "command b", store=8), "purge by command b, which was to purge store 7"),
        (act("purge", "command b", durable="audit"), "purge by command b, which was to purge durable queue"),
        (
            act("purge", "command b", highest=9),
            "purge by command b, which was to purge what lies below EID 9, and EID 9 ended",
        ),
        (act("move", "command m"), None),
        (act("move", "command m", store=8), "move by command m, which was to move store 7"),
        (act("delete", "command u", durable="audit", store=8), None),  # in every store of the node
        (act("delete", "command u"), "delete by command u, which was to delete durable audit"),
    ],
)
def test_what_is_laid_to_a_command_was_commanded(entry: Act, words: str | None) -> None:
    findings = without_command(laid_to_commands([entry, entry], since=50), COMMANDS)
    assert [(finding["class"], finding["detail"], finding["count"]) for finding in findings] == (
        [] if words is None else [("S2", words, 12)]
    )


def test_only_a_consumer_acknowledges() -> None:
    assert without_delivery([act("return", "lost"), act("expired", "ttl"), act("purge", "command p")]) == []
    [given_back] = without_delivery([act("return", "disposition", first=0)])
    assert (given_back["class"], given_back["count"], given_back["eid"]) == ("A6", 6, 3)
    findings = [without_delivery([act(verb, "disposition")]) for verb in ("acknowledge", "discard", "dead-letter")]
    assert [(finding["class"], finding["count"], finding["eid"]) for [finding] in findings] == [("A2", 6, 3)] * 3


def test_only_a_node_with_a_capacity_evicts() -> None:
    evicted = act("evicted", "capacity", durable="")
    assert without_room([evicted], {7: True}) == without_room([evicted], {}) == []
    [finding] = without_room([evicted], {7: False})
    assert (finding["class"], finding["eid"], finding["durable"]) == ("S2", 8, None)
    assert evicted_below([evicted, replace(evicted, highest=5)]) == {7: 9}


def test_what_moves_durables_is_taken_one_by_one() -> None:
    sought = act("seek", "command s", offset=9, first=4, last=4)
    assert [(order.offset, order.operation, order.first) for order in orders([sought, act("return", "lost")])] == [
        (9, "seek", 4)
    ]
    assert places([sought, act("return", "lost"), act("return", "ttl")], "return") == [(7, "queue")]


def test_tables_are_those_that_their_digest_names() -> None:
    assert digest_findings([DOCUMENT]) == []
    changed = {**DOCUMENT, "profile": "another"}
    [finding] = digest_findings([DOCUMENT, changed])
    assert finding["class"] == "G2"
    assert TABLES.digest in finding["detail"]
    for documents in ([DOCUMENT, changed], [changed, DOCUMENT]):
        assert by_digest(documents) == [DOCUMENT]
    assert by_digest([changed]) == [changed]


def told(**changed: Any) -> Tally:
    link = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
    rule = TABLES["settle"].decide(state="accepted", already_settled="no", attempts="below", **link)
    answer = TABLES["settled"].decide(operation="acknowledge", answer="done", peer_settled="no")
    honest = Tally(
        direction="subscribe", node="orders", store=7, durable=None, digest=TABLES.digest, table=rule.table,
        cell=rule.cell, rule=rule.rule, answer_table=answer.table, answer_cell=answer.cell, answer_rule=answer.rule,
        operation="acknowledge", cause="disposition", answer="done", native=None, outcome="accepted", condition=None,
        severity=None, presettled=False, inside=True, count=1, at_first=1, at_last=1, mismatch=None,
        example=Example(1, "run", 1, 1, "link", "container"),
    )  # fmt: skip
    return replace(honest, **changed)


@pytest.mark.parametrize(
    ("tally", "kind", "words"),
    [
        (told(), "queue", None),
        (told(), None, None),
        (told(cell=99_999), "queue", None),  # it has no rule: that is Q1
        (told(digest="unknown"), "queue", None),
        (told(), "channel", "subscription queue in the cell of settle, where the record says plain or browse"),
        (told(durable="d"), "queue", "subscription queue in the cell of settle, where the record says durable"),
        (told(answer="not-found"), "queue", "answer done in the cell of settled, where the record says not-found"),
        (told(operation="discard"), "queue",
         "operation acknowledge in the cell of settled, where the record says discard"),
        (told(mismatch="rule x", durable="d"), "queue",
         "rule x; subscription queue in the cell of settle, where the record says durable"),
    ],
)  # fmt: skip
def test_a_cell_stands_for_what_the_record_says(tally: Tally, kind: str | None, words: str | None) -> None:
    assert Cells([DOCUMENT]).checked(tally, kind).mismatch == words


def test_every_cell_is_read_as_the_tables_made_it() -> None:
    cells, axes = Cells([DOCUMENT]), DOCUMENT["tables"]["published"]["axes"]
    for answer in axes["answer"]:
        for presettled in axes["presettled"]:
            mode = "settled" if presettled == "yes" else "unsettled"
            facts = {"answer": answer, "sender_settle_mode": mode, "presettled": presettled}
            cell = TABLES["published"].decide(**facts, rejected="agreed", released="agreed").cell
            assert {axis: cells.fact(TABLES.digest, "published", cell, axis) for axis in facts} == facts
