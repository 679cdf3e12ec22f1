"""The fold: all that is known of one delivery (run, seq) in one row, then what is wrong with it.

Judged is what the run's evidence covers: seqs below its last `low`, or all of a run that closed in order. Above that,
what a killed run left is P5, and what a live run is doing is in flight. Source: issue 3, classes P1-P5, A1, A2, Q1.
May import: pyspark, `reconciliation.transforms`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.transforms.blocks import BITS, EXPECTED, block_of
from reconciliation.transforms.claims import FOREIGN, TERMINAL

IN_FLIGHT = "in-flight"
DOUBLED = "doubled"
OVERWRITTEN = "overwritten"
INTERNAL = (IN_FLIGHT, DOUBLED, OVERWRITTEN)
"""No findings, but needed to close the balance: events of a live gateway that nobody was told of yet; publishes that
two outcome records speak of; events whose key was changed in place."""

_CLAIM = ("what", "node", "durable", "store", "eid", "at", "link", "container", "rule")
_FACT = ("what", "node", "durable", "store", "eid", "at")


def fold(accounts: DataFrame, runs: DataFrame) -> DataFrame:
    """One row per (run, seq): the claim, the events, the journal's end of it, and whether the evidence covers it."""
    what = F.col("what")
    event, journal = what == "event", what.startswith("journal")
    claimed = ~(event | journal | (what == EXPECTED))
    rows = accounts.groupBy("run", "seq").agg(
        F.count_if(claimed).alias("claims"),
        F.min(F.when(claimed, F.struct(*_CLAIM))).alias("claim"),
        F.array_sort(F.collect_set(F.when(event, F.struct("store", "eid")))).alias("places"),
        F.min(F.when(event, F.struct(*_FACT))).alias("event"),
        F.min(F.when(journal, F.struct(*_FACT))).alias("ended"),
    )
    return rows.join(F.broadcast(runs), "run", "left").withColumn("covered", _covered())


def _covered() -> Column:
    closed_or_below = (F.col("state") == "closed") | (F.col("seq") < F.col("low"))
    return F.col("run").startswith(FOREIGN) | F.coalesce(closed_or_below, F.lit(False))


def verdicts(folded: DataFrame) -> DataFrame:
    """A finding for everything that is wrong with a delivery, or uncertain; most have none."""
    candidates = F.array(
        _in_flight(),
        _lost_write(),
        _duplicate_write(),
        _phantom_write(),
        _refused_but_stored(),
        _indeterminate(),
        _acknowledged_not_committed(),
        _committed_not_acknowledged(),
        _other_operation(),
        _doubled_record(),
        _doubled_publish(),
    )
    present = F.filter(candidates, lambda one: one["class"].isNotNull())
    found = folded.withColumn("found", F.explode(present))
    return found.select(
        "found.class",
        F.coalesce("claim.node", "event.node", "ended.node").alias("node"),
        F.coalesce("claim.durable", "ended.durable").alias("durable"),
        "found.store",
        "found.eid",
        F.when(~F.col("run").startswith(FOREIGN), F.col("run")).alias("run"),
        F.when(~F.col("run").startswith(FOREIGN), F.col("seq")).alias("seq"),
        "claim.link",
        "claim.container",
        "claim.rule",
        "found.count",
        F.coalesce("claim.at", "event.at", "ended.at").alias("at"),
        "found.detail",
    )


def _found(condition: Column, code: str, of: str, detail: Column | str, count: Column | None = None) -> Column:
    """A struct whose class is null unless the condition holds. `of`: whose store and EID are named."""
    text = F.lit(detail) if isinstance(detail, str) else detail
    return F.struct(
        F.when(F.coalesce(condition, F.lit(False)), F.lit(code)).alias("class"),
        F.col(f"{of}.store").alias("store"),
        F.col(f"{of}.eid").alias("eid"),
        (count if count is not None else F.lit(1)).cast("bigint").alias("count"),
        text.alias("detail"),
    )


def _claim_is(*words: str) -> Column:
    return F.coalesce(F.col("claim.what").isin(*words), F.lit(False))


def _here() -> Column:
    return F.struct(F.col("claim.store").alias("store"), F.col("claim.eid").alias("eid"))


def _is_ended_as_claimed() -> Column:
    same = [F.col(f"ended.{name}").eqNullSafe(F.col(f"claim.{name}")) for name in ("store", "durable", "eid")]
    return F.col("ended").isNotNull() & same[0] & same[1] & same[2]


def _told_stored() -> Column:
    return _claim_is("stored", "trimmed", "gone")


def _is_in_place() -> Column:
    return F.array_contains("places", _here())


def _left_over() -> Column:
    """Nobody was told anything yet, and the evidence does not reach this far."""
    return F.col("claim").isNull() & ~F.col("covered")


def _in_flight() -> Column:
    live = F.coalesce(F.col("state") == "live", F.lit(False))
    return _found(F.col("event").isNotNull() & _left_over() & live, IN_FLIGHT, "event", "stored, not answered yet")


def _lost_write() -> Column:
    return _found(_claim_is("stored") & ~_is_in_place(), "P1", "claim", "answered stored; the store has no such event")


def _duplicate_write() -> Column:
    eids = F.concat_ws(", ", F.transform("places", lambda place: place["eid"].cast("string")))
    detail = F.concat(F.lit("stored at EIDs "), eids)
    return _found(F.size("places") > 1, "P2", "event", detail, F.size("places") - 1)


def _phantom_write() -> Column:
    known = _told_stored() | _claim_is("refused", "publish-unknown")
    unknown = ~known & F.col("covered")
    elsewhere = _told_stored() & ~_is_in_place()
    detail = (
        F.when(F.col("run").startswith(FOREIGN), F.lit("its key was written by no gateway"))
        .when(elsewhere, F.concat(F.lit("its publisher was told EID "), F.col("claim.eid").cast("string")))
        .otherwise(F.lit("the evidence of its run covers its seq, but has no publish outcome for it"))
    )
    return _found(F.col("event").isNotNull() & (unknown | elsewhere), "P3", "event", detail)


def _refused_but_stored() -> Column:
    return _found(
        _claim_is("refused") & F.col("event").isNotNull(), "P4", "event", "refused to the publisher, yet stored"
    )


def _indeterminate() -> Column:
    """Answers that were unknown when they were told, and what a killed run left without telling."""
    asked = _claim_is("publish-unknown", "settle-unknown")
    killed = _left_over() & (F.coalesce("state", F.lit("killed")) != "live")
    settled = F.col("ended").isNotNull()
    fact = F.when(_claim_is("settle-unknown"), settled).otherwise(F.col("event").isNotNull() | settled)
    origin = F.when(asked, F.lit("answer unknown")).otherwise(F.lit("left by a killed gateway"))
    detail = F.concat(origin, F.when(fact, F.lit(": found")).otherwise(F.lit(": not found")))
    place = F.when(F.col("event").isNotNull(), F.col("event")).otherwise(F.col("ended"))
    return F.struct(
        F.when(asked | (killed & fact), F.lit("P5")).alias("class"),
        F.coalesce(place["store"], "claim.store").alias("store"),
        F.coalesce(place["eid"], "claim.eid").alias("eid"),
        F.lit(1).cast("bigint").alias("count"),
        detail.alias("detail"),
    )


def _acknowledged_not_committed() -> Column:
    missing = _claim_is(*TERMINAL) & ~_is_ended_as_claimed()
    told = F.concat(
        F.lit("the consumer's "), F.col("claim.what"), F.lit(" was answered done; the journal has no end of it")
    )
    return _found(missing, "A1", "claim", told)


def _committed_not_acknowledged() -> Column:
    untold = F.col("claim").isNull() & F.col("covered")
    otherwise = _told_stored() | _claim_is("other", "refused", "publish-unknown")
    elsewhere = _claim_is(*TERMINAL) & ~_is_ended_as_claimed()
    detail = F.when(F.col("claim").isNull(), F.lit("ended in the journal; no outcome record speaks of it")).otherwise(
        F.concat(F.lit("ended in the journal; its outcome record says: "), F.col("claim.what"))
    )
    return _found(F.col("ended").isNotNull() & (untold | otherwise | elsewhere), "A2", "ended", detail)


def _other_operation() -> Column:
    differs = _is_ended_as_claimed() & (F.col("ended.what") != F.concat(F.lit("journal "), "claim.what"))
    detail = F.concat(F.lit("told "), "claim.what", F.lit(", in the "), "ended.what")
    return _found(_claim_is(*TERMINAL) & differs, "A3", "claim", detail)


def _doubled_record() -> Column:
    detail = F.concat(F.col("claims").cast("string"), F.lit(" outcome records speak of this delivery"))
    return _found(F.col("claims") > 1, "Q1", "claim", detail, F.col("claims") - 1)


def _doubled_publish() -> Column:
    return _found((F.col("claims") > 1) & _claim_is("stored", "trimmed"), DOUBLED, "claim", "", F.col("claims") - 1)


def overwritten(found: DataFrame, events: DataFrame) -> DataFrame:
    """A lost write whose EID is there after all, under another key, is a phantom (P3) and not lost as well."""
    present = events.select("store", "eid", F.lit("P1").alias("class"), F.lit(OVERWRITTEN).alias("instead")).distinct()
    joined = found.join(present, ["class", "store", "eid"], "left").withColumn("class", F.coalesce("instead", "class"))
    return joined.select(*found.columns)


def missing_records(accounts: DataFrame, runs: DataFrame) -> DataFrame:
    """Q1 for each suspect block: the seqs below the run's `low` that no outcome record speaks of."""
    what = F.col("what")
    claimed = ~(what.startswith("journal") | what.isin("event", EXPECTED))
    place = F.when(claimed, F.col("seq"))
    blocks = accounts.groupBy("run", block_of("seq")).agg(F.collect_set(place).alias("present"))
    first = F.greatest(F.shiftleft("block", BITS), F.col("base"))
    last = F.least(F.shiftleft(F.col("block") + 1, BITS), F.col("low")) - 1
    inside = blocks.join(F.broadcast(runs), "run", "inner").where(last >= first)
    missing = inside.select("run", F.array_except(F.sequence(first, last), "present").alias("missing"))
    text = F.concat_ws(" ", F.size("missing"), F.lit("deliveries without outcome record, seqs"), F.array_min("missing"),
                       F.lit("to"), F.array_max("missing"))  # fmt: skip
    none = F.lit(None)
    return missing.where(F.size("missing") > 0).select(
        F.lit("Q1").alias("class"),
        none.cast("string").alias("node"),
        none.cast("string").alias("durable"),
        none.cast("bigint").alias("store"),
        none.cast("bigint").alias("eid"),
        "run",
        F.array_min("missing").alias("seq"),
        none.cast("string").alias("link"),
        none.cast("string").alias("container"),
        none.cast("string").alias("rule"),
        F.size("missing").cast("bigint").alias("count"),
        none.cast("bigint").alias("at"),
        text.alias("detail"),
    )
