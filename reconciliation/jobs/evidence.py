"""What the job asks of the evidence, and the answers from all rows. From partial aggregates: `jobs.by_sums`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from reconciliation.model.acts import Act
from reconciliation.model.ranges import Kind
from reconciliation.model.runs import Numbering, hole_finding
from reconciliation.model.window import Window
from reconciliation.read.catalog import Catalog
from reconciliation.read.landing import Landed
from reconciliation.read.standing import Mention
from reconciliation.transforms import blocks, copies, decode, durables, frames, tallies
from reconciliation.transforms import runs as run_transforms
from reconciliation.transforms.finding_rows import inside

ALL = Window()
Fates = Mapping[tuple[int, str | None], Mapping[str, int]]
"""By (store, durable or None): fate -> events."""


def ends_of(accounts: frames.Accounts, tables: frames.Small) -> durables.Ends:
    return durables.Ends(accounts.terminals, tables.ranges, tables.withdrawn, tables.looked_at, tables.whole)


class Evidence(Protocol):
    """`accounts` hold the rows that are looked at one by one: all, or those of the blocks that need it. `is_quick`:
    questions that do not need each other's answers may be asked at once."""

    is_quick: bool

    def numberings(self, before: int, hidden_from: int, young: int) -> list[Numbering]: ...

    def holes(self, numberings: Iterable[Numbering], since: int | None) -> list[dict[str, Any]]: ...

    def acts(self, window: Window = ALL) -> list[Act]:
        """Of what the journal says inside the window: a sum has no time of its own."""

    def mentions(self, begun: DataFrame | None) -> list[Mention]: ...

    def tallied(self, tables: frames.Small, window: Window, since: int | None) -> DataFrame: ...

    def deliveries(self, tables: frames.Small, nodes: DataFrame, since: int | None) -> DataFrame | None:
        """Of all that belongs to deliveries what may have to be folded; None: it is known that nothing has."""

    def event_blocks(self, tables: frames.Small, nodes: DataFrame) -> DataFrame: ...

    def trimmed_blocks(self, nodes: DataFrame) -> DataFrame | None:
        """See `durables.durable_blocks`."""

    def end_blocks(self) -> DataFrame: ...

    def events_and_ends(self, states: DataFrame, tables: frames.Small, nodes: DataFrame) -> frames.Accounts:
        """`states`: see `durables.durable_blocks`."""

    def trimmed(
        self, states: DataFrame, gone: DataFrame | None, accounts: frames.Accounts, tables: frames.Small
    ) -> DataFrame:
        """As `durables.trimmed` has it, where some store has lost its beginning. `gone`: see `trimmed_blocks`."""

    def copies(self, accounts: frames.Accounts, nodes: DataFrame) -> DataFrame: ...

    def differing_copies(self, accounts: frames.Accounts, stores: DataFrame) -> DataFrame: ...

    def letters_left_out(self, due: DataFrame, tables: frames.Small, nodes: DataFrame) -> DataFrame | None:
        """As `copies.left_out` has it; None: it is known that there are none."""

    def check(self, counts: Fates) -> None:
        """Raises RowsNeededError where what is there cannot tell what has to be told of these."""


class ByRows:
    """All of it."""

    is_quick = False

    def __init__(self, spark: SparkSession, landed: Landed, catalog: Catalog) -> None:
        def of_chain(kind: Kind) -> DataFrame:
            return frames.landed_records(spark, landed, kind)

        self._spark, self._extent, self._catalog = spark, landed.extent, catalog
        self._records = frames.decoded(of_chain)
        self._accounts: frames.Accounts | None = None

    def numberings(self, before: int, hidden_from: int, young: int) -> list[Numbering]:
        numbered = run_transforms.numbering(self._records.outcomes, self._records.journal, before, hidden_from, young)
        return [Numbering.of(row) for row in numbered.collect()]

    def holes(self, numberings: Iterable[Numbering], since: int | None) -> list[dict[str, Any]]:
        holes = []
        torn = [log for log in numberings if log.run is not None and log.has_holes(since)]
        whole, cut = ([log for log in torn if log.is_cut(since) is is_cut] for is_cut in (False, True))
        outcomes, journal = self._records.outcomes, self._records.journal
        looks = (("outcomes", whole, outcomes, 1), ("outcomes", cut, outcomes, None))
        for source, those, frame, first in (*looks, ("journal", torn, journal, None)):
            broken = {log.run: log.at_last for log in those if log.source == source and log.run is not None}
            if broken:
                rows = run_transforms.missing_numbers(frame, sorted(broken), first).collect()
                holes += [
                    hole_finding(source, row["run"], row["first"], row["last"], broken[row["run"]]) for row in rows
                ]
        return holes

    def acts(self, window: Window = ALL) -> list[Act]:
        journal = self._records.journal
        those = journal if window == ALL else journal.where(inside("at", window.since, window.until))
        return [Act.of(row) for row in decode.acts(those).collect()]

    def mentions(self, begun: DataFrame | None) -> list[Mention]:
        return [Mention(**row.asDict()) for row in decode.mentions(self._records.journal, begun).collect()]

    def tallied(self, tables: frames.Small, window: Window, since: int | None) -> DataFrame:
        groups = frames.groups_of(self._records.outcomes, tables, since)
        return tallies.tallies(groups, window.since, window.until)

    def deliveries(self, tables: frames.Small, nodes: DataFrame, since: int | None) -> DataFrame:
        accounts = frames.accounts(self._spark, self._extent, self._records, tables, nodes, self._catalog, since)
        self._accounts = accounts
        return accounts.all.unionByName(blocks.expected(tables.runs), allowMissingColumns=True)

    def event_blocks(self, tables: frames.Small, nodes: DataFrame) -> DataFrame:
        return durables.event_blocks(durables.event_parts(self._all().events), tables.beginnings)

    def trimmed_blocks(self, nodes: DataFrame) -> DataFrame | None:
        return None

    def end_blocks(self) -> DataFrame:
        return durables.end_blocks(self._all().terminals)

    def events_and_ends(self, states: DataFrame, tables: frames.Small, nodes: DataFrame) -> frames.Accounts:
        return self._all()

    def trimmed(
        self, states: DataFrame, gone: DataFrame | None, accounts: frames.Accounts, tables: frames.Small
    ) -> DataFrame:
        return durables.trimmed(accounts.claims, ends_of(accounts, tables), tables.durables)

    def _all(self) -> frames.Accounts:
        assert self._accounts is not None, "deliveries are the first question"
        return self._accounts

    def copies(self, accounts: frames.Accounts, nodes: DataFrame) -> DataFrame:
        return copies.compared(accounts.copied, copies.held(accounts.events))

    def differing_copies(self, accounts: frames.Accounts, stores: DataFrame) -> DataFrame:
        return copies.differing(accounts.copied, copies.held(accounts.events), stores)

    def letters_left_out(self, due: DataFrame, tables: frames.Small, nodes: DataFrame) -> DataFrame | None:
        return copies.left_out(self._all().settled, self._all().events, due)

    def check(self, counts: Fates) -> None:
        """Rows tell all."""
