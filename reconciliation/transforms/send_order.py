"""Are the events of one link in its store in the order in which the link sent them? Class P6.

Groups of outcomes are compared first: each lies above those that were sent before it. Only the links where one does not
are looked at delivery by delivery. What was sent in a transaction is stored at its discharge, and left out; so is a
store that gave an EID twice: it became shorter (P1, A13).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from reconciliation.transforms.finding_rows import findings, inside

LINK = ("run", "link", "store")


def regressions(groups: DataFrame, since: int, until: int) -> DataFrame:
    """One finding for each link and store: how many deliveries of it stand behind a later one, and the first of those,
    of those that were answered from `since` to `until` (microseconds since 1970). `groups` have `transacted`."""
    stored = groups.where((F.col("direction") == "publish") & (F.col("answer") == "stored"))
    sent = stored.where((F.coalesce("transacted", F.lit(0)) == 0) & (F.size("seq") > 0))
    suspects = F.broadcast(_suspects(sent))
    deliveries = sent.join(suspects, list(LINK), "left_semi").withColumn("one", F.explode(F.arrays_zip("seq", "eid")))
    rows = deliveries.select(
        *LINK, "node", "name", "container", "at", F.coalesce("answer_rule", "rule").alias("rule"),
        F.col("one.seq").alias("place"), F.col("one.eid").alias("eid"),
    )  # fmt: skip
    before = Window.partitionBy(*LINK).orderBy("place").rowsBetween(Window.unboundedPreceding, -1)
    behind = F.max("eid").over(before)
    twice = F.max("times").over(Window.partitionBy(*LINK))
    times = F.count("*").over(Window.partitionBy("store", "eid"))
    ordered = rows.withColumn("passed", behind).withColumn("times", times).withColumn("times", twice)
    wrong = ordered.where((F.col("eid") < F.col("passed")) & (F.col("times") == 1) & inside("at", since, until))
    first = F.struct("place", "eid", "passed", "node", "name", "container", "at", "rule")
    by_link = wrong.groupBy(*LINK).agg(F.count("*").alias("count"), F.min(first).alias("of"))
    detail = F.concat(
        F.lit("sent after what is stored at EID "), F.col("of.passed").cast("string"), F.lit(", and stored before it")
    )
    return findings(
        by_link, "P6", detail, node="of.node", eid="of.eid", seq="of.place", link="of.name", container="of.container",
        rule="of.rule", count="count", at="of.at",
    )  # fmt: skip


def _suspects(sent: DataFrame) -> DataFrame:
    """The links of which some group lies lower than an earlier one, or is not in order itself. Groups of one turn that
    differ in their rule may lie within each other: they are suspects, too, and cleared delivery by delivery."""
    passed = _edges(sent).withColumn("passed", F.max("highest").over(_before()))
    return passed.where(~F.col("rising") | (F.col("lowest") < F.col("passed"))).select(*LINK).distinct()


def _before() -> WindowSpec:
    return Window.partitionBy(*LINK).orderBy("first", "lowest").rowsBetween(Window.unboundedPreceding, -1)


def _edges(sent: DataFrame) -> DataFrame:
    """Of each group its first and last seq, and its lowest and highest EID."""
    eids = F.transform(F.array_sort(F.arrays_zip("seq", "eid")), lambda pair: pair["eid"])
    ends = F.array_min("seq").alias("first"), F.array_max("seq").alias("last")
    groups = sent.select(*LINK, "offset", *ends, eids.alias("eids"))
    return groups.select(
        *LINK,
        "offset",
        "first",
        "last",
        (F.array_sort("eids") == F.col("eids")).alias("rising"),
        F.array_min("eids").alias("lowest"),
        F.array_max("eids").alias("highest"),
    )


def edges(groups: DataFrame) -> DataFrame:
    """Partial aggregates: of each link and store from where to where its groups go, and whether they are `in_order`.
    Those of transactions are among them: what is in order with them is so without them."""
    stored = groups.where((F.col("direction") == "publish") & (F.col("answer") == "stored") & (F.size("seq") > 0))
    passed = _edges(stored).withColumn("passed", F.max("highest").over(_before()))
    behind = F.col("passed").isNull() | (F.col("lowest") >= F.col("passed"))
    return passed.groupBy(*LINK).agg(
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.min("lowest").alias("lowest"),
        F.max("highest").alias("highest"),
        F.bool_and(F.coalesce(F.col("rising") & behind, F.lit(False))).alias("in_order"),
        F.min("offset").alias("offset_first"),
        F.max("offset").alias("offset_last"),
    )


def doubtful(edges: DataFrame) -> DataFrame:
    """The links that may have a regression, with all their partial aggregates: more than have one, and none less."""
    before = edges.withColumns({"passed": F.max("highest").over(_before()), "reached": F.max("last").over(_before())})
    behind = F.col("passed").isNull() | ((F.col("lowest") >= F.col("passed")) & (F.col("first") > F.col("reached")))
    wrong = before.where(~(F.col("in_order") & F.coalesce(behind, F.lit(False)))).select(*LINK).distinct()
    return edges.join(wrong, list(LINK), "left_semi")
