"""What a gateway that starts would take for ended, or for available, and no gateway has told: it believes two things
without looking at the events. An end in the journal ends all from its COVER on (A2, where there are events), and what a
snapshot says is as of its journal offset: an end below that counts no more (A9).

Recovery (docs/records.md "Journal", "State snapshot") reads the same records.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reconciliation.model.ranges import EID_BITS
from reconciliation.transforms.finding_rows import findings

_DURABLE = ("store", "durable")
_PLACE = ("store", "durable", "block")
COVERED, FORGOTTEN = "covered", "forgotten"
"""Beside the fates, of events that have one of those: without an end, and covered by that of a later event; with an
end, which the snapshot that should have it has not."""
_SUSPECT = "suspect"


def with_reached(blocks: DataFrame) -> DataFrame:
    """Adds `reached`: an end of a later block covers EIDs of this one. `blocks`: one row for each (store, durable,
    block), with `cover`, the lowest EID that one of its ends covers."""
    later = Window.partitionBy(*_DURABLE).orderBy(F.col("block").desc()).rowsBetween(Window.unboundedPreceding, -1)
    is_reached = F.min("cover").over(later) < F.shiftleft(F.col("block") + 1, EID_BITS)
    return blocks.withColumn("reached", F.coalesce(is_reached, F.lit(False)))


def with_reaching(kinds: DataFrame) -> DataFrame:
    """Blocks of which an end covers EIDs of an earlier block that is folded are folded, too."""
    earlier = Window.partitionBy(*_DURABLE).orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    folded = F.max(F.when(F.col("kind") == _SUSPECT, F.col("block"))).over(earlier)
    reaches = F.coalesce(folded >= F.shiftright("cover", EID_BITS), F.lit(False))
    return kinds.withColumn("kind", F.when(reaches, F.lit(_SUSPECT)).otherwise(F.col("kind")))


def with_doubts_of_snapshots(blocks: DataFrame, snapshots: DataFrame | None) -> DataFrame:
    """Adds `doubted`: some ends of the block may be older than their durable's snapshot, which does not have all of its
    EIDs as one range. `blocks` have what is known of the snapshot (`schemas.DURABLES`); `snapshots`: (store, durable,
    first, last), what they say has ended above their `low`; None: there are none."""
    if snapshots is None:
        return blocks.withColumn("doubted", F.lit(False))
    older = F.exists(
        "ended_by", lambda end: (end["offset_first"] < F.col("known_until")) & (end["eid_last"] >= F.col("known_low"))
    )
    upto = F.array_max(F.transform("ended_by", lambda end: end["eid_last"]))
    lowest = F.greatest(F.shiftleft("block", EID_BITS), F.col("known_low"))
    some = blocks.where(older).select(*_PLACE, lowest.alias("lowest"), upto.alias("upto"))
    ranges = snapshots.select(F.col("store").alias("of_store"), F.col("durable").alias("of_durable"), "first", "last")
    same = (F.col("store") == F.col("of_store")) & (F.col("durable") == F.col("of_durable"))
    whole = (F.col("first") <= F.col("lowest")) & (F.col("last") >= F.col("upto"))
    unknown = some.join(F.broadcast(ranges), same & whole, "left_anti").select(*_PLACE, F.lit(True).alias("doubted"))
    return blocks.join(unknown, [*_PLACE], "left").na.fill(False, ["doubted"])


def with_covering(merged: DataFrame) -> DataFrame:
    """Adds `by`: the end above an event that covers the most. `merged`: one row for each (store, durable, eid), with
    `reach`, the cover of its end and where that stands; null: it covers nothing but its event."""
    above = Window.partitionBy(*_DURABLE).orderBy(F.col("eid").desc()).rowsBetween(Window.unboundedPreceding, -1)
    return merged.withColumn("by", F.min("reach").over(above))


def is_covered() -> Column:
    """Of an event without an end of its own. What a command or the node's capacity ended has one."""
    open_ = (F.col("event") == 1) & F.col("op").isNull() & ~F.col("purged") & (F.col("eid") >= F.col("start"))
    kept = F.col("eid") >= F.col("evicted_below")
    return F.coalesce(open_ & kept & (F.col("by.cover") <= F.col("eid")), F.lit(False))


def is_forgotten(early: str) -> Column:
    """Of an event that is there, with an end that its durable's snapshot should have. `early`: the fate of one that
    began after its end."""
    ended = (F.col("event") == 1) & (F.col("ended_from") < F.col("known_until")) & (F.col("fate") != early)
    above = (F.col("eid") >= F.col("start")) & (F.col("eid") >= F.col("known_low"))
    return F.coalesce(ended & above & F.col("first").isNull(), F.lit(False))


def covered(folded: DataFrame) -> DataFrame:
    """A2."""
    eid, offset = (F.col(name).cast("string") for name in ("by.eid", "by.offset"))
    words = F.concat(F.lit("never ended itself; the end of EID "), eid, F.lit(" at offset "), offset)
    detail = F.concat(words, F.lit(" of the journal covers it, too"))
    rows = folded.where(F.col(COVERED))
    return findings(rows, "A2", detail, node="of.node", at="of.at", run="by.run", seq="by.seq")


def forgotten(folded: DataFrame) -> DataFrame:
    """A9."""
    offset, until = (F.col(name).cast("string") for name in ("ended_from", "known_until"))
    words = F.concat(F.lit("ended at offset "), offset, F.lit(" of the journal; its durable's snapshot, as of offset "))
    detail = F.concat(words, until, F.lit(", does not say so: it will come again"))
    rows = folded.where(F.col(FORGOTTEN))
    return findings(rows, "A9", detail, node="of.node", at="of.at", run="end.run", seq="end.seq")
