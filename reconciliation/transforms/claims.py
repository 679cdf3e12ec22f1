"""Three accounts of the same deliveries, each as rows (run, seq, what, ...): what the gateway told its peers
(*claims*), what is in the stores (*events*), what the journal ended (*terminals*).

`what` of a claim: `stored`, `trimmed` (stored, and below the store's first kept EID by now), `gone` (stored in a node
that was deleted), `lost` (stored in a node that was not, and whose store is gone), `unseen` (stored in what could not
be read), `refused`, `publish-unknown`; `acknowledge`, `discard`, `dead-letter`, `settle-unknown`; `return`, and
`return failed` where it counts as a failed attempt; `given back`, a return that the journal may have, or not; `other`
for the rest.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.tally import TERMINAL

UNKNOWN_PUBLISH = ("indeterminate", "unavailable")
UNKNOWN_SETTLE = ("indeterminate", "unexpected", "unavailable")
STORED = ("stored", "lost")
"""The store must hold it."""
RETURNED = ("return", "return failed")
"""The journal must have it, with that count."""
GIVEN_BACK = "given back"
"""Its answer is unknown, its store is gone, or its subscriber has no durable."""
QUEUE = "queue"
FOREIGN = "foreign"
"""Stands for the run of an event whose key no gateway wrote; followed by its store, so that EIDs do not meet."""


def claims(deliveries: DataFrame, nodes: DataFrame, hidden: DataFrame | None) -> DataFrame:
    """`deliveries` have `then_failed`, what the rule says of a failed attempt. `nodes`: the stores that something was
    accepted in, and their first kept EID. `hidden`: (store, hidden_first, hidden_end), the EIDs that could not be read;
    None: there are none."""
    known = nodes.select("store", "standing", "first_kept", "kind")
    placed = deliveries.join(F.broadcast(known), "store", "left")
    if hidden is None:
        placed = placed.withColumn("hidden", F.lit(False))
    else:
        at = F.col("eid") >= F.col("hidden_first"), F.col("eid") < F.col("hidden_end")
        ranges = F.broadcast(hidden.withColumnRenamed("store", "of_store"))
        placed = placed.join(ranges, (F.col("store") == F.col("of_store")) & at[0] & at[1], "left")
        placed = placed.withColumn("hidden", F.col("of_store").isNotNull())
    return placed.select(
        "run",
        "seq",
        _claim().alias("what"),
        "node",
        _durable().alias("durable"),
        "store",
        "eid",
        "at",
        F.col("name").alias("link"),
        "container",
        F.coalesce("answer_rule", "rule").alias("rule"),
    )


def named(sums: DataFrame, nodes: DataFrame) -> DataFrame:
    """Partial aggregates of claims on stores of which nothing is hidden, with `what` and `durable` as the claims
    themselves have them. `cut`: some of them are trimmed by now, and some are not; `what` is that of the highest."""
    known = nodes.select("store", "standing", "first_kept", "kind")
    placed = sums.join(F.broadcast(known), "store", "left")
    highest = F.when(F.col("highest") >= 0, F.col("highest"))
    unhidden = placed.withColumns({"hidden": F.lit(False), "eid": highest})
    what = unhidden.withColumns({"what": _claim(), "durable": _durable()})
    below = (F.col("lowest") < F.col("first_kept")) & (F.col("lowest") >= 0)
    divided = F.when(F.col("what") == "trimmed", F.col("lowest") < 0).when(F.col("what") == "stored", below)
    return what.withColumn("cut", F.coalesce(divided, F.lit(False)))


def _claim() -> Column:
    publish = F.col("direction") == "publish"
    stored = publish & (F.col("answer") == "stored")
    ends = F.col("operation").isin(*TERMINAL)
    return (
        F.when(stored & F.col("standing").isin("lost", "unseen"), F.col("standing"))
        .when(stored & ~F.coalesce(F.col("standing") == "read", F.lit(False)), F.lit("gone"))
        .when(stored & F.col("hidden"), F.lit("unseen"))
        .when(stored & (F.col("eid") < F.col("first_kept")), F.lit("trimmed"))
        .when(stored, F.lit("stored"))
        .when(publish & F.col("answer").isin(*UNKNOWN_PUBLISH), F.lit("publish-unknown"))
        .when(publish, F.lit("refused"))
        .when(ends & (F.col("answer") == "done"), F.col("operation"))
        .when(ends & F.col("answer").isin(*UNKNOWN_SETTLE), F.lit("settle-unknown"))
        .when(_is_return() & (F.col("then_failed") == 1), F.lit("return failed"))
        .when(_is_return() & (F.col("then_failed") == 0), F.lit("return"))
        .when(F.col("operation") == "return", F.lit(GIVEN_BACK))
        .otherwise(F.lit("other"))
    )


def _is_return() -> Column:
    """One that the journal has to have. A subscriber of a channel without a durable has its copy again, and no note."""
    noted = (F.col("standing") == "read") & ((F.col("kind") == QUEUE) | F.col("durable").isNotNull())
    return (F.col("operation") == "return") & (F.col("answer") == "done") & noted


def _durable() -> Column:
    """A queue's consumers name no durable; its acknowledgement state is the durable `queue`."""
    settles = (F.col("direction") == "subscribe") & F.col("operation").isin(*TERMINAL, "return")
    return F.when(settles, F.coalesce("durable", F.lit(QUEUE))).otherwise(F.col("durable"))


def unseen(claims: DataFrame) -> DataFrame:
    """(store, count): publishes that were answered stored where it could not be looked."""
    return claims.where(F.col("what") == "unseen").groupBy("store").count()


def stored_events(events: DataFrame) -> DataFrame:
    """Published ones: a copy has no publisher, and is counted against the journal instead."""
    foreign = F.concat_ws(" ", F.lit(FOREIGN), "store")
    run = F.coalesce("run", foreign).alias("run")
    seq = F.when(F.col("run").isNull(), F.col("eid")).otherwise(F.col("seq")).alias("seq")
    published = events.where(~F.col("copy") & ~F.col("native"))
    return published.select(run, seq, F.lit("event").alias("what"), "node", "store", "eid", "at")


def ended(settled: DataFrame) -> DataFrame:
    """What the journal says of deliveries: ends, and returns with their count."""
    of_deliveries = settled.where(F.col("seq").isNotNull())
    what = journalled().alias("what")
    return of_deliveries.select("run", "seq", what, "node", "durable", "store", "eid", "at", "offset")


def journalled() -> Column:
    """The journal's word for an end, or for a return with its count."""
    counted = (F.col("operation") == "return") & (F.col("failed") == 1)
    return F.concat_ws(" ", F.lit("journal"), "operation", F.when(counted, F.lit("failed")))
