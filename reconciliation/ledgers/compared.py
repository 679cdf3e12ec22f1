"""All questions to the ledgers of clients: findings as Parquet, and a count of what was compared and what was not.

Ledgers are read first, then the stores as they are by then, and outcome records as they were landed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.ledgers import checks, lines, messages
from reconciliation.ledgers.recorded import Recorded, recorded
from reconciliation.model.folder import Folder
from reconciliation.model.runs import Run, began_ms
from reconciliation.model.settings import Realm
from reconciliation.read.catalog import NEVER, Catalog
from reconciliation.read.landing import Landed
from reconciliation.transforms.frames import landed_records, local_table

GRACE_US = 5_000_000
"""While a gateway lives, what is younger may not have its outcome record yet; a killed one may have taken as much with
it."""
_NODES = "node string, unread boolean, oldest bigint, created bigint"
_STORES = "store bigint, node string, `first` bigint, unread boolean"


@dataclass(frozen=True, slots=True)
class Compared:
    """`steps`: lines by what they say. `left`: how many could not be compared, by why."""

    ledgers: str
    clients: int
    steps: Mapping[str, int]
    unreadable: int
    left: Mapping[str, int] = field(default_factory=dict)

    @property
    def reasons(self) -> list[str]:
        """What could not be compared, each with its number."""
        return [f"{count:,} {why}" for why, count in sorted(self.left.items())]


@dataclass(frozen=True, slots=True)
class Request:
    """`ledgers`: where they are. `scratch`: where messages are kept meanwhile, and removed. `target`: where findings
    go, by class. `now_us`: when the records were landed, in microseconds since 1970. `since`: outcome records are kept
    from that time on; None: all. `is_whole`: none is missing besides."""

    spark: SparkSession
    realm: Realm
    landed: Landed
    catalog: Catalog
    runs: Sequence[Run]
    ledgers: Folder
    scratch: Folder
    target: Folder
    now_us: int
    since: int | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Stores:
    """What is known of the stores, and how far they could be read. `former`: by store, the node of it, of those that
    some outcome names and that are no more or could not be read. `torn`: nodes with messages whose sections could not
    be walked."""

    catalog: Catalog
    stored: messages.Messages
    former: Mapping[int, str]
    torn: frozenset[str]

    @classmethod
    def of(cls, catalog: Catalog, stored: messages.Messages, kept: Recorded) -> Stores:
        named = kept.stores.where(~F.col("store").isin([*catalog.nodes])).collect()
        torn = stored.rows.where(~F.col("is_read")).select("node").distinct().collect()
        former = {row["store"]: row["node"] for row in named}
        return cls(catalog, stored, former, frozenset(row["node"] for row in torn))

    def first(self, store: int) -> int:
        """Its first offset that is kept."""
        node = self.catalog.nodes[store]
        span = self.stored.extent.range_of(node.topic, node.partition)
        return span.first if span is not None else 0

    def is_hidden(self, store: int) -> bool:
        """Some of it could not be read, when the records were landed or now."""
        node, extent = self.catalog.nodes[store], self.stored.extent
        is_gone = extent.range_of(node.topic, node.partition) is None
        return is_gone or store in self.catalog.hidden or bool(extent.hidden(node.topic, node.partition))

    @property
    def is_whole(self) -> bool:
        """All that was ever stored can be read: a message-id that is missing then is missing."""
        catalog = self.catalog
        if catalog.absent or catalog.outcomes_first or self.former or self.torn:
            return False
        return not any(self.is_hidden(store) or self.first(store) for store in catalog.nodes)


def compare(request: Request) -> tuple[Compared, list[dict[str, Any]]]:
    """What was compared, and the findings that are not of one message."""
    spark, catalog = request.spark, request.catalog
    noted = lines.read(spark, request.ledgers)
    stored = messages.read(spark, request.realm, catalog.nodes, request.scratch)
    kept = recorded(spark, landed_records(spark, request.landed, "outcomes"), catalog)
    known = Stores.of(catalog, stored, kept)
    stores, others = _stores(spark, known), _others(spark, noted, known)
    places = checks.places_of(stored.rows).persist()
    sent = checks.messages_of(noted, stored.rows, kept, _nodes(spark, known)).persist()
    given = checks.received(noted, stored.rows, places, stores, others).persist()
    settled = checks.settled(noted, places, stores, kept, _certain(request))
    questions = [
        checks.is_lost(sent),
        checks.is_told_otherwise(sent),
        checks.is_sent_body_stored(sent),
        checks.is_given_otherwise(given, known.is_whole, request.now_us),
        checks.is_given_body_stored(given),
        checks.is_settled_otherwise(settled),
    ]
    answers = reduce(DataFrame.unionByName, questions).persist()
    _write(request.target, answers.where(F.col(checks.WHY_NOT).isNull()).drop(checks.WHY_NOT))
    reasons = answers.where(F.col(checks.WHY_NOT).isNotNull()).groupBy(checks.WHY_NOT).count().collect()
    left = {row[checks.WHY_NOT]: row["count"] for row in reasons}
    return Compared(str(request.ledgers), noted.clients, noted.counts, noted.unreadable, left), [*noted.findings()]


def _write(target: Folder, rows: DataFrame) -> None:
    target.make()
    rows = rows.coalesce(1).sortWithinPartitions("class", "store", "eid", "detail")
    rows.write.partitionBy("class").parquet(target.url, mode="append")


def _stores(spark: SparkSession, known: Stores) -> DataFrame:
    rows = [
        (store, node.name, known.first(store), known.is_hidden(store)) for store, node in known.catalog.nodes.items()
    ]
    return local_table(spark, rows, _STORES)


def _others(spark: SparkSession, noted: lines.Lines, known: Stores) -> DataFrame:
    """Stores that are not read. Where old outcomes are trimmed, all that a tag names may have been one."""
    if known.catalog.outcomes_first:
        named = noted.of("received").where(F.col("store").isNotNull()).select("store").distinct()
        return named.where(~F.col("store").isin([*known.catalog.nodes]))
    return local_table(spark, [(store,) for store in sorted({*known.former, *known.catalog.absent})], "store bigint")


def _nodes(spark: SparkSession, known: Stores) -> DataFrame:
    """By node: whether some of it could not be read, and when what its stores keep begins."""
    catalog, oldest = known.catalog, dict[str, int]()
    unread = {*known.torn, *(node.name for node, _ in catalog.absent.values())}
    begins = {row["store"]: row["at"] for row in known.stored.rows.groupBy("store").agg(_first_at()).collect()}
    for store, node in catalog.nodes.items():
        if known.is_hidden(store):
            unread.add(node.name)
        elif known.first(store):
            oldest[node.name] = max(oldest.get(node.name, 0), begins.get(store, NEVER))
    had_another, created = {*known.former.values()}, {node.name: node.created_us for node in catalog.nodes.values()}
    rows = [
        (name, name in unread, oldest.get(name), at if name in had_another else None)
        for name, at in sorted(created.items())
    ]
    return local_table(spark, rows, _NODES)


def _first_at() -> Column:
    """The time of a plain producer's record is whatever that says."""
    return F.coalesce(F.min(F.when(F.col("run").isNotNull(), F.col("at"))), F.lit(NEVER)).alias("at")


def _certain(request: Request) -> Column:
    """Of a line of a consumer: its client closed in order behind it, and no record of that time may be missing."""
    runs, since = request.runs, request.since
    if not request.is_whole:
        return F.lit(False)
    landed = F.col("closed_at") <= request.now_us
    certain = F.coalesce((F.col("closed_at") >= F.col("at")) & landed, F.lit(False))
    if since is not None:
        certain &= F.col("at") > since + checks.SKEW_US
    if any(run.state == "live" for run in runs):
        certain &= F.col("closed_at") <= request.now_us - GRACE_US - checks.SKEW_US
    begins = sorted(began_ms(run.name) * 1000 for run in runs)
    for run in runs:
        if run.state == "killed":
            next_one = next((begin for begin in begins if begin > run.at_last), NEVER)
            certain &= ~F.col("at").between(run.at_last - GRACE_US - checks.SKEW_US, next_one + checks.SKEW_US)
    return certain
