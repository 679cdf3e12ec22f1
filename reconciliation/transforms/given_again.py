"""A4, of what stands in the journal alone: an end, and behind it a second end or a return, with nothing between them
that made the event due again.

Such a *restart* is the end of a durable, whose name another one may have then, a seek, or a truncation of the store.
`restarts`: store, durable, before, eid: from journal offset `before` on, of the EIDs from `eid` on; None: there are
none. They are held against pairs alone: those are few, and a name may have had many durables.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from reconciliation.transforms.decode import joined_with_voids
from reconciliation.transforms.durables import which_end
from reconciliation.transforms.finding_rows import findings

_EVENT = ("store", "durable", "eid")


def ended_again(void: DataFrame, restarts: DataFrame) -> DataFrame:
    """Of ends that count for no durable that there is. Of those that do: `durables.again`."""
    in_order = Window.partitionBy(*_EVENT).orderBy("offset")
    ends = void.withColumn("which", which_end())
    pairs = ends.withColumn("first", F.lag(F.struct("offset", "which")).over(in_order))
    twice = pairs.where(F.col("first.which") != F.col("which")).withColumn("ended_at", F.col("first.offset"))
    ended_at, offset = (F.col(name).cast("string") for name in ("ended_at", "offset"))
    detail = F.concat(F.lit("ended at offset "), ended_at, F.lit(" of the journal, and again at offset "), offset)
    return findings(_unbroken(twice, restarts), "A4", detail)


def given_back_later(returns: DataFrame, ends: DataFrame, restarts: DataFrame | None) -> DataFrame:
    """Of whatever durables there were."""
    ended = ends.select(*_EVENT, F.col("offset").alias("ended_at"))
    late = _unbroken(returns.join(ended, [*_EVENT], "inner").where(F.col("offset") > F.col("ended_at")), restarts)
    once = late.groupBy(*_EVENT).agg(F.min(F.struct("offset", "ended_at", "node", "at", "run", "seq")).alias("of"))
    ended_at, offset = (F.col(name).cast("string") for name in ("of.ended_at", "of.offset"))
    detail = F.concat(F.lit("ended at offset "), ended_at, F.lit(" of the journal, and given back at offset "), offset)
    return findings(once, "A4", detail, node="of.node", at="of.at", run="of.run", seq="of.seq")


def _unbroken(pairs: DataFrame, restarts: DataFrame | None) -> DataFrame:
    """The pairs of `ended_at` and `offset` that no restart stands between."""
    if restarts is None:
        return pairs
    between = (F.col("ended_at") < F.col("before")) & (F.col("before") <= F.col("offset"))
    return joined_with_voids(pairs, restarts, between, "left_anti")
