"""The job: read, transform, write. Four questions to Spark: runs, tallies, counts of durables, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.jobs import own_checks
from reconciliation.model import schemas
from reconciliation.model.acts import Act, evicted_below, orders
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import GONE, NO_END, Extent
from reconciliation.model.runs import Numbering, Run, hole_finding, q1, runs_of, told_since, trimmed_young, young_from
from reconciliation.model.settings import Realm
from reconciliation.model.tally import Tally, tally_findings, unknown_cells
from reconciliation.model.window import Window
from reconciliation.model.withdrawn import Withdrawn, withdrawn
from reconciliation.read.catalog import Catalog, read_catalog
from reconciliation.read.evidence_gaps import gaps_of, no_outcomes
from reconciliation.read.landing import Landed
from reconciliation.read.standing import Mention, Place, places, unseen_findings, vanished_durables
from reconciliation.transforms import blocks, claims, decode, durables, frames, tallies, verdicts
from reconciliation.transforms import runs as run_transforms

Counts = dict[tuple[int, str | None], dict[str, int]]
"""By (store, durable or None): fate -> events."""
Trimmed = dict[tuple[int, str | None], dict[str, int]]
"""The same, of what lies below its store's first kept EID."""
Copies = dict[int, int]
"""Store -> copies that it holds."""


@dataclass(frozen=True, slots=True)
class Base:
    """Old outcome records were trimmed: those that are kept were sent from `since` on. `older`: by store, how many
    events are there of whose publishing nothing is kept."""

    since: int
    older: dict[int, int]


@dataclass(slots=True)
class Judgement:
    """What the job found, but for the findings that Spark wrote below `written`. `unseen`: by store, publishes that
    were answered stored and that could be compared with nothing. `native`: by store, events of plain producers."""

    catalog: Catalog
    places: dict[int, Place]
    runs: list[Run]
    tallies: list[Tally]
    counts: Counts
    trimmed: Trimmed
    copies: Copies
    unseen: dict[int, int]
    native: dict[int, int]
    findings: list[dict[str, Any]]
    written: Folder
    records: dict[str, int] = field(default_factory=dict)
    base: Base | None = None  # None: all evidence is kept


def judge(
    spark: SparkSession,
    landed: Landed,
    realm: Realm,
    window: Window,
    target: Folder,
    tell: Callable[[str], None],
    now_us: int,
) -> Judgement:
    """Everything about the landed range. Findings per delivery are written as Parquet below `target`, by class.
    `now_us`: the time, in microseconds since 1970, which tells what may have been trimmed."""
    catalog, extent, prefix = read_catalog(landed, realm), landed.extent, realm.prefix
    records = frames.records(spark, landed)
    tell("reading outcome records and the journal")
    young = young_from(now_us, realm.evidence_s)
    numberings = _numberings(records, extent, prefix, young)
    oldest_us = told_since(numberings, catalog.outcomes_first)
    since = None if oldest_us is None else min(oldest_us, young)  # a run that began after that has all of its evidence
    runs = runs_of(numberings, since, ended=catalog.ended, growing=extent.growing)
    gaps = gaps_of(numberings, catalog, extent, prefix, since)
    findings = gaps.findings + _holes(records, numberings, since) + _remarked(landed)
    findings += trimmed_young(numberings, young, catalog.outcomes_first)
    journal = extent.unread_of(f"{prefix}.journal")
    hidden = journal is not None and journal.why != GONE  # what a journal held that is gone, it holds no more
    doubts = frames.doubts(numberings, frozenset(gaps.torn), hidden)
    acts = [Act.of(row) for row in decode.acts(records.journal).collect()]
    commanded = withdrawn(orders(acts), (state.durable for state in catalog.durables))
    tables = _small(spark, catalog, runs, doubts, numberings, acts, commanded)
    tell("checking outcomes against the rules")
    tallied = [_checked(catalog, tally) for tally in _tallies(records, tables, window, since)]
    findings += tally_findings(tallied)
    findings += unknown_cells(tallied, {(key[0], key[1], key[2]) for key in catalog.cells if key[3]}, catalog.digests)
    mentioned = _mentions(spark, records, catalog)
    stores = places(catalog, extent, prefix, tallied, mentioned)
    tell("comparing publishes with events, and acknowledgements with the journal")
    nodes = frames.stores(spark, stores, catalog)
    accounts = frames.accounts(spark, landed, records, tables, nodes, catalog, since)
    named, reused = _deliveries(spark, accounts, tables, stores)
    event_blocks = durables.event_blocks(accounts.events, tables.beginnings).persist()
    ends = _ends(accounts, tables)
    states = durables.durable_blocks(event_blocks, ends, tables.durables, reused).persist()
    folded = durables.fold(states, accounts.events, ends, tables.durables, tables.beginnings).persist()
    counts = _counts(durables.counts(event_blocks, states, folded))
    trimmed = _trimmed(accounts, tables, catalog)
    copied, differing = own_checks.copies_compared(spark, accounts, catalog, extent, prefix, stores)
    findings += own_checks.small_findings(catalog, landed, prefix, acts, commanded, counts, copied, numberings)
    tell("naming what does not agree")
    parts = _findings(named, accounts, tables, folded, counts, bool(trimmed))
    parts += own_checks.row_findings(spark, accounts, tables, catalog, acts, folded, counts)
    parts += [] if differing is None else [differing]
    _write(parts, target)
    findings += vanished_durables(catalog, extent, stores, tallied, mentioned)
    unseen = _unseen(accounts, stores, extent)
    findings += unseen_findings(stores.values(), extent, catalog, unseen)
    findings += _no_outcomes(named is not None, extent, prefix, numberings)
    return Judgement(
        catalog,
        stores,
        runs,
        tallied,
        counts,
        trimmed,
        copied,
        unseen,
        _by_store(accounts.events.where("native").groupBy("store").count()) if catalog.has_adopted else {},
        [_full(finding) for finding in findings],
        target,
        {f"{log.source} records": log.records for log in numberings if log.run is not None},
        Base(oldest_us, _older(accounts)) if oldest_us is not None else None,
    )


def _write(parts: list[DataFrame], target: Folder) -> None:
    """The findings per delivery."""
    target.make()
    if parts:
        findings = reduce(DataFrame.unionByName, parts).coalesce(1)
        findings.write.partitionBy("class").parquet(target.url, mode="append")


def _remarked(landed: Landed) -> list[dict[str, Any]]:
    return [q1(None, 1, remark.at, remark.words) for remark in landed.remarks]


def _no_outcomes(
    held_events: bool, extent: Extent, prefix: str, numberings: Iterable[Numbering]
) -> list[dict[str, Any]]:
    """Where there should be outcome records, and is none."""
    outcomes = extent.range_of(f"{prefix}.outcomes")
    held_some = held_events or (outcomes is not None and outcomes.end > 0)
    return [no_outcomes(prefix)] if held_some and not any(log.source == "outcomes" for log in numberings) else []


def _numberings(records: frames.Records, extent: Extent, prefix: str, young: int) -> list[Numbering]:
    hidden_from = min((first for first, _ in extent.hidden(f"{prefix}.journal")), default=NO_END)
    numbered = run_transforms.numbering(records.outcomes, records.journal, extent.journal_before, hidden_from, young)
    return [Numbering.of(row) for row in numbered.collect()]


def _small(
    spark: SparkSession,
    catalog: Catalog,
    runs: list[Run],
    doubts: list[frames.Doubt],
    numberings: list[Numbering],
    acts: list[Act],
    commanded: Withdrawn,
) -> frames.Small:
    beginnings = [
        (log.run, log.offset_first)
        for log in numberings
        if log.source == "journal" and log.run is not None and log.n_first == 1
    ]
    return frames.small(spark, catalog, runs, doubts, beginnings, evicted_below(acts), commanded)


def _mentions(spark: SparkSession, records: frames.Records, catalog: Catalog) -> list[Mention]:
    rows = [(state.durable.store, state.durable.name, state.durable.journal) for state in catalog.durables]
    begun = frames.local_table(spark, rows, schemas.BEGUN) if rows else None
    return [Mention(**row.asDict()) for row in decode.mentions(records.journal, begun).collect()]


def _holes(records: frames.Records, numberings: Iterable[Numbering], since: int | None) -> list[dict[str, Any]]:
    holes = []
    torn = [log for log in numberings if log.run is not None and log.has_holes(since)]
    whole, cut = ([log for log in torn if log.is_cut(since) is is_cut] for is_cut in (False, True))
    looks = (("outcomes", whole, records.outcomes, 1), ("outcomes", cut, records.outcomes, None))
    for source, those, frame, first in (*looks, ("journal", torn, records.journal, None)):
        broken = {log.run: log.at_last for log in those if log.source == source and log.run is not None}
        if broken:
            rows = run_transforms.missing_numbers(frame, sorted(broken), first).collect()
            holes += [hole_finding(source, row["run"], row["first"], row["last"], broken[row["run"]]) for row in rows]
    return holes


def _older(accounts: frames.Accounts) -> dict[int, int]:
    return {} if accounts.older is None else _by_store(accounts.older.groupBy("store").count())


def _by_store(counted: DataFrame) -> dict[int, int]:
    return {row["store"]: row["count"] for row in counted.collect()}


def _unseen(accounts: frames.Accounts, stores: Mapping[int, Place], extent: Extent) -> dict[int, int]:
    if not extent.unread and all(place.standing != "unseen" for place in stores.values()):
        return {}
    return _by_store(claims.unseen(accounts.claims))


def _checked(catalog: Catalog, tally: Tally) -> Tally:
    """Held against what the cells stand for."""
    node = catalog.nodes.get(tally.store or 0)
    return catalog.facts.checked(catalog.node_classes.checked(tally), None if node is None else node.kind)


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
    return durables.Ends(accounts.terminals, tables.ranges, tables.withdrawn, tables.looked_at, tables.whole)


def _suspects(spark: SparkSession, everything: DataFrame, tables: frames.Small) -> DataFrame | None:
    """The blocks to look at row by row; None when all agree. Few, nearly always: then they are broadcast."""
    suspects = blocks.suspects(everything, tables.runs).persist()
    some = suspects.take(frames.LITERAL_ROWS_MAX + 1)
    if not some:
        return None
    if len(some) > frames.LITERAL_ROWS_MAX:
        return suspects
    return F.broadcast(frames.local_table(spark, [(row["run"], row["block"]) for row in some], schemas.BLOCKS))


def _deliveries(
    spark: SparkSession, accounts: frames.Accounts, tables: frames.Small, stores: Mapping[int, Place]
) -> tuple[DataFrame | None, DataFrame | None]:
    """What is wrong with deliveries, and the blocks of EIDs of which an answer named one that holds another event now;
    None when all deliveries agree."""
    everything = accounts.all.unionByName(blocks.expected(tables.runs), allowMissingColumns=True)
    suspects = _suspects(spark, everything, tables)
    if suspects is None:
        return None, None
    suspicious = blocks.within(everything, suspects).persist()
    findings = verdicts.overwritten(verdicts.verdicts(verdicts.fold(suspicious, tables.runs, tables.doubts)))
    lost = [(place.store, place.why) for place in stores.values() if place.standing == "lost"]
    if lost:
        findings = verdicts.explained(findings, frames.local_table(spark, lost, schemas.LOST))
    summed = verdicts.summed(findings).unionByName(verdicts.missing_records(suspicious, tables.runs)).persist()
    places = summed.where((F.col("class") == "P1") & F.col("eid").isNotNull())
    some = durables.blocks_of(places).take(frames.LITERAL_ROWS_MAX + 1)
    if not some:
        return summed, None
    if len(some) > frames.LITERAL_ROWS_MAX:
        return summed, durables.blocks_of(places)
    return summed, frames.local_table(spark, [(row["store"], row["block"]) for row in some], schemas.PLACES)


def _findings(
    named: DataFrame | None,
    accounts: frames.Accounts,
    tables: frames.Small,
    folded: DataFrame,
    counts: Counts,
    lossy: bool,
) -> list[DataFrame]:
    """Everything that is wrong with a delivery or an event; empty when it is known already that nothing is."""
    parts = [] if named is None else [named]
    if any(fates.get("skipped") for fates in counts.values()):
        parts.append(durables.skipped(folded, accounts.claims))
    if any(fates.get(durables.EARLY) for fates in counts.values()):
        parts.append(durables.early(folded))
    if lossy:
        parts.append(durables.lost(accounts.claims, _ends(accounts, tables), tables.durables))
    return [part.select(*schemas.FINDING_COLUMNS) for part in parts]


def _full(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: finding.get(name) for name in schemas.FINDING_COLUMNS}
