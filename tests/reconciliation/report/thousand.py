"""A realm of a thousand nodes in which something is wrong: one cause in many nodes, some in one; and twelve days before
it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from reconciliation.history.acknowledged import Acknowledged, parse
from reconciliation.history.acknowledging import with_entry
from reconciliation.history.kept import keep, read
from reconciliation.history.standing import day_at
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import Unread
from reconciliation.report.result import Result
from tests.reconciliation.history.runs import AT_US, DAY_US, causes, lost, row
from tests.reconciliation.report.made import LONG, Made, node, tally

NODES, QUIET = 1_000, 600
ACKED = "the consumer's acknowledge was answered done; the journal has no end of it"
LINK = {"link": "5c1f8a52-4a1c-4ce0-8f0e-6a4a7e6d7a11", "container": "0e9b5a66-95f4-47cb-9d4d-6f3c51a7c9aa"}


def lost_in(number: int, *eids: int) -> list[dict[str, Any]]:
    home = node(number)
    return lost(*eids, node=home.name, store=home.store, run="19aa1c2d3e4-7f01", seq=41, rule="stored-accepted", **LINK)


def rows() -> list[dict[str, Any]]:
    """21 nodes lost the same way 2 each, one 30; 40 nodes have acknowledgements that the journal has not; one level of
    a node has an event that is there twice; a hole in the evidence."""
    findings = [finding for number in range(21) for finding in lost_in(number, 5, 6)] + lost_in(30, *range(100, 130))
    for number in range(40, 80):
        home = node(number)
        findings.append(row("A1", eid=3, node=home.name, store=home.store, durable="queue", run="19aa1c2d3e4-7f01",
                         seq=7, detail=ACKED, at=AT_US - DAY_US, **LINK))  # fmt: skip
    level = node(NODES, LONG, stores=4, has_levels=True).parts[2]
    findings.append(row("P2", eid=9, node=LONG, store=level.store, count=2, detail="stored at EIDs 9, 12, 13"))
    hole = "2 outcomes records missing: n 2 to 3"
    findings.append(row("Q1", eid=None, node=None, store=None, run="19aa1c2d3e4-7f01", count=2, at=None, detail=hole))
    findings.append(row("A12", eid=None, run="19aa1c2d3e4-7f01", seq=9, count=7, detail="pre-settled publish"))
    return findings


def known() -> Acknowledged:
    """The first node's loss, all of it; two of the 30 of another; and a third, until yesterday."""
    content = None
    for number, eids, days in ((0, (5, 6), 30), (30, (100, 101), 30), (2, (5, 6), -1)):
        [cause] = causes(lost_in(number, *eids))
        until = day_at(AT_US) + timedelta(days=days)
        content = with_entry(
            content, "acknowledged.yaml", cause, until, "ann", "lost with the disk of 3 May <INC-4711>"
        )
    return parse(content or b"", "acknowledged.yaml")


def thousand(directory: Path) -> Result:
    """`directory`: of the records of the days before."""
    tallies = [
        tally("amqp:resource-limit-exceeded", "capacity-reached", "shop.orders-0007 is full", 130, node(7)),
        tally("amqp:resource-limit-exceeded", "capacity-reached", "shop.orders-0008 is full", 30, node(8)),
        tally("amqp:internal-error", "indeterminate", "_MSG_TIMED_OUT", 4, node(9), severity="fatal"),
        tally(None, "stored", None, 505_505, node(9)),
    ]
    unread = Unread("um.commands", None, "we may not look at this topic: grant Describe and Read on it")
    history = LocalFolder(directory / "history")
    for day in range(12, 0, -1):
        before = Made(NODES, QUIET, rows()[: 12 * (13 - day) % 60], tallies[: 1 + day % 3], levels=4)
        before.earlier = read(history)
        keep(history, before.result(AT_US - day * DAY_US).record)
    made = Made(NODES, QUIET, rows(), tallies, [unread], read(history), known(), 4, {33: 2})
    return made.result()
