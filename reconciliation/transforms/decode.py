"""Landed records to typed rows: outcome records, journal records, events.

A record that is no JSON of its shape keeps null for `run`; an event whose key is not a gateway's has null for `run`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reconciliation.model.schemas import JOURNAL, OUTCOMES
from reconciliation.model.tally import TERMINAL
from reconciliation.transforms.runs import RECORDED

GATEWAY_KEY = "^[13];[a-z][a-z0-9-]*;[0-9a-f]+-[0-9a-f]{4};[0-9]{1,18}(;|$)"
COPY_KEY = "^2;[0-9]{1,12};[0-9]{1,19};"
"""Of a copy that the realm itself made of an event (docs/records.md, *Event key*): no peer published it."""
ENDS = (*TERMINAL, "expired", "filtered", "move")


def outcome_records(records: DataFrame) -> DataFrame:
    """One row per turn: its run, number, marks, and the groups as they are."""
    parsed = records.select("offset", F.from_json(F.col("value").cast("string"), OUTCOMES).alias("record"))
    return parsed.select("offset", "record.run", "record.n", "record.at", "record.low", "record.next",
                         "record.digest", "record.profile", "record.closed", "record.groups")  # fmt: skip


def outcome_groups(records: DataFrame) -> DataFrame:
    """One row per group: deliveries of a turn that had everything in common. `seq` and `eid` are arrays."""
    exploded = records.select("run", "n", "at", "digest", F.explode("groups").alias("group"))
    return exploded.select("run", "n", "at", "digest", "group.*")


def deliveries(groups: DataFrame) -> DataFrame:
    """One row per delivery that has an outcome; `eid` is null where there is none."""
    zipped = groups.withColumn("each", F.explode(F.arrays_zip("seq", "eid"))).drop("seq", "eid")
    known = F.when(F.col("each.eid") >= 0, F.col("each.eid"))
    return zipped.withColumn("seq", F.col("each.seq")).withColumn("eid", known).drop("each")


def journal_records(records: DataFrame) -> DataFrame:
    """One row per native transaction, with its entries as they are. A mark (a tombstone) is no record."""
    written = records.where(F.col("value").isNotNull())
    parsed = written.select("offset", F.from_json(F.col("value").cast("string"), JOURNAL).alias("record"))
    return parsed.select("offset", "record.run", "record.n", "record.at", "record.entries")


def settlements(records: DataFrame) -> DataFrame:
    """One row per EID that the journal ends or returns: [FIRST, LAST, FIRST_SEQ, COVER] unfolded. `seq` is null where
    no delivery was settled: the realm did it itself."""
    first, last, first_seq = (F.element_at("range", place) for place in (1, 2, 3))
    each = _ranges(records).where(F.col("operation").isin("return", *ENDS))
    each = each.withColumn("eid", F.explode(F.sequence(first, last)))
    return each.select("offset", "run", "at", "node", "durable", "store", "operation", "failed", "cause", "to", "eid",
                       F.when(first_seq > 0, first_seq + F.col("eid") - first).alias("seq"))  # fmt: skip


def _ranges(records: DataFrame) -> DataFrame:
    entries = records.select("offset", "run", "at", F.explode("entries").alias("entry"))
    return entries.select("offset", "run", "at", "entry.*", F.explode("entry.runs").alias("range")).drop("runs")


def terminals(settled: DataFrame) -> DataFrame:
    """What ends an event for a durable: its consumer said so, its time was over, or it is not what that is for."""
    return settled.where(F.col("operation").isin(*ENDS))


def evicted(records: DataFrame) -> DataFrame:
    """(store, below): everything in the store below was given up for all its durables, because it was full."""
    swept = _ranges(records).where(F.col("operation") == "evicted")
    return swept.groupBy("store").agg((F.max(F.element_at("range", 2)) + 1).alias("below"))


def ordered(records: DataFrame) -> DataFrame:
    """(store, durable, offset, operation, first, last): what was purged by command, where places were moved, and what a
    store that had become shorter took from its durables."""
    runs = _ranges(records).where(F.col("operation").isin("purge", "seek", "truncated"))
    first, last = (F.element_at("range", place) for place in (1, 2))
    return runs.select("store", "durable", "offset", "operation", first.alias("first"), last.alias("last"))


def standing(terminals: DataFrame, voids: DataFrame) -> DataFrame:
    """The ends that no later command took back."""
    taken_back = voids.select(
        F.col("store").alias("of_store"), F.col("durable").alias("of_durable"), "before", F.col("eid").alias("from_eid")
    )
    same = (F.col("store") == F.col("of_store")) & (F.col("durable") == F.col("of_durable"))
    void = (F.col("offset") < F.col("before")) & (F.col("eid") >= F.col("from_eid"))
    return terminals.join(F.broadcast(taken_back), same & void, "left_anti")


def copied(settled: DataFrame) -> DataFrame:
    """(store, count): events that the journal says were copied into a store."""
    return settled.where(F.col("to").isNotNull()).groupBy(F.col("to").alias("store")).count()


def events(records: DataFrame, nodes: DataFrame) -> DataFrame:
    """One row per event of a store that was read. `nodes`: store, node, topic, partition, adopted_at (small). `native`:
    a plain producer's, in a topic that was there before its node: such producers may write there."""
    key = F.col("key").cast("string")
    fields = F.when(key.rlike(GATEWAY_KEY), F.split(key, ";", 5))
    stores = nodes.where(F.col("standing") == "read").select("topic", "partition", "store", "node", "adopted_at")
    placed = records.join(F.broadcast(stores), ["topic", "partition"], "inner")
    copy = F.coalesce(key.rlike(COPY_KEY), F.lit(False))
    return placed.select(
        "store",
        "node",
        F.col("offset").alias("eid"),
        (F.col("timestamp") * 1000).alias("at"),
        fields[2].alias("run"),
        fields[3].cast("bigint").alias("seq"),
        copy.alias("copy"),
        (F.col("adopted_at").isNotNull() & fields.isNull() & ~copy).alias("native"),
        "adopted_at",
    )


def of_earlier_life(events: DataFrame, runs: DataFrame) -> DataFrame:
    """The same, with `native` also for events of runs that are not known, from before their node adopted the topic: it
    may have been a node of another realm. `runs`: those that outcome records or the journal name."""
    known = events.join(F.broadcast(runs.select("run", F.lit(True).alias("known"))), "run", "left")
    earlier = (F.col("at") < F.col("adopted_at")) & F.col("run").isNotNull() & F.col("known").isNull()
    native = F.col("native") | F.coalesce(earlier, F.lit(False))
    return known.withColumn("native", native).select(*events.columns)


def mentions(records: DataFrame, begun: DataFrame | None) -> DataFrame:
    """(store, durable, node, last, ended): the durables that the journal speaks of, and, with an empty name, the
    stores; `node` is null where it only says that something was copied there. `ended` is the time of the last `delete`,
    `last` of the last other entry. `begun`: (store, durable, journal) of the durables that there are, and where the
    journal begins to speak of them: only what lies below counts, which speaks of an earlier one of that name; None:
    there are none."""
    exploded = records.select("offset", "at", F.explode("entries").alias("entry"))
    entries = exploded.select("offset", "at", "entry.*").where(F.col("operation") != RECORDED)
    columns = ("offset", "at", "store", "durable", "node", "operation")
    copied_to = entries.where(F.col("to").isNotNull()).select(
        "offset",
        "at",
        F.col("to").alias("store"),
        F.lit("").alias("durable"),
        F.lit(None).cast("string").alias("node"),
        "operation",
    )
    spoken_of = entries.select(*columns).unionByName(copied_to)
    at = F.col("at")
    if begun is not None:
        spoken_of = spoken_of.join(F.broadcast(begun), ["store", "durable"], "left")
        at = F.when(F.coalesce(F.col("offset") < F.col("journal"), F.lit(True)), at)
    is_end = F.col("operation") == "delete"
    return spoken_of.groupBy("store", "durable").agg(
        F.max("node").alias("node"),
        F.max(F.when(~is_end, at)).alias("last"),
        F.max(F.when(is_end, at)).alias("ended"),
    )
