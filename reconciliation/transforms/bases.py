"""Where old outcome records were trimmed: only deliveries from their run's base on are judged, in every account alike.

What a run without outcome records left counts as older when the run began before the first record that is kept.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_HEX_MAX = 12
"""Digits of such a time, and some to spare: microseconds are within 64 bits, too."""


def judged_groups(groups: DataFrame, runs: DataFrame) -> DataFrame:
    """Groups of outcomes without the deliveries below their run's base; `seq` and `eid` stay of one length."""
    based = groups.join(F.broadcast(runs.select("run", "base")), "run", "left")
    pairs = F.filter(F.arrays_zip("seq", "eid"), lambda pair: pair["seq"] >= F.coalesce("base", F.lit(1)))
    cut = based.withColumn("pairs", pairs).where(F.size("pairs") > 0)
    columns = {"seq": F.col("pairs.seq"), "eid": F.col("pairs.eid")}
    return cut.withColumns(columns).select(*groups.columns)


def first_judged(events: DataFrame, runs: DataFrame) -> DataFrame:
    """(store, judged_from): the lowest event of a run that outcome records name, published after its base."""
    based = events.join(F.broadcast(runs.select("run", "base")), "run", "inner").where(F.col("seq") >= F.col("base"))
    return based.groupBy("store").agg(F.min("eid").alias("judged_from"))


def with_judged(rows: DataFrame, runs: DataFrame, firsts: DataFrame | None, since: int) -> DataFrame:
    """Adds `judged` to events or ends. What names no run is always judged. `firsts`: what a run stored that had ended
    before the evidence begins lies below these events, whatever its name says of its time."""
    based = rows.join(F.broadcast(runs.select("run", "base")), "run", "left")
    older = _is_older(since)
    if firsts is not None:
        based = based.join(F.broadcast(firsts), "store", "left")
        older = older & F.coalesce(F.col("eid") < F.col("judged_from"), F.lit(True))
    judged = F.when(F.col("base").isNotNull(), F.col("seq") >= F.col("base")).otherwise(~older)
    return based.withColumn("judged", F.coalesce(judged, F.lit(True))).select(*rows.columns, "judged")


def _is_older(since: int) -> Column:
    """A run's name begins with the milliseconds since 1970 at which it began, in hex; one that is too long to be a time
    is never older."""
    written = F.split_part("run", F.lit("-"), F.lit(1))
    began_ms = F.when(F.length(written) <= _HEX_MAX, F.conv(written, 16, 10).cast("bigint"))
    return began_ms * 1000 <= F.lit(since)
