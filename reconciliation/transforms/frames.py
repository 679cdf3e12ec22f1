"""The DataFrames of one reconciliation: landed Parquet and the catalog's small tables.

Rows of records and groups are kept once decoded; deliveries are unfolded from them on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from reconciliation.model import schemas
from reconciliation.model.ranges import Extent, Kind, kind_of
from reconciliation.model.runs import Numbering, Run
from reconciliation.model.state import CHAINED, Link
from reconciliation.model.withdrawn import Void, Withdrawn
from reconciliation.read.catalog import NEVER, Catalog, DurableState
from reconciliation.read.landing import Chain, Landed
from reconciliation.read.links import counting_records, folders_of
from reconciliation.read.standing import Place
from reconciliation.transforms import bases, claims, copies, decode

LOCAL_ROWS_MAX = 5_000
"""More places than these are looked for by Spark, and not by a table that the planner holds."""
Stretches = Mapping[tuple[str, int], Sequence[tuple[int, int]]]
"""By topic and partition, the first and the last offset of each."""


def local_table(spark: SparkSession, rows: Sequence[tuple[str | int | None, ...]], ddl: str) -> DataFrame:
    """Rows of text and numbers as a table that the planner holds itself: broadcasting it takes one task, and no Python
    where Spark's executors are. They come by Arrow: as literals of SQL, 3,000 rows took ten times as long to parse."""
    columns = cast(StructType, StructType.fromDDL(ddl))
    if not rows:
        return _empty(spark, columns)
    typed = zip(zip(*rows, strict=True), columns.fields, strict=True)
    arrays = [pa.array(column, to_arrow_type(field.dataType)) for column, field in typed]
    return spark.createDataFrame(pa.table(arrays, names=columns.names), columns)


def _empty(spark: SparkSession, columns: StructType) -> DataFrame:
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in columns.fields]
    return spark.range(1).select(nulls).where(F.lit(False))


def landed_records(spark: SparkSession, landed: Landed, kind: Kind) -> DataFrame:
    if landed.chain is not None and kind in CHAINED:
        return of_links(spark, landed.chain, landed.extent, kind)
    files = landed.files(kind)
    if files is None:
        return local_table(spark, [], schemas.RECORD_DDL)
    return spark.read.schema(schemas.RECORD_DDL).parquet(files.url)


def records_at(spark: SparkSession, landed: Landed, chain: Chain, kind: Kind, stretches: Stretches) -> DataFrame:
    """Of all that counts, the records at these offsets, from the links alone that have them."""
    rows = [(*place, *span) for place, spans in stretches.items() for span in spans]
    rows = [row for row in rows if kind_of(chain.prefix, row[0]) == kind]
    links = tuple(link for link in chain.links if any(_meets(link, *row) for row in rows))
    if not links:
        return local_table(spark, [], schemas.RECORD_DDL)
    records = of_links(spark, replace(chain, links=links), landed.extent, kind)
    near = records.where(F.col("offset").between(min(row[2] for row in rows), max(row[3] for row in rows)))
    within = F.broadcast(local_table(spark, rows, schemas.STRETCHES))
    same = (F.col("topic") == F.col("of_topic")) & (F.col("partition") == F.col("of_partition"))
    return near.join(within, same & F.col("offset").between(F.col("first"), F.col("last")), "left_semi")


def _meets(link: Link, topic: str, partition: int, first: int, last: int) -> bool:
    return any(
        (span.topic, span.partition) == (topic, partition) and span.first <= last and first < span.end
        for span in link.ranges
    )


def counting(links: Iterable[Link], extent: Extent) -> list[tuple[str, str, int, int]]:
    """(link, topic, partition, first): from that offset on the records of a link count (`schemas.COUNTING`)."""
    firsts = {(span.topic, span.partition): span.first for span in extent.ranges}
    return [
        (link.name, span.topic, span.partition, max(span.first, firsts[span.topic, span.partition]))
        for link in links
        for span in link.ranges
        if (span.topic, span.partition) in firsts
    ]


def of_links(spark: SparkSession, chain: Chain, extent: Extent, kind: Kind) -> DataFrame:
    """What each link has landed, as far as it counts: not what was read anew since, nor what the store has no more."""
    rows = [row for row in counting(chain.links, extent) if kind_of(chain.prefix, row[1]) == kind]
    folders = folders_of(chain.folder, chain.links, kind)
    if not rows or not folders:
        return local_table(spark, [], schemas.RECORD_DDL)
    return counting_records(spark, chain.folder, folders, local_table(spark, rows, schemas.COUNTING))


@dataclass(frozen=True, slots=True)
class Records:
    """Decoded records of the two accounts, cached; those of events as they were landed."""

    outcomes: DataFrame
    journal: DataFrame
    events: DataFrame


def decoded(landed: Callable[[Kind], DataFrame]) -> Records:
    """`landed`: the records of a kind."""
    return Records(
        decode.outcome_records(landed("outcomes")).persist(),
        decode.journal_records(landed("journal")).persist(),
        landed("events"),
    )


@dataclass(frozen=True, slots=True)
class Small:
    """What fits on the driver, as DataFrames to broadcast."""

    durables: DataFrame
    ranges: DataFrame
    runs: DataFrame
    doubts: DataFrame
    beginnings: DataFrame
    cells: DataFrame
    withdrawn: DataFrame | None
    """Ranges that commands ended; None when there are none."""
    voids: DataFrame | None
    """What the journal says that counts for no durable that there is: taken back, or of an earlier one; None: nothing
    is."""
    taken_back: DataFrame | None
    """Of that, what a seek or a truncation took back."""
    restarts: DataFrame | None
    """Of all that were deleted, sought or cut: from where on an event may have an end once more. None: nothing was."""
    looked_at: DataFrame | None
    """What commands ended, and what snapshots say has ended beside a whole journal; None when there is neither."""
    whole: bool
    """What the journal does not say has not been."""


def small(
    spark: SparkSession,
    catalog: Catalog,
    runs: list[Run],
    doubts: list[Doubt],
    beginnings: list[tuple[str, int]],
    evicted: Mapping[int, int],
    commanded: Withdrawn,
) -> Small:
    """`beginnings`: where in the journal each run began. `evicted`: store -> the EID below which everything was given
    up because it was full."""
    kept = catalog.first_kept
    durables = [
        (
            s.durable.store,
            s.durable.node,
            s.durable.name,
            s.durable.start,
            _mark(s, commanded, catalog.journal_torn),
            kept[s.durable.store],
            evicted.get(s.durable.store, 0),
            *_known(s, commanded),
        )
        for s in catalog.durables
    ]
    ended = _terminal_ranges(catalog, commanded)
    looked_at = [*commanded.ranges, *(ended if catalog.journal_whole else ())]
    return Small(
        local_table(spark, durables, schemas.DURABLES),
        local_table(spark, ended, schemas.RANGES),
        local_table(spark, [(run.name, run.low, run.state, run.base) for run in runs], schemas.RUNS),
        local_table(spark, doubts, schemas.DOUBTS),
        local_table(spark, beginnings, schemas.BEGINNINGS),
        local_table(spark, catalog.cells, schemas.CELLS),
        local_table(spark, commanded.ranges, schemas.RANGES) if commanded.ranges else None,
        _voids(spark, commanded.voids + commanded.over),
        _voids(spark, commanded.voids),
        _voids(spark, commanded.voids + commanded.lives),
        local_table(spark, looked_at, schemas.RANGES) if looked_at else None,
        catalog.journal_whole,
    )


def _voids(spark: SparkSession, voids: Sequence[Void]) -> DataFrame | None:
    return local_table(spark, voids, schemas.VOIDS) if voids else None


def stores(spark: SparkSession, places: Mapping[int, Place], catalog: Catalog) -> DataFrame:
    """The stores that something was accepted in, with what was read of them."""
    rows: list[tuple[str | int | None, ...]] = []
    for place in places.values():
        node = catalog.nodes.get(place.store)
        if node is None:
            rows.append((place.store, place.node, None, None, place.standing, None, None, place.kind))
            continue
        adopted_us = node.created_us if node.adopted else None
        row = (place.store, node.name, node.topic, node.partition, place.standing, catalog.first_kept[place.store])
        rows.append((*row, adopted_us, node.kind))
    return local_table(spark, rows, schemas.NODES)


def hidden(spark: SparkSession, catalog: Catalog, extent: Extent) -> DataFrame | None:
    """(store, hidden_first, hidden_end): the EIDs that could not be read; None: all could."""
    nodes = catalog.nodes.items()
    rows = [(store, *offsets) for store, node in nodes for offsets in extent.hidden(node.topic, node.partition)]
    return local_table(spark, rows, schemas.HIDDEN) if rows else None


Doubt = tuple[str, int, int, "int | None"]
"""Run, torn, in_journal, journal_until: see `transforms.verdicts.fold`."""


def doubts(numberings: Iterable[Numbering], torn: frozenset[str], journal_unread: bool) -> list[Doubt]:
    """`torn`: runs of which outcome records are missing."""
    known = list(numberings)
    in_journal = {log.run: log.at_read for log in known if log.source == "journal" and log.run is not None}
    names = sorted({log.run for log in known if log.run is not None})
    until = {name: (in_journal.get(name) or 0) if journal_unread else None for name in names}
    return [(name, int(name in torn), int(name in in_journal), until[name]) for name in names]


def _known(state: DurableState, commanded: Withdrawn) -> tuple[int, int] | tuple[None, None]:
    """The `low` of its snapshot, and as of where in the journal that is. A seek, or a store that became shorter, took
    ends back, perhaps some of its own journal record. A durable of which it is not known where in the journal it began
    may have the ends of an earlier one of its name."""
    durable, snapshot = state.durable, state.snapshot
    place = durable.store, durable.name
    is_renamed = not durable.journal and any(life[:2] == place for life in commanded.lives)
    if snapshot is None or is_renamed or place in commanded.seeks or place in commanded.cuts:
        return None, None
    return snapshot.low, snapshot.journal


def _moved(state: DurableState, commanded: Withdrawn) -> int | None:
    """Where a command moved the durable's place that its snapshot knows nothing of."""
    seek = commanded.seeks.get((state.durable.store, state.durable.name))
    if seek is None or (state.snapshot is not None and state.snapshot.journal > seek[0]):
        return None
    return seek[1]


def _mark(state: DurableState, commanded: Withdrawn, journal_torn: bool) -> int:
    """Below it everything is claimed to be terminal. The consumer group may still show the place before a seek, or
    before the store became shorter; where part of the journal cannot be decoded, nothing shows that it is wrong."""
    place = (state.durable.store, state.durable.name)
    moved = _moved(state, commanded)
    if moved is not None:
        return moved
    low = commanded.standing(place, state.low, state.snapshot.journal if state.snapshot else 0)
    if state.position is None or place in commanded.seeks or journal_torn:
        return low
    return max(low, commanded.standing(place, state.position, state.projected))


def _terminal_ranges(catalog: Catalog, commanded: Withdrawn) -> list[tuple[int, str, int, int]]:
    """What snapshots say is terminal. While the whole journal is there, it has to say so itself below `low`."""
    ranges = []
    for state in catalog.durables:
        if state.snapshot is None or _moved(state, commanded) is not None:
            continue
        place = store, name = state.durable.store, state.durable.name
        below = commanded.standing(place, NEVER, state.snapshot.journal)
        acked = [*state.snapshot.acked]
        if not catalog.journal_whole and state.snapshot.low > state.durable.start:
            acked.append((state.durable.start, state.snapshot.low - 1))
        ranges += [(store, name, first, min(last, below - 1)) for first, last in acked if first < below]
    return ranges


@dataclass(frozen=True, slots=True)
class Accounts:
    """The same deliveries as told, as stored and as ended for a durable that there is; beside them the groups of
    outcomes, all that the journal settles (`settled`), and the copies that it tells of."""

    groups: DataFrame
    claims: DataFrame
    events: DataFrame
    terminals: DataFrame
    settled: DataFrame
    copied: DataFrame
    all: DataFrame
    older: DataFrame | None
    """Events of whose publishing the evidence was trimmed; None when none was."""
    has_outcomes: bool = True
    """Whether any outcome record was read."""
    looked_at: DataFrame | None = None
    """(store, block): of these blocks of EIDs alone the claims and ends are; None: of all."""


def groups_of(outcomes: DataFrame, tables: Small, since: int | None) -> DataFrame:
    """Of all outcomes that are judged. `since`: when the first that is kept was written; None: all are kept."""
    groups = decode.outcome_groups(outcomes)
    return groups if since is None else bases.judged_groups(groups, tables.runs)


def with_facts(groups: DataFrame, cells: DataFrame) -> DataFrame:
    """With what the rule of the cell says of a failed attempt, and the cell of a transaction."""
    facts = cells.select("digest", "table", "cell", "then_failed", "transacted")
    return groups.join(F.broadcast(facts), ["digest", "table", "cell"], "left")


def accounts(
    spark: SparkSession, extent: Extent, evidence: Records, tables: Small, nodes: DataFrame, catalog: Catalog,
    since: int | None,
) -> Accounts:  # fmt: skip
    """`nodes`: see `stores`."""
    unread = hidden(spark, catalog, extent)
    groups = with_facts(groups_of(evidence.outcomes, tables, since), tables.cells)
    outcomes = claims.claims(decode.deliveries(groups), nodes, unread)
    events = decode.events(evidence.events, nodes)
    if catalog.has_adopted:
        events = decode.of_earlier_life(events, tables.doubts)
    events = events.persist()
    settled = decode.settlements(evidence.journal)
    terminals = decode.terminals(settled)
    standing = terminals if tables.voids is None else decode.standing(terminals, tables.voids)
    stored, ended, older = events, settled, None
    if since is not None:
        stored = bases.with_judged(events, tables.runs, bases.first_judged(events, tables.runs), since)
        older = stored.where(~F.col("judged") & ~F.col("copy") & ~F.col("native"))
        stored = stored.where("judged")
        ended = bases.with_judged(settled, tables.runs, None, since).where("judged")
    together = outcomes.unionByName(claims.stored_events(stored), allowMissingColumns=True)
    together = together.unionByName(claims.ended(ended), allowMissingColumns=True)
    return Accounts(groups, outcomes, events, standing, settled, copies.recorded(settled), together, older)
