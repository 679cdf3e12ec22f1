"""The copies that the realm makes (dead letters, moved and resent events): the journal says of each where it was kept,
and its key there says where it comes from. Compared by key; only the stores that disagree are joined. Class A7.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reconciliation.model.acts import DEAD_LETTER
from reconciliation.transforms.finding_rows import findings

KEY = ("store", "from_store", "from_eid")
LATE_US = 60_000_000
"""So late, at most, a gateway that runs already learns of a node that is made."""


def recorded(settled: DataFrame) -> DataFrame:
    """What the journal says was kept in `store`."""
    copied = settled.where(F.col("to").isNotNull())
    return copied.select(
        F.col("to").alias("store"),
        F.col("store").alias("from_store"),
        F.col("eid").alias("from_eid"),
        F.struct("node", "durable", "operation", "run", "seq", "at").alias("by"),
    )


def held(events: DataFrame) -> DataFrame:
    """What the stores have."""
    return events.where("copy").select(*KEY, F.struct("eid", "node", "at").alias("copy"))


def compared(noted: DataFrame, there: DataFrame) -> DataFrame:
    """(store, recorded, held, same) for each store that has copies, or should have."""
    sides = noted.select(*KEY, F.lit(True).alias("noted")).unionByName(there.select(*KEY, F.lit(False).alias("noted")))
    return of_stores(sides.withColumns({"count": F.lit(1), "xor": F.xxhash64("from_store", "from_eid")}))


def of_stores(sides: DataFrame) -> DataFrame:
    """The same, of rows that are `noted` or there, each for so many (`count`, `xor`)."""
    compared = sides_compared(sides, "noted", "store")
    return compared.select("store", F.col("first_count").alias("recorded"), F.col("second_count").alias("held"), "same")


def sides_compared(rows: DataFrame, is_first: str, *keys: str) -> DataFrame:
    """By `keys`: the counts of both sides, and whether they are the `same`. `is_first`: which side a row is of."""
    first = F.col(is_first)
    summed = rows.groupBy(*keys).agg(
        F.sum(F.when(first, F.col("count")).otherwise(0)).alias("first_count"),
        F.sum(F.when(first, F.lit(0)).otherwise(F.col("count"))).alias("second_count"),
        F.bit_xor(F.when(first, F.col("xor"))).alias("first_xor"),
        F.bit_xor(F.when(~first, F.col("xor"))).alias("second_xor"),
    )
    same_rows = F.col("first_xor").eqNullSafe(F.col("second_xor"))
    return summed.withColumn("same", (F.col("first_count") == F.col("second_count")) & same_rows)


def differing(noted: DataFrame, there: DataFrame, stores: DataFrame) -> DataFrame:
    """A7 for each event that has fewer copies than the journal says, or more. `stores`: store, its node, and whether
    what is missing there, or too much, can be told."""
    keys = F.broadcast(stores.select("store"))
    noted_by = noted.join(keys, "store", "left_semi").groupBy(*KEY).agg(
        F.count("*").alias("recorded"), F.min("by").alias("by")
    )  # fmt: skip
    there_by = there.join(keys, "store", "left_semi").groupBy(*KEY).agg(
        F.count("*").alias("held"), F.max("copy").alias("copy")
    )  # fmt: skip
    both = noted_by.join(there_by, list(KEY), "full_outer").na.fill(0, ["recorded", "held"])
    known = both.join(F.broadcast(stores), "store", "inner")
    missing = known.where((F.col("may_miss") == 1) & (F.col("held") < F.col("recorded")))
    surplus = known.where((F.col("may_have") == 1) & (F.col("held") > F.col("recorded")))
    return _missing(missing).unionByName(_surplus(surplus))


def _missing(rows: DataFrame) -> DataFrame:
    """Named by the event that was to be copied: under that tag its consumer knew it."""
    detail = F.concat(
        F.lit("by the journal ("), F.col("by.operation"), F.lit(") it is kept in node "), F.col("in_node"),
        F.lit("; there are "), F.col("held").cast("string"), F.lit(" copies of it, and should be "),
        F.col("recorded").cast("string"),
    )  # fmt: skip
    return findings(
        rows, "A7", detail, node="by.node", durable="by.durable", store="from_store", eid="from_eid", run="by.run",
        seq="by.seq", count=F.col("recorded") - F.col("held"), at="by.at",
    )  # fmt: skip


def _surplus(rows: DataFrame) -> DataFrame:
    origin = F.concat_ws(":", F.col("from_store").cast("string"), F.col("from_eid").cast("string"))
    detail = F.concat(
        F.lit("there are "), F.col("held").cast("string"), F.lit(" copies of "), origin,
        F.lit(" here, and the journal knows of "), F.col("recorded").cast("string"),
    )  # fmt: skip
    surplus = F.col("held") - F.col("recorded")
    return findings(rows, "A7", detail, node="copy.node", eid="copy.eid", count=surplus, at="copy.at")


def left_out(settled: DataFrame, events: DataFrame, due: DataFrame) -> DataFrame:
    """A7 for each event that the journal gave up as a dead letter and kept nowhere, where its node has a node for such.
    `due`: store, in_node, since (when there were both, in microseconds since 1970). A copy is no letter twice."""
    given_up = settled.where((F.col("operation") == DEAD_LETTER) & F.col("to").isNull())
    begun = F.when(F.col("run").rlike(r"^[0-9a-f]{1,12}-"), F.substring_index("run", "-", 1))  # in milliseconds
    began = F.conv(begun, 16, 10).cast("bigint") * 1000
    known = (began > F.col("since")) | (F.col("at") > F.col("since") + LATE_US)
    of_nodes = given_up.join(F.broadcast(due), "store").where(known)
    rows = of_nodes.join(events.where(~F.col("copy")).select("store", "eid"), ["store", "eid"], "left_semi")
    detail = F.concat(F.lit("given up, and by the journal it is not kept in node "), F.col("in_node"))
    return findings(rows, "A7", detail)
