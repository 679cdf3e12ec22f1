"""Landed records to typed rows: outcome records, journal records, events.

A record that is no JSON of its shape keeps null for `run`; an event whose key is not a gateway's has null for `run`.
May import: pyspark, `reconciliation.schemas`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reconciliation.schemas import JOURNAL, OUTCOMES

GATEWAY_KEY = "^1;[a-z]+;[0-9a-f]+-[0-9a-f]{4};[0-9]{1,18}(;|$)"


def outcome_records(records: DataFrame) -> DataFrame:
    """One row per turn: its run, number, marks, and the groups as they are."""
    parsed = records.select("offset", F.from_json(F.col("value").cast("string"), OUTCOMES).alias("record"))
    return parsed.select("offset", "record.run", "record.n", "record.at", "record.low", "record.digest",
                         "record.profile", "record.closed", "record.groups")  # fmt: skip


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
    """One row per EID that the journal speaks of: [FIRST, LAST, FIRST_SEQ, COVER] unfolded."""
    entries = records.select("run", "at", F.explode("entries").alias("entry"))
    ranges = entries.select("run", "at", "entry.*", F.explode("entry.runs").alias("range")).drop("runs")
    first, last, first_seq = (F.element_at("range", place) for place in (1, 2, 3))
    each = ranges.withColumn("eid", F.explode(F.sequence(first, last)))
    return each.select("run", "at", "node", "durable", "store", "operation", "failed", "cause", "eid",
                       (first_seq + F.col("eid") - first).alias("seq"))  # fmt: skip


def terminals(settled: DataFrame) -> DataFrame:
    """What ends an event for a durable: acknowledge and discard."""
    return settled.where(F.col("operation").isin("acknowledge", "discard"))


def events(records: DataFrame, nodes: DataFrame) -> DataFrame:
    """One row per event of a node that exists. `nodes`: store, node, topic (small)."""
    key = F.col("key").cast("string")
    fields = F.when(key.rlike(GATEWAY_KEY), F.split(key, ";", 5))
    placed = records.join(F.broadcast(nodes.select("topic", "store", "node")), "topic", "inner")
    return placed.select(
        "store",
        "node",
        F.col("offset").alias("eid"),
        (F.col("timestamp") * 1000).alias("at"),
        fields[2].alias("run"),
        fields[3].cast("bigint").alias("seq"),
    )
