"""The job: read, transform, write. Four questions to Spark: the runs, the tallies, the durables' counts, the findings.

May import: pyspark, `reconciliation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation import frames, schemas
from reconciliation.catalog import Catalog, read_catalog
from reconciliation.landing import Landed
from reconciliation.runs import Numbering, Run, hole_finding, numbering_findings, runs_of
from reconciliation.settings import Realm
from reconciliation.tally import Tally, tally_findings
from reconciliation.transforms import blocks, decode, durables, tallies, verdicts
from reconciliation.transforms import runs as run_transforms
from reconciliation.window import Window

Counts = dict[tuple[int, str | None], dict[str, int]]
"""By (store, durable or None): fate -> events."""
Trimmed = dict[tuple[int, str | None], int]


@dataclass(slots=True)
class Judgement:
    """What the job found, but for the findings that Spark wrote below `written`."""

    catalog: Catalog
    runs: list[Run]
    tallies: list[Tally]
    counts: Counts
    trimmed: Trimmed
    findings: list[dict[str, Any]]
    written: Path
    records: dict[str, int] = field(default_factory=dict)


def judge(
    spark: SparkSession, landed: Landed, realm: Realm, window: Window, target: Path, tell: Callable[[str], None]
) -> Judgement:
    """Everything about the landed range. Findings per delivery are written as Parquet below `target`, by class."""
    catalog = read_catalog(landed, realm)
    records = frames.records(spark, landed)
    tell("reading outcome records and the journal")
    numberings = [Numbering.of(row) for row in run_transforms.numbering(records.outcomes, records.journal).collect()]
    runs = runs_of(numberings)
    found = numbering_findings(numberings, catalog.digests) + _holes(records, numberings)
    found += [{"class": "Q1", "count": 1, "detail": text} for text in catalog.unreadable]
    tables = frames.small(spark, catalog, runs)
    tell("checking outcomes against the rules")
    tallied = _tallies(records, tables, window)
    found += tally_findings(tallied)
    tell("comparing publishes with events, and acknowledgements with the journal")
    accounts = frames.accounts(spark, landed, records, tables)
    event_blocks = durables.event_blocks(accounts.events).persist()
    states = durables.durable_blocks(event_blocks, accounts.terminals, tables.durables).persist()
    folded = durables.fold(states, accounts.events, accounts.terminals, tables.durables, tables.ranges).persist()
    counts = _counts(durables.counts(event_blocks, states, folded))
    trimmed = _trimmed(accounts, tables, catalog)
    tell("naming what does not agree")
    per_delivery = _findings(accounts, tables, folded, lossy=bool(trimmed))
    per_delivery.repartition(1, "class").write.partitionBy("class").parquet(str(target))
    totals = {f"{one.source} records": one.records for one in numberings if one.run is not None}
    return Judgement(catalog, runs, tallied, counts, trimmed, [_full(one) for one in found], target, totals)


def _holes(records: frames.Records, numberings: Iterable[Numbering]) -> list[dict[str, Any]]:
    found = []
    for source, frame, first in (("outcomes", records.outcomes, 1), ("journal", records.journal, None)):
        broken = {one.run: one.at_last for one in numberings if one.source == source and one.run and one.has_holes}
        if broken:
            rows = run_transforms.missing_numbers(frame, sorted(broken), first).collect()
            found += [hole_finding(source, row["run"], row["first"], row["last"], broken[row["run"]]) for row in rows]
    return found


def _tallies(records: frames.Records, tables: frames.Small, window: Window) -> list[Tally]:
    groups = decode.outcome_groups(records.outcomes)
    judged = tallies.judged(tallies.tallies(groups, window.since, window.until), tables.cells)
    return [Tally.of(row) for row in judged.collect()]


def _counts(counted: DataFrame) -> Counts:
    counts: Counts = {}
    for row in counted.collect():
        counts.setdefault((row["store"], row["durable"]), {})[row["fate"]] = row["count"]
    return counts


def _trimmed(accounts: frames.Accounts, tables: frames.Small, catalog: Catalog) -> Trimmed:
    """How many publishes that were answered stored lie below their store's first kept EID."""
    if not any(catalog.first_kept.values()):
        return {}
    counted = durables.trimmed(accounts.claims, tables.durables).collect()
    return {(row["store"], row["durable"]): row["count"] for row in counted}


def _findings(accounts: frames.Accounts, tables: frames.Small, folded: DataFrame, *, lossy: bool) -> DataFrame:
    everything = accounts.all.unionByName(blocks.expected(tables.runs), allowMissingColumns=True)
    suspects = blocks.suspects(everything, tables.runs).persist()
    suspicious = blocks.within(everything, suspects)
    found = verdicts.verdicts(verdicts.fold(suspicious, tables.runs))
    events = suspicious.where(F.col("what") == "event")
    parts = [
        verdicts.overwritten(found, events),
        verdicts.missing_records(suspicious, tables.runs),
        durables.skipped(folded, accounts.claims),
    ]
    if lossy:
        parts.append(durables.lost(accounts.claims, accounts.terminals, tables.durables, tables.ranges))
    together = parts[0]
    for part in parts[1:]:
        together = together.unionByName(part)
    return together.select(*schemas.FINDING_COLUMNS)


def _full(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: finding.get(name) for name in schemas.FINDING_COLUMNS}
