"""The same answers from the partial aggregates of all links, and from the rows of the few blocks that need them.

A block needs its rows where the accounts disagree in it, where a threshold cuts through it, or where something in it
has to be named. Whatever else is not plain is not answered: RowsNeededError, and all rows are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.jobs.evidence import ALL, Fates, ends_of
from reconciliation.jobs.kept_sums import Kept
from reconciliation.model import run_sums, schemas
from reconciliation.model.acts import Act
from reconciliation.model.ranges import NO_END, Extent, Kind
from reconciliation.model.run_sums import RowsNeededError
from reconciliation.model.runs import Numbering
from reconciliation.model.window import Window
from reconciliation.model.withdrawn import merged
from reconciliation.read.catalog import Catalog
from reconciliation.read.landing import Chain, Landed
from reconciliation.read.standing import Mention
from reconciliation.transforms import added, blocks, copies, decode, durables, frames, tallies
from reconciliation.transforms import runs as run_transforms

BLOCKS_MAX = 1_000
"""More are not looked at one by one: then all rows are read."""


def check(extent: Extent, catalog: Catalog, window: Window) -> None:
    """Raises RowsNeededError where it is known at once that the partial aggregates cannot tell."""
    reasons = {
        "only a part of the time is asked for": window != Window(),
        "some records could not be read": bool(extent.unread),
        "a node's topic was there before it": catalog.has_adopted,
        "the evidence does not begin at its beginning": bool(catalog.outcomes_first or catalog.journal_first),
    }
    for reason, holds in reasons.items():
        if holds:
            raise RowsNeededError(reason)


class BySums:
    """What is asked of sums that are not there is known without Spark."""

    is_quick = True

    def __init__(self, spark: SparkSession, landed: Landed, chain: Chain, catalog: Catalog, kept: Kept) -> None:
        self.rows, self._sums, self._names = kept.rows, kept.sums, kept.names
        self._spark, self._landed, self._chain, self._catalog = spark, landed, chain, catalog
        self._has_trimmed = any(catalog.first_kept.values())

    def numberings(self, before: int, hidden_from: int, young: int) -> list[Numbering]:
        if hidden_from != NO_END:
            raise RowsNeededError("some of the journal could not be read")
        notes = run_transforms.added_notes(added.partials(self._sums, "notes"), before, young).collect()
        parts = added.partials(self._sums, "runs").collect()
        return run_sums.added(parts, {row["run"]: row for row in notes})

    def holes(self, numberings: Iterable[Numbering], since: int | None) -> list[dict[str, Any]]:
        if since is not None or any(log.has_holes(since) for log in numberings):
            raise RowsNeededError("records are missing")
        return []

    def acts(self, window: Window = ALL) -> list[Act]:
        assert window == ALL, "sums tell of all the time (`check`)"
        return [Act.of(row) for row in added.acts(self._sums).collect()] if "acts" in self._names else []

    def mentions(self, begun: DataFrame | None) -> list[Mention]:
        rows = added.mentions(self._sums, begun).collect()
        if any(row["cut"] for row in rows):
            raise RowsNeededError("a durable was made again")
        return [Mention(row["store"], row["durable"], row["node"], row["last"], row["ended"]) for row in rows]

    def tallied(self, tables: frames.Small, window: Window, since: int | None) -> DataFrame:
        return tallies.added(added.partials(self._sums, "tallies"))

    def deliveries(self, tables: frames.Small, nodes: DataFrame, since: int | None) -> DataFrame | None:
        if nodes.where(F.col("standing") == "unseen").take(1):
            raise RowsNeededError("a store could not be read")
        if tables.voids is not None and added.void(self._sums, tables.voids).take(1):
            raise RowsNeededError("some ends in the journal do not count any more")
        rows = self._doubtful(tables, nodes)
        if not rows:
            return None
        doubtful = F.broadcast(frames.local_table(self._spark, rows, schemas.BLOCKS))
        accounts = self._accounts(added.places_of_blocks(self._sums, nodes, doubtful), tables, nodes)
        everything = accounts.all.unionByName(blocks.expected(tables.runs), allowMissingColumns=True)
        return blocks.within(everything, doubtful)

    def _doubtful(self, tables: frames.Small, nodes: DataFrame) -> list[tuple[Any, ...]]:
        """(run, block)."""
        cells, has_trimmed = tables.cells, self._has_trimmed
        doubtful = added.doubtful_blocks(self._sums, tables.runs, nodes, cells, has_trimmed=has_trimmed)
        rows = {*self._few(doubtful, "run", "block")}
        differing = sorted({run for run, block in rows if block == added.SOME})
        if differing:
            rows |= {*self._few(added.differing_blocks(self._sums, nodes, cells, differing), "run", "block")}
        return sorted(row for row in rows if row[1] != added.SOME)

    def event_blocks(self, tables: frames.Small, nodes: DataFrame) -> DataFrame:
        parts = added.event_parts(self._sums, nodes)
        if self._has_trimmed:
            cut = self._records_at(self._stretches(added.cut_places(self._sums, nodes)))("events")
            parts = parts.unionByName(durables.event_parts(decode.events(cut, nodes)))
        return durables.event_blocks(parts, tables.beginnings)

    def trimmed_blocks(self, nodes: DataFrame) -> DataFrame | None:
        return added.trimmed_blocks(self._sums, nodes).persist() if self._has_trimmed else None

    def end_blocks(self) -> DataFrame:
        return added.end_blocks(self._sums)

    def events_and_ends(self, states: DataFrame, tables: frames.Small, nodes: DataFrame) -> frames.Accounts:
        suspect = states.where(F.col("kind") == "suspect").select("store", "block")
        wanted = suspect.unionByName(added.blocks_with_reasons(self._sums))
        if self._has_trimmed:
            wanted = wanted.unionByName(added.cut_blocks(nodes))
        rows = self._few(wanted.distinct(), "store", "block")
        doubtful = F.broadcast(frames.local_table(self._spark, rows, schemas.PLACES))
        places = added.places_of_eids(self._sums, nodes, doubtful).unionByName(added.places_of_links(self._sums))
        if self._has_trimmed:
            places = places.unionByName(added.places_of_publishes(self._sums, nodes, doubtful))
        accounts = self._accounts(places, tables, nodes)
        if not self._has_trimmed:
            return accounts
        return replace(
            accounts,
            claims=durables.within(accounts.claims, doubtful),
            terminals=durables.within(accounts.terminals, doubtful),
            looked_at=doubtful,
        )

    def trimmed(
        self, states: DataFrame, gone: DataFrame | None, accounts: frames.Accounts, tables: frames.Small
    ) -> DataFrame:
        assert gone is not None and accounts.looked_at is not None, "some store has lost its beginning"
        rows = durables.trimmed(accounts.claims, ends_of(accounts, tables), tables.durables)
        return added.trimmed(gone, states, accounts.looked_at, rows)

    def copies(self, accounts: frames.Accounts, nodes: DataFrame) -> DataFrame:
        if not self._names & {"copied", "held"}:
            return frames.local_table(self._spark, [], schemas.COPIES_COMPARED)
        if self._has_trimmed and added.has_cut_copies(self._sums, nodes):
            raise RowsNeededError("copies were trimmed")
        return added.copies(self._sums, nodes)

    def differing_copies(self, accounts: frames.Accounts, stores: DataFrame) -> DataFrame:
        raise RowsNeededError("copies differ from what the journal tells")

    def letters_left_out(self, due: DataFrame, tables: frames.Small, nodes: DataFrame) -> DataFrame | None:
        rows = self._few(added.blocks_kept_nowhere(self._sums, due), "store", "block")
        if not rows:
            return None
        of_letters = F.broadcast(frames.local_table(self._spark, rows, schemas.PLACES))
        accounts = self._accounts(added.places_of_eids(self._sums, nodes, of_letters), tables, nodes)
        return copies.left_out(accounts.settled, accounts.events, due)

    def check(self, counts: Fates) -> None:
        if any(fates.get("skipped") for fates in counts.values()):
            raise RowsNeededError("events below a mark have no end")

    def _few(self, wanted: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
        rows = [tuple(row[name] for name in columns) for row in wanted.take(BLOCKS_MAX + 1)]
        if len(rows) > BLOCKS_MAX or any(None in row for row in rows):
            raise RowsNeededError("too much has to be looked at")
        return rows

    def _accounts(self, places: DataFrame, tables: frames.Small, nodes: DataFrame) -> frames.Accounts:
        """From the rows of these places alone."""
        stretches = self._stretches(places)
        records = frames.decoded(self._records_at(stretches))
        accounts = frames.accounts(self._spark, self._landed.extent, records, tables, nodes, self._catalog, None)
        return replace(accounts, has_outcomes=(f"{self._chain.prefix}.outcomes", 0) in stretches)

    def _stretches(self, places: DataFrame) -> frames.Stretches:
        spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for row in places.distinct().collect():
            spans.setdefault((row["topic"], row["partition"]), []).append((row["offset_first"], row["offset_last"]))
        return {place: merged(ranges) for place, ranges in spans.items()}

    def _records_at(self, stretches: frames.Stretches) -> Callable[[Kind], DataFrame]:
        """By kind, the records that are there."""

        def of_places(kind: Kind) -> DataFrame:
            return frames.records_at(self._spark, self._landed, self._chain, kind, stretches)

        return of_places
