"""What the realm ended by itself needs its reason in the event: its time was over, or it was not for that durable.
Class S2.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reconciliation.transforms.finding_rows import findings


def expired(ends: DataFrame, events: DataFrame, nodes: DataFrame) -> DataFrame:
    """Events that the journal ended as expired, and whose time was not over, or that had none. `nodes`: store, ttl_ms
    (of the node; null: it may have been another one then), for the stores with such ends. An event's time and that of
    the realm's journal come from the clocks that the realm compared itself."""
    of_nodes = F.broadcast(nodes)
    ended = ends.where(F.col("operation") == "expired").select(*_END)
    both = ended.join(_stored(events), ["store", "eid"], "inner").join(of_nodes, "store", "inner")
    ttl_ms = F.coalesce("ttl_ms", "node_ttl_ms")
    left_ms = ((F.col("stored_at") + ttl_ms * 1000 - F.col("at")) / 1000).cast("bigint")
    why = F.when(ttl_ms == 0, F.lit("expired without a time to live, its own or its node's")).when(
        left_ms > 0, F.concat(F.lit("expired "), left_ms.cast("string"), F.lit(" ms before its time to live was over"))
    )
    return findings(both.where(why.isNotNull()), "S2", why)


def filtered(ends: DataFrame, events: DataFrame, durables: DataFrame) -> DataFrame:
    """Events that the journal ended as filtered, for a durable that has no selector (`durables`: store, durable), and
    that no publisher marked as not for its own subscribers."""
    ended = ends.where(F.col("operation") == "filtered").select(*_END)
    of_all = ended.join(F.broadcast(durables), ["store", "durable"], "left_semi")
    both = of_all.join(_stored(events), ["store", "eid"], "inner").where(~F.col("of_origin"))
    return findings(both, "S2", F.lit("filtered out for a durable that has no selector"))


_END = ("store", "durable", "eid", "at", "run")


def _stored(events: DataFrame) -> DataFrame:
    return events.select("store", "eid", "node", F.col("at").alias("stored_at"), "ttl_ms", "of_origin")
