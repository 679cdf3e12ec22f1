"""How far every durable is: each event it is entitled to is ended in one of several ways, available, skipped or lost.

Per (store, block of 4,096 EIDs) events and journal ends are compared by count and xor; a block that is all ended or
not touched at all above the mark is settled by its counts, any other is folded event by event. Classes A4, A5, A9, A13
and S1.

A13 is found by what is in order without a clock: runs follow each other in the journal, where none is written any more
once the next has begun; within a run, an event has its seq before the delivery of it has one. Times are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.acts import WAYS
from reconciliation.model.ranges import EID_BITS
from reconciliation.model.tally import TERMINAL
from reconciliation.transforms import recovered
from reconciliation.transforms.blocks import eid_block_of
from reconciliation.transforms.finding_rows import findings

_PLACE = ("store", "durable", "block")
EARLY = "early"
AGAIN, UNKNOWN = "again", "unknown"
"""Beside the fates, of events that have one of those: ended more than once; ended as their snapshot alone says, though
the whole journal is there."""
_BESIDE = (AGAIN, UNKNOWN, recovered.COVERED, recovered.FORGOTTEN)
_OF_EVENT = {"node": "of.node", "at": "of.at", "run": "of.run", "seq": "of.seq"}


@dataclass(frozen=True, slots=True)
class Ends:
    """What ended events: the journal one by one (`each`), snapshots alone, commands as ranges (None: no command).
    `looked_at`: ranges whose blocks are folded in any case (None: there are none). `whole`: all ends are in the
    journal."""

    each: DataFrame
    snapshots: DataFrame
    withdrawn: DataFrame | None
    looked_at: DataFrame | None
    whole: bool


def blocks_of(rows: DataFrame) -> DataFrame:
    """(store, block) of the EIDs that rows name."""
    return rows.select("store", eid_block_of("eid")).distinct()


def within(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Only those whose EID is in one of these blocks. `places`: store, block."""
    return rows.withColumn("block", eid_block_of("eid")).join(places, ["store", "block"], "left_semi").drop("block")


def event_parts(events: DataFrame) -> DataFrame:
    """Of a block what one run stored, from EID `offset_first` on."""
    return events.groupBy("store", "run", eid_block_of("eid")).agg(
        F.count("*").alias("count"), F.bit_xor(F.xxhash64("eid")).alias("xor"), F.min("eid").alias("offset_first")
    )


def event_blocks(parts: DataFrame, beginnings: DataFrame) -> DataFrame:
    """By (store, block). `parts`: see `event_parts`; `beginnings`: where in the journal each run began; `stored_by`:
    each of the parts."""
    begun = parts.join(F.broadcast(beginnings), "run", "left")
    return begun.groupBy("store", "block").agg(
        F.sum("count").alias("events"),
        F.bit_xor("xor").alias("events_xor"),
        F.collect_list(F.struct("began", "offset_first")).alias("stored_by"),
    )


def end_blocks(ends: DataFrame) -> DataFrame:
    """What the journal ended one by one, by (store, durable, block)."""
    parts = ends.groupBy("store", "durable", "run", eid_block_of("eid")).agg(
        F.count("*").alias("count"),
        F.bit_xor(F.xxhash64("eid")).alias("xor"),
        F.min("offset").alias("offset_first"),
        F.max("eid").alias("eid_last"),
        lowest_covered(),
        *(F.count_if(F.col("operation") == operation).alias(name) for operation, name in WAYS.items()),
    )
    return end_blocks_of(parts)


def lowest_covered() -> Column:
    """The lowest EID that one of these ends takes along."""
    return F.min(F.coalesce("cover", "eid")).alias("cover")


def end_blocks_of(parts: DataFrame) -> DataFrame:
    """`parts`: of a block what one run ended, from `offset_first` of the journal on and up to EID `eid_last`.
    `ended_by`: each of them."""
    return parts.groupBy("store", "durable", "block").agg(
        F.sum("count").alias("ends"),
        F.bit_xor("xor").alias("ends_xor"),
        F.collect_list(F.struct("offset_first", "eid_last")).alias("ended_by"),
        F.min("cover").alias("cover"),
        *(F.sum(name).alias(name) for name in WAYS.values()),
    )


def durable_blocks(
    event_blocks: DataFrame,
    end_blocks: DataFrame,
    looked_at: DataFrame | None,
    durables: DataFrame,
    reused: DataFrame | None = None,
    trimmed: DataFrame | None = None,
    snapshots: DataFrame | None = None,
) -> DataFrame:
    """One row per (store, durable, block) with a `kind`: ended, untouched, gone (all of it is trimmed, and has ended)
    or suspect. `looked_at`: see `Ends`. `reused`: blocks with an EID that an answer named for another event.
    `trimmed`: what was published below the first kept EID, by (store, block); None: it is looked at event by event.
    `snapshots`: see `recovered.with_doubts_of_snapshots`."""
    stored = _with_trimmed(event_blocks, trimmed)
    entitled = stored.join(F.broadcast(durables), "store", "inner").where(_reaches_start())
    ends = end_blocks
    of_durables = F.broadcast(durables.select("store", "durable", "start", "mark", "known_low", "known_until"))
    known = ends.join(of_durables, ["store", "durable"], "inner")
    known = known.where(_reaches_start())
    both = entitled.select(*_PLACE, "start", "mark", "events", "events_xor", "stored_by", *_TRIMMED).join(
        known.withColumnRenamed("start", "s").withColumnRenamed("mark", "m"), [*_PLACE], "full_outer"
    )
    whole = both.withColumns({"start": F.coalesce("start", "s"), "mark": F.coalesce("mark", "m")}).drop("s", "m")
    if looked_at is None:
        whole = whole.withColumn("commanded", F.lit(False))
    else:
        first = F.shiftleft("block", EID_BITS)
        ranges = _ranges_of(looked_at)
        overlaps = (F.col("first") < first + (1 << EID_BITS)) & (F.col("last") >= first)
        touched = whole.select(*_PLACE).join(F.broadcast(ranges), _same_durable() & overlaps, "left_semi")
        whole = whole.join(touched.distinct().withColumn("commanded", F.lit(True)), [*_PLACE], "left")
    if reused is None:
        whole = whole.withColumn("reused", F.lit(False))
    else:
        given_twice = F.broadcast(reused.withColumn("reused", F.lit(True)))
        whole = whole.join(given_twice, ["store", "block"], "left")
    whole = recovered.with_doubts_of_snapshots(recovered.with_reached(whole), snapshots)
    states = recovered.with_reaching(whole.withColumn("kind", _kind()))
    return states.na.fill(0, ["events", "ends", *WAYS.values()])


_TRIMMED = ("published", "published_xor", "distinct")


def _with_trimmed(event_blocks: DataFrame, trimmed: DataFrame | None) -> DataFrame:
    if trimmed is not None:
        return event_blocks.join(trimmed, ["store", "block"], "full_outer")
    nothing = F.lit(None).cast("bigint")
    return event_blocks.withColumns({"published": nothing, "published_xor": nothing, "distinct": F.lit(False)})


def _reaches_start() -> Column:
    """What lies below its start is nothing that a durable is entitled to, whether it has ended it or not."""
    return F.shiftleft(F.col("block") + 1, EID_BITS) > F.col("start")


def _kind() -> Column:
    first = F.shiftleft("block", EID_BITS)
    from_start = first >= F.col("start")
    ended = (F.col("events") == F.col("ends")) & (F.col("events_xor") == F.col("ends_xor"))
    early = F.coalesce(_may_be_early(), F.lit(False)) | F.coalesce("reused", F.lit(False))
    looked_at = F.coalesce("commanded", F.lit(False)) | F.col("reached")
    untouched = F.col("ends").isNull() & (first >= F.col("mark")) & ~looked_at
    all_ended = (F.col("published") == F.col("ends")) & (F.col("published_xor") == F.col("ends_xor"))
    gone = F.col("events").isNull() & all_ended & F.col("distinct") & ~F.coalesce("reused", F.lit(False))
    return (
        F.when(from_start & ended & ~early & ~F.col("doubted"), F.lit("ended"))
        .when(from_start & gone, F.lit("gone"))
        .when(from_start & untouched & F.col("published").isNull(), F.lit("untouched"))
        .otherwise(F.lit("suspect"))
    )


def _may_be_early() -> Column:
    """Whether a run ended something at or above the first event of another run, before that one began in the journal. A
    run stores above what is there, so such an end may be of an event that was not there yet; no other end may be."""
    return F.exists(
        "stored_by",
        lambda part: F.exists(
            "ended_by",
            lambda end: (end["offset_first"] < part["began"]) & (end["eid_last"] >= part["offset_first"]),
        ),
    )


def fold(blocks: DataFrame, events: DataFrame, ended_by: Ends, durables: DataFrame, beginnings: DataFrame) -> DataFrame:
    """One row per (store, durable, EID) of suspect blocks with its `fate`."""
    nothing = F.lit(None).cast("bigint")
    suspect = blocks.where(F.col("kind") == "suspect").select("store", "durable", "block")
    stored = events.select("store", "node", "eid", "at", "run", "seq").withColumn("block", eid_block_of("eid"))
    entitled = stored.join(suspect, ["store", "block"], "inner").select(
        "store",
        "durable",
        "eid",
        "node",
        "at",
        "run",
        "seq",
        F.lit(1).alias("event"),
        F.lit(None).cast("string").alias("op"),
        nothing.alias("offset"),
        nothing.alias("cover"),
    )
    ends = ended_by.each.withColumn("block", eid_block_of("eid")).join(suspect, [*_PLACE], "left_semi")
    ended = ends.select(
        "store",
        "durable",
        "eid",
        "node",
        "at",
        "run",
        "seq",
        F.lit(0).alias("event"),
        F.col("operation").alias("op"),
        "offset",
        "cover",
    )
    merged = (
        entitled.unionByName(ended)
        .groupBy("store", "durable", "eid")
        .agg(
            F.max("event").alias("event"),
            F.min("op").alias("op"),
            F.min(F.when(F.col("event") == 1, F.struct("node", "at", "run", "seq"))).alias("of"),
            F.max(F.when(F.col("event") == 0, F.struct("offset", "run", "seq"))).alias("end"),
            F.size(F.collect_set(F.when(F.col("event") == 0, which_end()))).alias("ends"),
            F.min("offset").alias("ended_from"),
            F.min(F.when(F.col("cover").isNotNull(), F.struct("cover", "eid", "offset", "run", "seq"))).alias("reach"),
        )
    )
    placed = recovered.with_covering(merged).join(F.broadcast(durables), ["store", "durable"], "inner")
    begun = placed.join(F.broadcast(beginnings), F.col("of.run") == beginnings["run"], "left").drop(beginnings["run"])
    known = _with_ranges(begun, ended_by).withColumn("fate", _fate())
    by_snapshot = F.col("first").isNotNull() & F.col("op").isNull() & (F.col("fate") == "acknowledge")
    again = (F.col("ends") > 1) & (F.col("eid") >= F.col("start"))
    beside = {AGAIN: again, UNKNOWN: F.lit(ended_by.whole) & by_snapshot}
    of_starts = {recovered.COVERED: recovered.is_covered(), recovered.FORGOTTEN: recovered.is_forgotten(EARLY)}
    return known.withColumns(beside | of_starts)


def which_end() -> Column:
    """A journal record that stands twice under its number counts once: it has the same time."""
    return F.struct("run", F.coalesce(F.col("seq"), -F.col("at")).alias("seq"))


def _ranges_of(ranges: DataFrame) -> DataFrame:
    return ranges.select(F.col("store").alias("of_store"), F.col("durable").alias("of_durable"), "first", "last")


def _same_durable() -> Column:
    return (F.col("store") == F.col("of_store")) & (F.col("durable") == F.col("of_durable"))


def _with_ranges(placed: DataFrame, ended: Ends) -> DataFrame:
    """`first` is not null where a snapshot says that the event has ended, `purged` true where a command does."""
    within = _same_durable() & F.col("eid").between(F.col("first"), F.col("last"))
    if ended.withdrawn is None:
        by_command = placed.withColumn("purged", F.lit(False))
    else:
        matches = placed.join(F.broadcast(_ranges_of(ended.withdrawn)), within, "left")
        by_command = matches.withColumn("purged", F.col("first").isNotNull())
        by_command = by_command.drop("of_store", "of_durable", "first", "last")
    by_snapshot = by_command.join(F.broadcast(_ranges_of(ended.snapshots)), within, "left")
    return by_snapshot.drop("of_store", "of_durable", "last")


def _fate() -> Column:
    present = F.col("event") == 1
    return (
        F.when(F.col("eid") < F.col("start"), F.when(present, F.lit("before")).otherwise(F.lit("absent")))
        .when(~present & (F.col("eid") >= F.col("first_kept")), F.lit("absent"))  # ended, and no longer there
        .when(_is_early(), F.lit(EARLY))
        .when(F.col("op").isNotNull(), F.col("op"))
        .when(F.col("purged"), F.lit("purge"))
        .when(F.col("first").isNotNull(), F.lit("acknowledge"))  # the snapshot alone says so
        .when(F.col("eid") < F.col("evicted_below"), F.lit("evicted"))
        .when(F.col("eid") < F.col("mark"), F.lit("skipped"))
        .otherwise(F.lit("available"))
    )


def _is_early() -> Column:
    """Its end in the journal is older than itself: it ended what had this EID before."""
    before_its_run = F.col("end.offset") < F.col("began")
    before_its_seq = (F.col("end.run") == F.col("of.run")) & (F.col("end.seq") < F.col("of.seq"))
    return F.coalesce(before_its_run, F.lit(False)) | F.coalesce(before_its_seq, F.lit(False))


def counts(event_blocks: DataFrame, blocks: DataFrame, folded: DataFrame) -> DataFrame:
    """(store, durable, fate, count). Fate `events` is what a store holds (durable null), and what of it lies in the
    blocks that a durable looks at: the other fates of the durable must add up to it, but for `_BESIDE`."""
    stored = event_blocks.groupBy("store").agg(F.sum("events").alias("count"))
    fates = F.when(F.col("kind") == "untouched", F.array(_fate_count("available", F.col("events")))).otherwise(
        F.array(
            *(_fate_count(operation, F.col(name)) for operation, name in WAYS.items()),
            _fate_count("discard", F.col("ends") - sum((F.col(name) for name in WAYS.values()), F.lit(0))),
        )
    )
    settled = blocks.where(F.col("kind") != "suspect").select("store", "durable", F.explode(fates).alias("f"))
    whole = settled.select("store", "durable", "f.fate", "f.count").unionByName(
        folded.select("store", "durable", "fate", F.lit(1).cast("bigint").alias("count"))
    )
    due = blocks.select("store", "durable", F.lit("events").alias("fate"), F.col("events").alias("count"))
    beside = F.array(*(F.when(F.col(name), F.lit(name)) for name in _BESIDE))
    marked = folded.select("store", "durable", F.explode(F.array_compact(beside)).alias("fate"))
    whole = whole.unionByName(due).unionByName(marked.withColumn("count", F.lit(1).cast("bigint")))
    per_durable = whole.groupBy("store", "durable", "fate").agg(F.sum("count").alias("count"))
    return per_durable.unionByName(
        stored.select("store", F.lit(None).cast("string").alias("durable"), F.lit("events").alias("fate"), "count")
    )


def _fate_count(fate: str, count: Column) -> Column:
    return F.struct(F.lit(fate).alias("fate"), count.cast("bigint").alias("count"))


def skipped(folded: DataFrame, claims: DataFrame) -> DataFrame:
    """A5. An acknowledgement that a consumer was answered is A1, not A5."""
    ended = claims.where(F.col("what").isin(*TERMINAL)).select("store", "durable", "eid")
    open_below = folded.where(F.col("fate") == "skipped").join(ended, ["store", "durable", "eid"], "left_anti")
    detail = F.concat(F.lit("below the mark "), F.col("mark").cast("string"), F.lit(", and never ended in the journal"))
    return findings(open_below, "A5", detail, **_OF_EVENT)


def early(folded: DataFrame) -> DataFrame:
    """A13. The journal ends it and no consumer had it: its consumers never get it."""
    same_run = F.col("end.run") == F.col("of.run")
    when = F.when(
        same_run,
        F.concat(F.lit("by seq "), F.col("end.seq").cast("string"), F.lit(" of the same run, given before its own")),
    ).otherwise(F.concat(F.lit("by run "), F.col("end.run"), F.lit(", before the run that stored it had begun")))
    detail = F.concat(F.lit("ended at offset "), F.col("end.offset").cast("string"), F.lit(" of the journal "), when)
    return findings(folded.where(F.col("fate") == EARLY), "A13", detail, **_OF_EVENT)


def again(folded: DataFrame) -> DataFrame:
    """A4, of what the journal ends more than once for a durable that there is: after its first end it was given out
    again. Of others: `given_again`."""
    count, offset = (F.col(name).cast("string") for name in ("ends", "end.offset"))
    times = F.concat(F.lit("ended "), count, F.lit(" times in the journal, the last time at offset "), offset)
    return findings(folded.where(F.col(AGAIN)), "A4", times, at="of.at", run="end.run", seq="end.seq")


def unknown(folded: DataFrame) -> DataFrame:
    """A9, of a snapshot: what it says has ended, a gateway that starts from it gives to no consumer."""
    detail = F.lit("its durable's snapshot says that it has ended; the journal, which is whole, has no end of it")
    return findings(folded.where(F.col(UNKNOWN)), "A9", detail, **_OF_EVENT)


def _gone(claims: DataFrame, ended: Ends, durables: DataFrame) -> DataFrame:
    """Publishes below the first kept EID by now, for each durable that began before them, that the journal never
    ended one by one: evicted, acknowledged as its snapshot alone says, or lost (`gone`)."""
    trimmed = claims.where(F.col("what") == "trimmed").drop("durable")
    due = trimmed.join(F.broadcast(durables.drop("node")), "store", "inner").where(F.col("eid") >= F.col("start"))
    open_ = due.join(ended.each.select("store", "durable", "eid"), ["store", "durable", "eid"], "left_anti")
    evicted = F.when(F.col("eid") < F.col("evicted_below"), F.lit("evicted"))
    known = F.when(F.col("first").isNotNull(), F.lit("acknowledge"))
    purged = F.when(F.col("purged"), F.lit("purge"))
    return _with_ranges(open_, ended).withColumn("gone", F.coalesce(purged, known, evicted, F.lit("lost")))


def lost(claims: DataFrame, ended: Ends, durables: DataFrame) -> DataFrame:
    """S1: stored, below the first kept EID by now, and never ended for a durable that began before it."""
    unknown = _gone(claims, ended, durables).where(F.col("gone") == "lost")
    detail = F.concat(F.lit("the store begins at "), F.col("first_kept").cast("string"))
    return findings(unknown, "S1", detail)


def trimmed(claims: DataFrame, ended_by: Ends, durables: DataFrame) -> DataFrame:
    """(store, durable, fate, count) of events below the first kept EID: what the journal ended one by one (`ended`;
    its fates are counted like all others), and what it did not (`_gone`). Durable null: the publishes of a store."""
    gone = _gone(claims, ended_by, durables).select("store", "durable", F.col("gone").alias("fate"), "eid")
    kept = F.broadcast(durables.select("store", "durable", "start", "first_kept"))
    below = ended_by.each.join(kept, ["store", "durable"], "inner").where(
        (F.col("eid") < F.col("first_kept")) & (F.col("eid") >= F.col("start"))
    )
    ended = below.select("store", "durable", F.lit("ended").alias("fate"), "eid").distinct()
    no_durable = F.lit(None).cast("string").alias("durable")
    whole = claims.where(F.col("what") == "trimmed").select(
        "store", no_durable, F.lit("publishes").alias("fate"), "eid"
    )
    return gone.unionByName(ended).unionByName(whole).groupBy("store", "durable", "fate").count()
