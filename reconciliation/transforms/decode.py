"""Landed records to typed rows: outcome records, journal records, events.

A record that is no JSON of its shape, or lacks what every record has, has null in every column; an event whose key is
not a gateway's has null for `run`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model import schemas
from reconciliation.model.acts import ACTS, ASKED, ENDS, PLACED, STRETCH
from reconciliation.model.runs import RECORDED, RUN
from reconciliation.model.schemas import COPY_KEY, GATEWAY_KEY, JOURNAL, OUTCOMES


def outcome_records(records: DataFrame) -> DataFrame:
    """One row per turn: its run, number, marks, and the groups as they are."""
    parsed = records.select("offset", F.from_json(F.col("value").cast("string"), OUTCOMES).alias("record"))
    whole = _whole(schemas.OUTCOME_FIELDS, "groups", schemas.OUTCOME_PARTS)
    columns = ("run", "n", "at", "low", "next", "digest", "profile", "closed", "groups")
    return _of_whole(parsed.withColumn("whole", whole), columns)


def _whole(names: Iterable[str], of_parts: str, parts: Iterable[str]) -> Column:
    """Has a record all that every record has, and each of its parts, and does it name a run as runs are named?"""
    there = [F.col(f"record.{name}").isNotNull() for name in names]

    def lacks(part: Column) -> Column:
        return reduce(Column.__or__, (part[name].isNull() for name in parts))

    return reduce(Column.__and__, [F.col("record.run").rlike(rf"\A{RUN}\z"), *there]) & ~F.exists(
        F.col(f"record.{of_parts}"), lacks
    )


def _of_whole(parsed: DataFrame, columns: Iterable[str]) -> DataFrame:
    """What a record says that lacks something is of no run: nothing of it is read."""
    return parsed.select("offset", *(F.when(F.col("whole"), F.col(f"record.{name}")).alias(name) for name in columns))


def outcome_groups(records: DataFrame) -> DataFrame:
    """One row per group: deliveries of a turn that had everything in common. `seq` and `eid` are arrays."""
    exploded = records.select("offset", "run", "n", "at", "digest", F.explode("groups").alias("group"))
    return exploded.select("offset", "run", "n", "at", "digest", "group.*")


def deliveries(groups: DataFrame) -> DataFrame:
    """One row per delivery that has an outcome; `eid` is null where there is none."""
    zipped = groups.withColumn("each", F.explode(F.arrays_zip("seq", "eid"))).drop("seq", "eid")
    known = F.when(F.col("each.eid") >= 0, F.col("each.eid"))
    return zipped.withColumn("seq", F.col("each.seq")).withColumn("eid", known).drop("each")


def journal_records(records: DataFrame) -> DataFrame:
    """One row per native transaction, with its entries as they are. A mark (a tombstone) is no record."""
    written = records.where(F.col("value").isNotNull())
    parsed = written.select("offset", F.from_json(F.col("value").cast("string"), JOURNAL).alias("record"))
    whole = _whole(schemas.JOURNAL_FIELDS, "entries", schemas.JOURNAL_PARTS)
    return _of_whole(parsed.withColumn("whole", whole), ("run", "n", "at", "entries"))


def settlements(records: DataFrame) -> DataFrame:
    """One row per EID that the journal ends or returns: [FIRST, LAST, FIRST_SEQ, COVER] unfolded. `seq` is null where
    no delivery was settled: the realm did it itself. `cover`: from where on the first EID of a range takes what lies
    before it along; null: it takes nothing along."""
    first, last, first_seq, cover = (F.get("range", F.lit(place)) for place in range(4))
    rows = _ranges(records).where(F.col("operation").isin("return", *ENDS))
    rows = rows.withColumn("eid", F.explode(F.sequence(first, last)))
    takes_along = (F.col("eid") == first) & (cover < first) & (F.col("operation") != "return")
    return rows.select("offset", "run", "at", "node", "durable", "store", "operation", "failed", "cause", "to", "eid",
                       F.when(first_seq > 0, first_seq + F.col("eid") - first).alias("seq"),
                       F.when(takes_along, cover).alias("cover"))  # fmt: skip


def _ranges(records: DataFrame) -> DataFrame:
    entries = records.select("offset", "run", "at", F.explode("entries").alias("entry"))
    return entries.select("offset", "run", "at", "entry.*", F.explode("entry.runs").alias("range")).drop("runs")


def terminals(settled: DataFrame) -> DataFrame:
    """What ends an event for a durable: its consumer said so, its time was over, or it is not what that is for."""
    return settled.where(F.col("operation").isin(*ENDS))


def acts(records: DataFrame) -> DataFrame:
    """What was done to events or durables for no delivery (and, summed, what was returned), one row for each range of
    what counts by its place in the journal (`offset`), and one for each cause of the rest: what lies between the lowest
    and the highest EID, how many ranges, and the first of it. A consumer's verb is among them, one row for each
    `STRETCH` EIDs (`first`), where no delivery was settled by it, which no realm writes."""
    first, last, first_seq = (F.get("range", F.lit(place)) for place in range(3))
    of_none = F.col("operation").isin(*ASKED) & (F.coalesce(first_seq, F.lit(0)) < 1)
    own = F.col("operation").isin(*ACTS) | of_none
    ranges = _ranges(records).where(own).withColumns({"first": first, "last": last, "of_none": of_none})
    placed, stretch = F.col("operation").isin(*PLACED), F.col("of_none")
    one_by_one = [F.when(placed, F.col(name)).alias(name) for name in ("offset", "last")]
    one_by_one.append(
        F.when(placed, F.col("first")).when(stretch, F.col("first") - F.col("first") % STRETCH).alias("first")
    )
    return ranges.groupBy("store", "durable", "operation", "cause", *one_by_one).agg(
        F.max("node").alias("node"),
        F.min(ranges["first"]).alias("lowest"),
        F.max(ranges["last"]).alias("highest"),
        F.sum(ranges["last"] - ranges["first"] + 1).alias("count"),
        F.min("at").alias("at"),
        F.min_by("run", F.struct("at", "run")).alias("run"),
    )


def standing(terminals: DataFrame, voids: DataFrame) -> DataFrame:
    """The ends that are not void."""
    return _by_voids(terminals, voids, "left_anti")


def void(terminals: DataFrame, voids: DataFrame) -> DataFrame:
    """The other ones."""
    return _by_voids(terminals, voids, "left_semi")


def _by_voids(terminals: DataFrame, voids: DataFrame, how: str) -> DataFrame:
    return joined_with_voids(terminals, voids, F.col("offset") < F.col("before"), how)


def joined_with_voids(rows: DataFrame, voids: DataFrame, applies: Column, how: str) -> DataFrame:
    """With the voids of their durable that reach to their EID. `applies`: where `before` stands to their offsets."""
    places = voids.select(
        F.col("store").alias("of_store"), F.col("durable").alias("of_durable"), "before", F.col("eid").alias("from_eid")
    )
    same = (F.col("store") == F.col("of_store")) & (F.col("durable") == F.col("of_durable"))
    return rows.join(F.broadcast(places), same & (F.col("eid") >= F.col("from_eid")) & applies, how)


def events(records: DataFrame, nodes: DataFrame) -> DataFrame:
    """One row per event of a store that was read. `nodes`: store, node, topic, partition, adopted_at (small). `native`:
    a plain producer's, in a topic that was there before its node: such producers may write there. Of a copy
    `from_store` and `from_eid`; `ttl_ms`: the event's own time to live; `of_origin`: it may not be for all."""
    key = F.col("key").cast("string")
    fields = F.when(key.rlike(GATEWAY_KEY), F.split(key, ";", 8))
    ttl = F.when(F.get(fields, 6).rlike("^T[0-9]{1,18}$"), F.substring(F.get(fields, 6), 2, 18).cast("bigint"))
    stores = nodes.where(F.col("standing") == "read").select("topic", "partition", "store", "node", "adopted_at")
    placed = records.join(F.broadcast(stores), ["topic", "partition"], "inner")
    return placed.select(
        "store",
        "node",
        F.col("offset").alias("eid"),
        (F.col("timestamp") * 1000).alias("at"),
        *_names(),
        F.when(ttl > 0, ttl).alias("ttl_ms"),
        F.coalesce(F.get(fields, 7).rlike("(^|;)O"), F.lit(False)).alias("of_origin"),
        (F.col("adopted_at").isNotNull() & fields.isNull() & ~_is_copy()).alias("native"),
        "adopted_at",
    )


def named_events(records: DataFrame) -> DataFrame:
    """What names each event, before it is known which store it is of: by topic and partition."""
    return records.select("topic", "partition", F.col("offset").alias("eid"), *_names())


def _is_copy() -> Column:
    return F.coalesce(F.col("key").cast("string").rlike(COPY_KEY), F.lit(False))


def _names() -> list[Column]:
    key = F.col("key").cast("string")
    fields = F.when(key.rlike(GATEWAY_KEY), F.split(key, ";", 8))
    origin = F.when(key.rlike(COPY_KEY), F.split(key, ";", 4))
    return [
        fields[2].alias("run"),
        fields[3].cast("bigint").alias("seq"),
        _is_copy().alias("copy"),
        origin[1].cast("bigint").alias("from_store"),
        origin[2].cast("bigint").alias("from_eid"),
    ]


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
    spoken_of = spoken_of_stores(records)
    at = F.col("at")
    if begun is not None:
        spoken_of = spoken_of.join(F.broadcast(begun), ["store", "durable"], "left")
        at = F.when(F.coalesce(F.col("offset") < F.col("journal"), F.lit(True)), at)
    return spoken_of.groupBy("store", "durable").agg(*mentioned(at))


def mentioned(at: Column) -> list[Column]:
    is_end = F.col("operation") == "delete"
    return [
        F.max("node").alias("node"),
        F.max(F.when(~is_end, at)).alias("last"),
        F.max(F.when(is_end, at)).alias("ended"),
    ]


def spoken_of_stores(records: DataFrame) -> DataFrame:
    """One row for each entry of the journal and store that it speaks of."""
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
    return entries.select(*columns).unionByName(copied_to)
