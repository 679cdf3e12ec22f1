"""Results of reconciliations without Spark: nodes, what was told of them, what is wrong, earlier runs, what is
acknowledged.

result = Made(nodes=1_000).result()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciliation.history.acknowledged import NOTHING, Acknowledged
from reconciliation.history.cause import Causes
from reconciliation.history.kept import Kept
from reconciliation.jobs.reconcile import Base, Judgement
from reconciliation.model.classes import ORDER
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import Extent, Range, Unread
from reconciliation.model.realm_nodes import Durable, Node, Properties
from reconciliation.model.runs import Run
from reconciliation.model.settings import Realm
from reconciliation.model.tally import Example, Tally
from reconciliation.model.window import Window
from reconciliation.read.catalog import Catalog, DurableState
from reconciliation.read.known_nodes import KnownNodes
from reconciliation.read.landing import Landed
from reconciliation.read.node_classes import NodeClasses
from reconciliation.read.standing import Place
from reconciliation.read.stored_tables import Cells
from reconciliation.report.findings import ClassReport, Findings
from reconciliation.report.result import Result, result_of
from tests.reconciliation.history.runs import AT_US, DAY_US

IDS = {"um.realm": "aa", "um.outcomes": "bb", "um.journal": "cc"}
LONG = "eu.logistics.warehouse_7.outbound.priority-shipments.with-a-name-without-any-space"


def node(number: int, name: str = "", **properties: Any) -> Node:
    named = name or f"shop.orders-{number:04d}"
    return Node(named, "queue", f"um.node.{named}", bytes(16), number + 1, Properties(**properties))


def tally(condition: str | None, answer: str, native: str | None, count: int, home: Node, **other: Any) -> Tally:
    given: dict[str, Any] = {
        "direction": "publish", "node": home.name, "store": home.store, "durable": None, "digest": "d",
        "table": "publish", "cell": 1, "rule": "r", "answer_table": "published", "answer_cell": 2, "answer_rule": "a",
        "operation": "publish", "cause": "transfer", "answer": answer, "native": native, "outcome": "rejected",
        "condition": condition, "severity": "transient" if condition else None, "presettled": False, "inside": True,
        "count": count, "at_first": AT_US - 7 * DAY_US, "at_last": AT_US - DAY_US, "mismatch": None,
        "example": Example(AT_US, "1a-0001", 1, -1, None, None),
    }  # fmt: skip
    return Tally(**{**given, **other})


@dataclass(slots=True)
class Made:
    """`rows`: findings, as the job writes them. `quiet`: nodes without any event; each other one has so many events as
    its number says, all stored, all acknowledged but one."""

    nodes: int = 3
    quiet: int = 0
    rows: Sequence[dict[str, Any]] = ()
    tallies: Sequence[Tally] = ()
    unread: Sequence[Unread] = ()
    earlier: Kept = field(default_factory=lambda: Kept("history"))
    acknowledged: Acknowledged = NOTHING
    levels: int = 0
    missing: dict[int, int] = field(default_factory=dict)
    """By number of a node: events that its store does not hold, and of which no finding tells."""

    def result(self, now_us: int = AT_US) -> Result:
        realm = Realm("embedded", "um", path=Path("realm"))
        ranges = [Range(topic, 0, 0, 1_000) for topic in IDS] + [Range(part.topic, 0, 0, 50) for part in self._parts()]
        extent = Extent(tuple(ranges), (), IDS, tuple(self.unread))
        landed = Landed(LocalFolder(Path("landed")), extent)
        judgement = self._judgement()
        findings = self._findings(judgement.catalog.parts)
        versions = {"realmgate": "0.1.0", "pyspark": "4.0.5"}
        return result_of(
            realm, Window(), landed, judgement, findings, self.earlier, self.acknowledged, versions, now_us, 12.0
        )

    def _parts(self) -> list[Node]:
        parts = [node(at) for at in range(self.nodes)]
        parts += node(self.nodes, LONG, stores=self.levels, has_levels=True).parts if self.levels else []
        return parts

    def _judgement(self) -> Judgement:
        parts = self._parts()
        counts: dict[tuple[int, str | None], dict[str, int]] = {}
        places, durables = {}, []
        lost, doubled = Counter[int](), Counter[int]()
        for row in self.rows:
            lost[row["store"]] += row["count"] if row["class"] == "P1" else 0
            doubled[row["store"]] += row["count"] if row["class"] == "P2" else 0
        for at, part in enumerate(parts):
            many = 0 if at >= len(parts) - self.quiet else at + 2
            held = many - self.missing.get(at, 0) + doubled[part.store]
            places[part.store] = Place(part.store, part.name, part.kind, "read", "", many + lost[part.store])
            counts[part.store, None] = {"events": held} if held else {}
            ended = {"events": held, "acknowledge": max(held - 1, 0), "available": min(held, 1)}
            counts[part.store, "queue"] = ended if held else {}
            durables.append(DurableState(Durable(part.name, "queue", part.store, "g", 0), None, None))
        known = KnownNodes()
        known.changed = {parts[0].name} if parts else set()
        catalog = Catalog(
            {part.store: part for part in parts}, {}, known, durables, [], frozenset({"d"}), NodeClasses([]), Cells([]),
            [], {1: 5}, {}, frozenset(), 0, False, 0, frozenset(),
        )  # fmt: skip
        runs = [Run("1a-0001", 900, "closed", AT_US - 9 * DAY_US, AT_US - DAY_US),
                Run("1b-0002", 90, "live", AT_US - DAY_US, AT_US - 90_000_000)]  # fmt: skip
        return Judgement(
            catalog, places, runs, [*self.tallies], counts, {}, {}, {}, {}, [], LocalFolder(Path("made")), {},
            Base(AT_US - 14 * DAY_US, {}),
        )  # fmt: skip

    def _findings(self, parts: dict[int, str]) -> Findings:
        classes: dict[str, ClassReport] = {}
        totals: Counter[tuple[str, int | None, str | None]] = Counter()
        causes = Causes(parts)
        for row in self.rows:
            classes.setdefault(row["class"], ClassReport(row["class"])).add(row)
            totals[row["class"], row["store"], row["durable"]] += row["count"]
            causes.add(row)
        named = sorted(causes.all(), key=lambda cause: ORDER.index(cause.code))
        return Findings([classes[code] for code in ORDER if code in classes], totals, named)
