"""Decisions counted by all that tables and peers see, and by node and peer: one aggregation over groups, whatever the
number of deliveries. A turn's group is one row.

Source: docs/records.md "Outcomes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reconciliation.read.node_classes import pattern_text
from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.recorded import DELIVERY

_DECIDED = """
what string, direction string, name string, link string, container string, user string, node string, store bigint,
`table` string, cell int, rule string, answer_table string, answer_cell int, answer_rule string,
operation string, cause string, answer string, outcome string, condition string, class string, presettled int,
seq array<bigint>, eid array<bigint>, count bigint, left_out bigint
"""
RECORD = f"run string, at bigint, digest string, groups array<struct<{_DECIDED}>>, decisions array<struct<{_DECIDED}>>"
"""Of an outcome record, what is decided by. A group and an entry of `decisions` have one shape here."""

_SEEN = (
    "what", "direction", "digest", "table", "cell", "rule", "answer_table", "answer_cell", "answer_rule",
    "operation", "cause", "answer", "outcome", "condition", "class", "presettled",
)  # fmt: skip
PLACE = ("node", "user", "container")
NAMINGS = ("own_naming", "other_naming")
COMBINATION = (*_SEEN, *NAMINGS)
"""The columns of `Recorded`, in its order."""
COMBINATION_DDL = (
    "what string, direction string, digest string, `table` string, cell int, rule string, answer_table string, "
    "answer_cell int, answer_rule string, operation string, cause string, answer string, outcome string, "
    "condition string, class string, presettled int, own_naming string, other_naming string, change int"
)


def counted(records: DataFrame, since: int, until: int) -> DataFrame:
    """One row for each combination at one node and peer: how many there are inside the window (`count`, perhaps 0), and
    the first as example. `torn` is what cannot be read, a record or a part of it; `rows` counts them. A record without
    decisions has no table. Microseconds.

    The window is a condition of the sums: a filter would be pushed below the parsing, and parse each record again."""
    parsed = records.select(F.from_json(F.col("value").cast("string"), RECORD).alias("record")).select("record.*")
    has_others = F.coalesce(F.size("decisions"), F.lit(0)) > 0  # such a record has no groups
    decided = F.explode_outer(F.when(has_others, F.col("decisions")).otherwise(F.col("groups")))
    columns = parsed.select("run", "at", "digest", *_of_record(has_others), decided.alias("of"))
    columns = columns.select("run", "at", "digest", _torn().alias("torn"), "of_group", "of.*")
    what = F.when(F.col("of_group") & (F.col("table").isNotNull() | F.col("seq").isNotNull()), F.lit(DELIVERY))
    inside = (F.col("at") >= since) & (F.col("at") < until)
    first = F.struct(
        F.col("at"), F.col("run"), F.get("seq", F.lit(0)).alias("seq"), F.get("eid", F.lit(0)).alias("eid"),
        F.col("store"), F.coalesce("name", "link").alias("link"),
    )  # fmt: skip
    return (
        columns.withColumn("what", F.coalesce("what", what))
        .groupBy(*_SEEN, *PLACE, "torn")
        .agg(
            F.sum(F.when(inside, F.coalesce("count", F.size("seq"), F.lit(0))).otherwise(0)).alias("count"),
            F.sum(F.when(inside, F.coalesce("left_out", F.lit(0))).otherwise(0)).alias("left_out"),
            F.count(F.lit(1)).alias("rows"),
            F.min(F.when(inside, F.col("at"))).alias("at_first"),
            F.max(F.when(inside, F.col("at"))).alias("at_last"),
            F.min(F.when(inside, first)).alias("example"),
        )
    )


def _of_record(has_others: Column) -> list[Column]:
    """`whole`: the record has its time, its tables and what was decided, which may be nothing."""
    some = F.col("groups").isNotNull() | F.col("decisions").isNotNull()
    whole = F.col("at").isNotNull() & F.col("digest").isNotNull() & some
    empty = F.coalesce(F.size("groups"), F.lit(0)) == 0
    return [whole.alias("whole"), (whole & empty).alias("nothing"), (~has_others).alias("of_group")]


def _torn() -> Column:
    """Of one part of a record: what it must have is not there. Where a record has no parts, the record."""
    of_group = F.col("of.table").isNotNull() & F.col("of.seq").isNotNull()
    of_other = F.col("of.what").isNotNull() & (F.col("of.count").isNotNull() | F.col("of.left_out").isNotNull())
    has_all = F.when(F.col("of").isNull(), F.col("nothing")).when(F.col("of_group"), of_group).otherwise(of_other)
    return ~(F.col("whole") & has_all)


def named(decisions: DataFrame, own: Mapping[str, ExpandedTables], other: ExpandedTables) -> DataFrame:
    """With the rule of `classify` that names the node, by the tables under the recorded digest and by the others; null:
    none does."""
    of_own = F.coalesce(
        *(F.when(F.col("digest") == digest, _naming(tables)) for digest, tables in own.items()), F.lit(None)
    ).cast("string")
    return decisions.withColumn("own_naming", of_own).withColumn("other_naming", _naming(other))


def _naming(tables: ExpandedTables) -> Column:
    """No two rules match one name. What is no delivery and names no node is of class `default`."""
    named: Column = F.lit(None).cast("string")
    for rule, patterns in tables.naming.items():
        matches = _matches(patterns["names"]) & ~_matches(patterns["unless"])
        named = F.when(matches, F.lit(rule)).otherwise(named)
    return named


def _matches(patterns: Sequence[str]) -> Column:
    name = F.coalesce("node", F.when(F.col("what") == DELIVERY, F.lit("")))
    return F.coalesce(name.rlike(rf"\A(?s:{pattern_text(patterns)})\z"), F.lit(False))


def combinations(decisions: DataFrame) -> DataFrame:
    """The same without nodes and peers: as many rows as tables have cells, at most a few thousand."""
    return decisions.groupBy(*COMBINATION, "torn").agg(
        *(F.sum(name).alias(name) for name in ("count", "left_out", "rows")),
        F.min("at_first").alias("at_first"),
        F.max("at_last").alias("at_last"),
    )


def lines(decisions: DataFrame, changes: DataFrame, most: int) -> DataFrame:
    """Of each change the nodes and peers with most decisions, `most` at the most; `of` is how many there are in all.
    `changes`: combinations with the number of their change (small)."""
    alike = reduce(Column.__and__, (decisions[name].eqNullSafe(changes[name]) for name in COMBINATION))
    totals = (
        decisions.where(F.col("count") > 0)
        .join(F.broadcast(changes), alike)
        .groupBy("change", *PLACE)
        .agg(F.sum("count").alias("count"), F.min("example").alias("example"))
    )
    by_count = Window.partitionBy("change").orderBy(F.desc("count"), "example")
    ranked = totals.withColumn("rank", F.row_number().over(by_count))
    ranked = ranked.withColumn("of", F.count(F.lit(1)).over(Window.partitionBy("change")))
    return ranked.where(F.col("rank") <= most).orderBy("change", "rank")
