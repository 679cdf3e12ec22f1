"""The job: read, transform, write. Four questions to Spark: runs, tallies, counts of durables, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.engine.beside import Ask, beside
from reconciliation.engine.spark import plan_for
from reconciliation.engine.spark_settings import plans_for, plans_for_sums
from reconciliation.jobs import by_sums, kept_sums, own_checks
from reconciliation.jobs.by_sums import BySums
from reconciliation.jobs.evidence import ByRows, Evidence, Fates, ends_of
from reconciliation.model import schemas
from reconciliation.model.acts import Act, evicted_below, orders
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import GONE, NO_END, Extent
from reconciliation.model.run_sums import RowsNeededError
from reconciliation.model.runs import Numbering, Run, q1, runs_of, told_since, trimmed_young, young_from
from reconciliation.model.settings import Realm
from reconciliation.model.tally import Tally, tally_findings, unknown_cells
from reconciliation.model.window import Window
from reconciliation.model.withdrawn import Withdrawn, withdrawn
from reconciliation.read.catalog import Catalog, read_catalog
from reconciliation.read.evidence_gaps import gaps_of, no_outcomes
from reconciliation.read.landing import Landed
from reconciliation.read.standing import Place, places, unseen_findings, vanished_durables
from reconciliation.transforms import blocks, claims, durables, frames, tallies, verdicts

_READING = "reading outcome records and the journal"


@dataclass(frozen=True, slots=True)
class Base:
    """Old outcome records were trimmed: those that are kept were sent from `since` on. `older`: by store, how many
    events are there of whose publishing nothing is kept."""

    since: int
    older: dict[int, int]


@dataclass(slots=True)
class Judgement:
    """What the job found, but for the findings that Spark wrote below `written`. `trimmed`: `counts` of what lies below
    its store's first kept EID. `copies`: by store, how many it holds. `unseen`: by store, publishes that were answered
    stored and that could be compared with nothing. `native`: by store, events of plain producers. `by_rows`: why
    partial aggregates could not tell it; empty: they did, or were not wanted."""

    catalog: Catalog
    places: dict[int, Place]
    runs: list[Run]
    tallies: list[Tally]
    counts: Fates
    trimmed: Fates
    copies: dict[int, int]
    unseen: dict[int, int]
    native: dict[int, int]
    findings: list[dict[str, Any]]
    written: Folder
    records: dict[str, int] = field(default_factory=dict)
    base: Base | None = None  # None: all evidence is kept
    by_rows: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged. Findings per delivery are written as Parquet below `target`, by class. `now_us`: the time, in
    microseconds since 1970, which tells what may have been trimmed."""

    spark: SparkSession
    landed: Landed
    realm: Realm
    window: Window
    target: Folder
    tell: Callable[[str], None]
    now_us: int
    catalog: Catalog


def judge(
    spark: SparkSession,
    landed: Landed,
    realm: Realm,
    window: Window,
    target: Folder,
    tell: Callable[[str], None],
    now_us: int,
    by_sums_first: bool = False,
) -> Judgement:
    """Everything about the landed range (`Case`), from all rows; `by_sums_first`: from the partial aggregates that
    links keep, where those can tell it."""
    begun = set[str]()

    def tell_once(step: str) -> None:
        if step not in begun:
            begun.add(step)
            tell(step)

    case = Case(spark, landed, realm, window, target, tell_once, now_us, read_catalog(landed, realm))
    why = ""
    if by_sums_first:
        try:
            evidence = _by_sums(case)  # this makes what is missing, once for each increment: it belongs to landing it
            tell_once(_READING)
            plan_for(spark, plans_for_sums(evidence.rows))
            return _judged(case, evidence)
        except RowsNeededError as error:
            why = str(error)
            plan_for(spark, plans_for(landed.extent.offsets))
    tell_once(_READING)
    return replace(_judged(case, ByRows(spark, landed, case.catalog)), by_rows=why)


def _by_sums(case: Case) -> BySums:
    chain, extent = case.landed.chain, case.landed.extent
    if chain is None:
        raise RowsNeededError("it could not continue from the state")
    by_sums.check(extent, case.catalog, case.window)
    return BySums(case.spark, case.landed, chain, case.catalog, kept_sums.kept(case.spark, case.landed, chain))


def _judged(case: Case, evidence: Evidence) -> Judgement:
    with beside(case.spark, at_once=evidence.is_quick) as ask:
        return _answered(case, evidence, ask)


def _answered(case: Case, evidence: Evidence, ask: Ask) -> Judgement:
    spark, landed, catalog, tell = case.spark, case.landed, case.catalog, case.tell
    extent, prefix = landed.extent, case.realm.prefix
    young = young_from(case.now_us, case.realm.evidence_s)
    hidden_from = min((first for first, _ in extent.hidden(f"{prefix}.journal")), default=NO_END)
    acts_of, mentions_of = ask(evidence.acts), ask(lambda: evidence.mentions(_begun(spark, catalog)))
    numberings = evidence.numberings(extent.journal_before, hidden_from, young)
    oldest_us = told_since(numberings, catalog.outcomes_first)
    since = None if oldest_us is None else min(oldest_us, young)  # a run that began after that has all of its evidence
    runs = runs_of(numberings, since, ended=catalog.ended, growing=extent.growing)
    gaps = gaps_of(numberings, catalog, extent, prefix, since)
    findings = gaps.findings + evidence.holes(numberings, since)
    findings += [q1(None, 1, remark.at, remark.words) for remark in landed.remarks]
    findings += trimmed_young(numberings, young, catalog.outcomes_first)
    journal = extent.unread_of(f"{prefix}.journal")
    hidden = journal is not None and journal.why != GONE  # what a journal held that is gone, it holds no more
    doubts = frames.doubts(numberings, frozenset(gaps.torn), hidden)
    acts = acts_of()
    commanded = withdrawn(orders(acts), (state.durable for state in catalog.durables))
    tables = _small(spark, catalog, runs, doubts, numberings, acts, commanded)
    tell("checking outcomes against the rules")
    judged = tallies.judged(evidence.tallied(tables, case.window, since), tables.cells)
    tallied = [_checked(catalog, Tally.of(row)) for row in judged.collect()]
    findings += tally_findings(tallied)
    findings += unknown_cells(tallied, {(key[0], key[1], key[2]) for key in catalog.cells if key[3]}, catalog.digests)
    mentioned = mentions_of()
    stores = places(catalog, extent, prefix, tallied, mentioned)
    tell("comparing publishes with events, and acknowledgements with the journal")
    nodes = frames.stores(spark, stores, catalog)
    ended_of = ask(lambda: _ended(evidence, tables, nodes, None))
    named, reused = _deliveries(spark, evidence.deliveries(tables, nodes, since), tables, stores)
    ended = ended_of() if reused is None else _ended(evidence, tables, nodes, reused)
    accounts, counts = ended.accounts, ended.counts
    evidence.check(counts)
    trimmed = _trimmed(evidence, ended, tables, catalog)
    copied, unlike = own_checks.copies_compared(evidence.copies(accounts, nodes), catalog, extent, prefix, stores)
    in_window = acts if case.window == Window() else evidence.acts(case.window)
    findings += own_checks.small_findings(
        catalog, landed, prefix, acts, in_window, commanded, counts, copied, numberings
    )
    tell("naming what does not agree")
    parts = _findings(named, ended, tables, bool(trimmed))
    parts += own_checks.row_findings(spark, accounts, tables, catalog, acts, ended.folded, counts, case.window)
    if unlike:
        parts.append(evidence.differing_copies(accounts, frames.local_table(spark, unlike, schemas.COPIED_TO)))
    due = own_checks.letters_due(catalog, counts, numberings)
    if due:
        left_out = evidence.letters_left_out(frames.local_table(spark, due, schemas.LETTERS_TO), tables, nodes)
        parts += [] if left_out is None else [left_out]
    _write(parts, case.target)
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
        case.target,
        {f"{log.source} records": log.records for log in numberings if log.run is not None},
        Base(oldest_us, _older(accounts)) if oldest_us is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of events. `states`: see `durables.durable_blocks`; `gone`: see `Evidence.trimmed_blocks`; `folded`
    and `counts`: see `durables.fold` and `durables.counts`."""

    states: DataFrame
    gone: DataFrame | None
    accounts: frames.Accounts
    folded: DataFrame
    counts: Fates


def _ended(evidence: Evidence, tables: frames.Small, nodes: DataFrame, reused: DataFrame | None) -> Ended:
    """`reused`: see `durables.durable_blocks`."""
    event_blocks = evidence.event_blocks(tables, nodes).persist()
    ends, gone = evidence.end_blocks(), evidence.trimmed_blocks(nodes)
    states = durables.durable_blocks(
        event_blocks, ends, tables.looked_at, tables.durables, reused, gone, tables.ranges
    ).persist()
    accounts = evidence.events_and_ends(states, tables, nodes)
    folded = durables.fold(
        states, accounts.events, ends_of(accounts, tables), tables.durables, tables.beginnings
    ).persist()
    return Ended(states, gone, accounts, folded, _counts(durables.counts(event_blocks, states, folded)))


def _write(parts: list[DataFrame], target: Folder) -> None:
    """The findings per delivery. Sorted by Spark, which has files for that: the driver counts them one by one, and
    neighbours are a range for it (`reconciliation.history.members`)."""
    target.make()
    if parts:
        findings = reduce(DataFrame.unionByName, parts).coalesce(1).sortWithinPartitions("class", "store", "eid")
        findings.write.partitionBy("class").parquet(target.url, mode="append")


def _no_outcomes(
    held_events: bool, extent: Extent, prefix: str, numberings: Iterable[Numbering]
) -> list[dict[str, Any]]:
    """Where there should be outcome records, and is none."""
    outcomes = extent.range_of(f"{prefix}.outcomes")
    held_some = held_events or (outcomes is not None and outcomes.end > 0)
    return [no_outcomes(prefix)] if held_some and not any(log.source == "outcomes" for log in numberings) else []


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


def _begun(spark: SparkSession, catalog: Catalog) -> DataFrame | None:
    rows = [(state.durable.store, state.durable.name, state.durable.journal) for state in catalog.durables]
    return frames.local_table(spark, rows, schemas.BEGUN) if rows else None


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
    if node is None or tally.node == node.name:
        return catalog.facts.checked(catalog.node_classes.checked(tally), None if node is None else node.kind)
    words = f"node {tally.node} where the store is of node {node.name}"
    checked = _checked(catalog, replace(tally, node=node.name))
    return replace(checked, mismatch="; ".join(filter(None, [checked.mismatch, words])))


def _counts(counted: DataFrame) -> Fates:
    counts: dict[tuple[int, str | None], dict[str, int]] = {}
    for row in counted.collect():
        counts.setdefault((row["store"], row["durable"]), {})[row["fate"]] = row["count"]
    return counts


def _trimmed(evidence: Evidence, ended: Ended, tables: frames.Small, catalog: Catalog) -> Fates:
    """What lies below the stores' first kept EIDs, as far as it is known."""
    has_trimmed = any(catalog.first_kept.values())
    return _counts(evidence.trimmed(ended.states, ended.gone, ended.accounts, tables)) if has_trimmed else {}


def _some(spark: SparkSession, rows: DataFrame, ddl: str) -> DataFrame | None:
    """None when there are none. Few, nearly always: then they are broadcast."""
    some = rows.take(frames.LOCAL_ROWS_MAX + 1)
    if not some:
        return None
    if len(some) > frames.LOCAL_ROWS_MAX:
        return rows
    return F.broadcast(frames.local_table(spark, [tuple(row) for row in some], ddl))


def _deliveries(
    spark: SparkSession, everything: DataFrame | None, tables: frames.Small, stores: Mapping[int, Place]
) -> tuple[DataFrame | None, DataFrame | None]:
    """What is wrong with deliveries, and the blocks of EIDs of which an answer named one that holds another event now;
    None when all deliveries agree."""
    if everything is None:
        return None, None
    suspects = _some(spark, blocks.suspects(everything, tables.runs).persist(), schemas.BLOCKS)
    if suspects is None:
        return None, None
    suspicious = blocks.within(everything, suspects).persist()
    findings = verdicts.overwritten(verdicts.verdicts(verdicts.fold(suspicious, tables.runs, tables.doubts)))
    lost = [(place.store, place.why) for place in stores.values() if place.standing == "lost"]
    if lost:
        findings = verdicts.explained(findings, frames.local_table(spark, lost, schemas.LOST))
    summed = verdicts.summed(findings).unionByName(verdicts.missing_records(suspicious, tables.runs)).persist()
    places = summed.where((F.col("class") == "P1") & F.col("eid").isNotNull())
    return summed, _some(spark, durables.blocks_of(places), schemas.PLACES)


def _findings(named: DataFrame | None, ended: Ended, tables: frames.Small, lossy: bool) -> list[DataFrame]:
    """Everything that is wrong with a delivery or an event; empty when it is known already that nothing is."""
    parts, accounts, fates = [] if named is None else [named], ended.accounts, ended.counts.values()
    if any(fate.get("skipped") for fate in fates):
        parts.append(durables.skipped(ended.folded, accounts.claims))
    if any(fate.get(durables.EARLY) for fate in fates):
        parts.append(durables.early(ended.folded))
    if lossy:
        parts.append(durables.lost(accounts.claims, ends_of(accounts, tables), tables.durables))
    return parts


def _full(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: finding.get(name) for name in schemas.FINDING_COLUMNS}
