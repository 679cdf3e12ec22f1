"""The job: read, transform, write. Four questions to Spark: the runs, the tallies, the durables' counts, the findings.

May import: pyspark, `reconciliation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation import frames, schemas
from reconciliation.catalog import Catalog, read_catalog
from reconciliation.landing import Landed
from reconciliation.runs import Numbering, Run, hole_finding, numbering_findings, runs_of, told_since
from reconciliation.settings import Realm
from reconciliation.tally import Tally, tally_findings
from reconciliation.transforms import blocks, decode, durables, tallies, verdicts
from reconciliation.transforms import runs as run_transforms
from reconciliation.window import Window
from reconciliation.withdrawn import Ordered, withdrawn

Counts = dict[tuple[int, str | None], dict[str, int]]
"""By (store, durable or None): fate -> events."""
Trimmed = dict[tuple[int, str | None], dict[str, int]]
"""The same, of what lies below its store's first kept EID."""
Copies = dict[int, tuple[int, int]]
"""Store -> events that the journal says were copied into it, and copies that it holds."""


@dataclass(frozen=True, slots=True)
class Base:
    """Old outcome records were trimmed: those that are kept were told from `since` on. `older`: by store, how many
    events are there of whose publishing nothing is kept."""

    since: int
    older: dict[int, int]


@dataclass(slots=True)
class Judgement:
    """What the job found, but for the findings that Spark wrote below `written`."""

    catalog: Catalog
    runs: list[Run]
    tallies: list[Tally]
    counts: Counts
    trimmed: Trimmed
    copies: Copies
    findings: list[dict[str, Any]]
    written: Path
    records: dict[str, int] = field(default_factory=dict)
    base: Base | None = None  # None: all evidence is kept


def judge(
    spark: SparkSession, landed: Landed, realm: Realm, window: Window, target: Path, tell: Callable[[str], None]
) -> Judgement:
    """Everything about the landed range. Findings per delivery are written as Parquet below `target`, by class."""
    catalog = read_catalog(landed, realm)
    records = frames.records(spark, landed)
    tell("reading outcome records and the journal")
    numberings = [Numbering.of(row) for row in run_transforms.numbering(records.outcomes, records.journal).collect()]
    since = told_since(numberings, catalog.outcomes_first)
    runs = runs_of(numberings, since)
    found = numbering_findings(numberings, catalog.digests) + _holes(records, numberings, since)
    found += [{"class": "Q1", "count": 1, "detail": text} for text in catalog.unreadable]
    evicted = {row["store"]: row["below"] for row in decode.evicted(records.journal).collect()}
    orders = [Ordered(**row.asDict()) for row in decode.ordered(records.journal).collect()]
    commanded = withdrawn(orders, (state.durable for state in catalog.durables))
    tables = frames.small(spark, catalog, runs, evicted, commanded)
    tell("checking outcomes against the rules")
    tallied = [catalog.node_classes.checked(one) for one in _tallies(records, tables, window, since)]
    found += tally_findings(tallied)
    tell("comparing publishes with events, and acknowledgements with the journal")
    accounts = frames.accounts(spark, landed, records, tables, since)
    event_blocks = durables.event_blocks(accounts.events).persist()
    ends = _ends(accounts, tables)
    states = durables.durable_blocks(event_blocks, ends, tables.durables).persist()
    folded = durables.fold(states, accounts.events, ends, tables.durables).persist()
    counts = _counts(durables.counts(event_blocks, states, folded))
    trimmed = _trimmed(accounts, tables, catalog)
    tell("naming what does not agree")
    per_delivery = _findings(spark, accounts, tables, folded, counts, bool(trimmed))
    target.mkdir(parents=True)
    if per_delivery is not None:
        per_delivery.coalesce(1).write.partitionBy("class").parquet(str(target), mode="append")
    totals = {f"{one.source} records": one.records for one in numberings if one.run is not None}
    copies = _copies(accounts)
    base = Base(since, _older(accounts)) if since is not None else None
    full = [_full(one) for one in found]
    return Judgement(catalog, runs, tallied, counts, trimmed, copies, full, target, totals, base)


def _holes(records: frames.Records, numberings: Iterable[Numbering], since: int | None) -> list[dict[str, Any]]:
    found = []
    torn = [one for one in numberings if one.run is not None and one.has_holes(since)]
    whole, cut = ([one for one in torn if one.is_cut(since) is is_cut] for is_cut in (False, True))
    looks = (("outcomes", whole, records.outcomes, 1), ("outcomes", cut, records.outcomes, None))
    for source, those, frame, first in (*looks, ("journal", torn, records.journal, None)):
        broken = {one.run: one.at_last for one in those if one.source == source and one.run is not None}
        if broken:
            rows = run_transforms.missing_numbers(frame, sorted(broken), first).collect()
            found += [hole_finding(source, row["run"], row["first"], row["last"], broken[row["run"]]) for row in rows]
    return found


def _older(accounts: frames.Accounts) -> dict[int, int]:
    if accounts.older is None:
        return {}
    return {row["store"]: row["count"] for row in accounts.older.groupBy("store").count().collect()}


def _tallies(records: frames.Records, tables: frames.Small, window: Window, since: int | None) -> list[Tally]:
    groups = frames.groups_of(records.outcomes, tables, since)
    judged = tallies.judged(tallies.tallies(groups, window.since, window.until), tables.cells)
    return [Tally.of(row) for row in judged.collect()]


def _counts(counted: DataFrame) -> Counts:
    counts: Counts = {}
    for row in counted.collect():
        counts.setdefault((row["store"], row["durable"]), {})[row["fate"]] = row["count"]
    return counts


def _trimmed(accounts: frames.Accounts, tables: frames.Small, catalog: Catalog) -> Trimmed:
    """What lies below the stores' first kept EIDs, as far as it is known."""
    if not any(catalog.first_kept.values()):
        return {}
    counted: Trimmed = {}
    for row in durables.trimmed(accounts.claims, _ends(accounts, tables), tables.durables).collect():
        counted.setdefault((row["store"], row["durable"]), {})[row["fate"]] = row["count"]
    return counted


def _ends(accounts: frames.Accounts, tables: frames.Small) -> durables.Ends:
    return durables.Ends(accounts.terminals, tables.ranges, tables.withdrawn)


def _copies(accounts: frames.Accounts) -> Copies:
    said = {row["store"]: row["count"] for row in accounts.copied.collect()}
    held = {row["store"]: row["count"] for row in accounts.events.where("copy").groupBy("store").count().collect()}
    return {store: (said.get(store, 0), held.get(store, 0)) for store in said.keys() | held.keys()}


def _suspects(spark: SparkSession, everything: DataFrame, tables: frames.Small) -> DataFrame | None:
    """The blocks to look at row by row; None when all agree. Few, nearly always: then they are broadcast."""
    suspects = blocks.suspects(everything, tables.runs).persist()
    some = suspects.take(frames.LITERAL_ROWS_MAX + 1)
    if not some:
        return None
    if len(some) > frames.LITERAL_ROWS_MAX:
        return suspects
    return F.broadcast(frames.local_table(spark, [(row["run"], row["block"]) for row in some], schemas.BLOCKS))


def _findings(
    spark: SparkSession, accounts: frames.Accounts, tables: frames.Small, folded: DataFrame, counts: Counts, lossy: bool
) -> DataFrame | None:
    """Everything that is wrong with a delivery; None when it is known already that nothing is."""
    parts = []
    everything = accounts.all.unionByName(blocks.expected(tables.runs), allowMissingColumns=True)
    suspects = _suspects(spark, everything, tables)
    if suspects is not None:
        suspicious = blocks.within(everything, suspects).persist()
        found = verdicts.verdicts(verdicts.fold(suspicious, tables.runs))
        parts.append(verdicts.overwritten(found, suspicious.where(F.col("what") == "event")))
        parts.append(verdicts.missing_records(suspicious, tables.runs))
    if any(fates.get("skipped") for fates in counts.values()):
        parts.append(durables.skipped(folded, accounts.claims))
    if lossy:
        parts.append(durables.lost(accounts.claims, _ends(accounts, tables), tables.durables))
    selected = [part.select(*schemas.FINDING_COLUMNS) for part in parts]
    return reduce(DataFrame.unionByName, selected) if selected else None


def _full(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: finding.get(name) for name in schemas.FINDING_COLUMNS}
