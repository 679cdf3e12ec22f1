"""The partial aggregates of all links added up (`transforms.sums`): the numbers that the rows themselves give.

Where a threshold cuts through what one partial aggregate covers, its block is *doubtful* as one is that disagrees: its
rows are read, and judged as rows. `sums`: `schemas.SUMS`, those that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.ranges import EID_BITS
from reconciliation.model.tally import TERMINAL
from reconciliation.transforms import blocks, claims, durables, frames, send_order
from reconciliation.transforms.claims import FOREIGN, RETURNED, STORED
from reconciliation.transforms.copies import of_stores, sides_compared

_PLACE = ("topic", "partition", "offset_first", "offset_last")
_ACCOUNT = ("store", "durable", "word")
_NUMBERS = 1 << 20
"""All deliveries of a run, each so often, are below 2**63."""


def partials(sums: DataFrame, name: str) -> DataFrame:
    """Those of one kind."""
    return sums.where(F.col("sum") == name)


def acts(sums: DataFrame) -> DataFrame:
    """As `decode.acts` has them."""
    return (
        partials(sums, "acts")
        .groupBy("store", "durable", "operation", "cause", "offset", "first", "last")
        .agg(
            F.max("node").alias("node"),
            F.min("lowest").alias("lowest"),
            F.max("highest").alias("highest"),
            F.sum("count").alias("count"),
            F.min("at").alias("at"),
            F.min_by("run", F.struct("at", "run")).alias("run"),
        )
    )


def mentions(sums: DataFrame, begun: DataFrame | None) -> DataFrame:
    """As `decode.mentions` has them; `cut`: a durable began between two entries that one partial aggregate is of."""
    spoken_of = partials(sums, "mentions").select(
        "store", "durable", "node", "last", "ended", "offset_first", "offset_last"
    )
    counts, cut = F.lit(True), F.lit(False)
    if begun is not None:
        spoken_of = spoken_of.join(F.broadcast(begun), ["store", "durable"], "left")
        counts = F.coalesce(F.col("offset_last") < F.col("journal"), F.lit(True))
        cut = F.coalesce(F.col("offset_first") < F.col("journal"), F.lit(False)) & ~counts
    return spoken_of.groupBy("store", "durable").agg(
        F.max("node").alias("node"),
        F.max(F.when(counts, F.col("last"))).alias("last"),
        F.max(F.when(counts, F.col("ended"))).alias("ended"),
        F.bool_or(cut).alias("cut"),
    )


def _of_stores(sums: DataFrame, name: str, nodes: DataFrame) -> DataFrame:
    """Of events that are there: with the stores that were read. `cut`: some of them are trimmed by now."""
    stores = nodes.where(F.col("standing") == "read").select("topic", "partition", "store", "first_kept")
    placed = partials(sums, name).drop("store").join(F.broadcast(stores), ["topic", "partition"], "inner")
    there = placed.where(F.col("offset_last") >= F.col("first_kept"))
    return there.withColumn("cut", F.col("offset_first") < F.col("first_kept"))


def event_parts(sums: DataFrame, nodes: DataFrame) -> DataFrame:
    """As `durables.event_parts` has them, but for the blocks that are cut."""
    whole = _of_stores(sums, "event_blocks", nodes).where(~_is_cut())
    return whole.select("store", "run", "block", "count", "xor", "offset_first")


def cut_places(sums: DataFrame, nodes: DataFrame) -> DataFrame:
    """(topic, partition, offset_first, offset_last): where the rows of those are. All of such a block is read: what one
    run stored there may reach over what another one did."""
    return _of_stores(sums, "event_blocks", nodes).where(_is_cut()).select(*_PLACE)


def _is_cut() -> Column:
    """A block of EIDs has the first kept one, which is not the first of the store."""
    return (F.col("first_kept") > 0) & (F.col("block") == F.shiftright("first_kept", EID_BITS))


def trimmed_blocks(sums: DataFrame, nodes: DataFrame) -> DataFrame:
    """What was published below the first kept EID of a store that was read, by (store, block), blocks that are cut left
    out. `distinct`: no EID is twice among them."""
    ranges = F.array_sort(F.collect_list(F.struct("lowest", "highest")))
    start = F.struct(F.lit(-1).cast("bigint").alias("highest"), F.lit(True).alias("rising"))
    passed = F.aggregate(
        ranges,
        start,
        lambda before, part: F.struct(
            part["highest"].alias("highest"),
            (before["rising"] & (part["lowest"] > before["highest"])).alias("rising"),
        ),
    )
    return _published(sums, nodes).where(_is_gone()).groupBy("store", "block").agg(
        F.sum("count").alias("published"), F.bit_xor("xor").alias("published_xor"),
        (passed["rising"] & (F.sum("count") == F.sum("n_distinct"))).alias("distinct"),
    )  # fmt: skip


def _published(sums: DataFrame, nodes: DataFrame) -> DataFrame:
    return partials(sums, "published").join(F.broadcast(_trimmed_stores(nodes)), "store", "inner")


def _trimmed_stores(nodes: DataFrame) -> DataFrame:
    """Of those that were read: store, first_kept."""
    return nodes.where((F.col("standing") == "read") & (F.col("first_kept") > 0)).select("store", "first_kept")


def _is_gone() -> Column:
    """All of a block of EIDs lies below the first kept one."""
    return F.shiftleft(F.col("block") + 1, EID_BITS) <= F.col("first_kept")


def trimmed(published: DataFrame, states: DataFrame, looked_at: DataFrame, rows: DataFrame) -> DataFrame:
    """As `durables.trimmed` has it. `published`: see `trimmed_blocks`; `rows`: what that has of the blocks that are
    `looked_at` event by event."""
    ended = states.where(F.col("kind") == "gone").select(
        "store", "block", "durable", F.lit("ended").alias("fate"), F.col("ends").alias("count")
    )
    publishes = published.select(
        "store", "block", F.lit(None).cast("string").alias("durable"), F.lit("publishes").alias("fate"),
        F.col("published").alias("count"),
    )  # fmt: skip
    whole = ended.unionByName(publishes).join(looked_at, ["store", "block"], "left_anti").drop("block")
    return whole.unionByName(rows).groupBy("store", "durable", "fate").agg(F.sum("count").alias("count"))


def cut_blocks(nodes: DataFrame) -> DataFrame:
    """(store, block): where the first kept EID of a store is, that is not its first."""
    return _trimmed_stores(nodes).select("store", blocks.eid_block_of("first_kept"))


def end_blocks(sums: DataFrame) -> DataFrame:
    """As `durables.end_blocks` has them, where nothing is void."""
    return durables.end_blocks_of(partials(sums, "end_blocks").where(~F.col("returned")))


def void(sums: DataFrame, voids: DataFrame) -> DataFrame:
    """The ends of which some may be void."""
    ends = partials(sums, "end_blocks").where(~F.col("returned"))
    ends = ends.withColumnsRenamed({"offset_first": "earliest", "eid_last": "highest_eid"})
    of_durables = voids.withColumnRenamed("eid", "from_eid")
    reached = (F.col("earliest") < F.col("before")) & (F.col("highest_eid") >= F.col("from_eid"))
    return ends.join(F.broadcast(of_durables), ["store", "durable"], "inner").where(reached).select("store", "durable")


def has_cut_copies(sums: DataFrame, nodes: DataFrame) -> bool:
    return bool(_of_stores(sums, "held", nodes).where("cut").take(1))


def copies(sums: DataFrame, nodes: DataFrame) -> DataFrame:
    """As `copies.compared` has them, where none is cut."""
    noted = partials(sums, "copied").select("store", "count", "xor", F.lit(True).alias("noted"))
    there = _of_stores(sums, "held", nodes).select("store", "count", "xor", F.lit(False).alias("noted"))
    return of_stores(noted.unionByName(there))


SOME = -(1 << 62)
"""Stands for the block of a run of which it is not known yet which."""


def doubtful_blocks(
    sums: DataFrame, runs: DataFrame, nodes: DataFrame, cells: DataFrame, *, has_trimmed: bool
) -> DataFrame:
    """(run, block): all that `blocks.suspects` would find, and those that the last `low` of their run cuts, or the
    first kept EID of a store. What differs within a run is SOME of it (`differing_blocks`): added up by run, sums are
    few rows at once."""
    answered = _answered(sums, nodes, cells)
    parts = [differing_runs(_sides(answered, sums, nodes)), _incomplete(answered, runs)]
    if has_trimmed:
        parts.append(_foreign_named(sums, nodes).where("cut").select("run", "block"))
    return reduce(DataFrame.unionByName, parts).distinct()


def differing_blocks(sums: DataFrame, nodes: DataFrame, cells: DataFrame, runs: Sequence[str]) -> DataFrame:
    """(run, block): what differs within these runs."""
    sides = _sides(_answered(sums, nodes, cells), sums, nodes).where(F.col("run").isin(*runs))
    pairs = sides_compared(sides, "is_claim", "run", "block", *_ACCOUNT)
    return pairs.where(~F.col("same")).select("run", "block").distinct()


def differing_runs(sides: DataFrame) -> DataFrame:
    """Each block counts for another number, so that one with too many rows does not make up for one with too few;
    hashes that are missing in one block are none of another one's."""
    number = F.xxhash64(F.coalesce("block", F.lit(SOME))).bitwiseAND(_NUMBERS - 1) + 1
    pairs = sides_compared(sides.withColumn("count", F.col("count") * number), "is_claim", "run", *_ACCOUNT)
    return pairs.where(~F.col("same")).select("run", F.lit(SOME).alias("block"))


def _answered(sums: DataFrame, nodes: DataFrame, cells: DataFrame) -> DataFrame:
    return claims.named(frames.with_facts(partials(sums, "claims"), cells), nodes)


def _sides(answered: DataFrame, sums: DataFrame, nodes: DataFrame) -> DataFrame:
    """What is claimed beside what is there, by store and durable, and by what became of it."""
    what = F.col("what")
    ended = F.concat_ws(" ", F.lit("journal"), what)
    word = F.when(what.isin(*STORED), F.lit("event")).when(what.isin(*TERMINAL, *RETURNED), ended)
    of_journal = partials(sums, "ends")
    nothing = F.lit(None).cast("string")
    sides = [
        _side(answered.withColumn("word", word), F.when(F.col("word") != "event", F.col("durable")), is_claim=True),
        _side(_foreign_named(sums, nodes).withColumn("word", F.lit("event")), nothing, is_claim=False),
        _side(of_journal.withColumn("word", claims.journalled()), F.col("durable"), is_claim=False),
    ]
    return reduce(DataFrame.unionByName, sides)


def _side(rows: DataFrame, durable: Column, *, is_claim: bool) -> DataFrame:
    named = rows.where(F.col("word").isNotNull())
    return named.select("run", "block", "store", durable.alias("durable"), "word", "count", "xor",
                        F.lit(is_claim).alias("is_claim"))  # fmt: skip


def _foreign_named(sums: DataFrame, nodes: DataFrame) -> DataFrame:
    """Events under the run of their key, as `claims.stored_events` has them."""
    run = F.coalesce("run", F.concat_ws(" ", F.lit(FOREIGN), "store"))
    return _of_stores(sums, "events", nodes).withColumn("run", run)


def _incomplete(answered: DataFrame, runs: DataFrame) -> DataFrame:
    """Blocks below a run's `low` that have not one claim of each seq, blocks that it cuts, or a store's first kept EID,
    and unknown answers."""
    columns = ("count", "places", "squares", "seq_first", "seq_last")
    unknown = F.col("what").endswith("unknown") | F.col("cut")
    claimed = answered.select("run", "block", *columns, unknown.alias("unknown"))
    due = blocks.expected(runs).select("run", blocks.block_of("seq"))
    rows = claimed.unionByName(due, allowMissingColumns=True)
    rows = rows.join(F.broadcast(runs.select("run", "low", "base")), "run", "left")
    below = F.col("seq_last") < F.col("low")
    cut = (F.col("seq_first") < F.col("low")) & ~below
    summed = rows.groupBy("run", "block").agg(
        F.max("low").alias("low"),
        F.max("base").alias("base"),
        F.coalesce(F.sum(F.when(below, F.col("count"))), F.lit(0)).alias("records"),
        F.sum(F.when(below, F.col("places"))).alias("places"),
        F.sum(F.when(below, F.col("squares"))).alias("squares"),
        F.bool_or(F.coalesce(cut | F.col("unknown"), F.lit(False))).alias("doubtful"),
    )
    return summed.where(blocks.incomplete() | F.col("doubtful")).select("run", "block")


def places_of_blocks(sums: DataFrame, nodes: DataFrame, doubtful: DataFrame) -> DataFrame:
    """(topic, partition, offset_first, offset_last): where the rows of these blocks of seqs are."""
    columns = ("run", "block", *_PLACE)
    frames_of = [partials(sums, name).select(*columns) for name in ("claims", "ends")]
    rows = reduce(DataFrame.unionByName, [*frames_of, _foreign_named(sums, nodes).select(*columns)])
    return rows.join(doubtful, ["run", "block"], "left_semi").select(*_PLACE)


def places_of_eids(sums: DataFrame, nodes: DataFrame, doubtful: DataFrame) -> DataFrame:
    """The same, of blocks of EIDs: store, block."""
    columns = ("store", "block", *_PLACE)
    rows = partials(sums, "end_blocks").select(*columns)
    rows = rows.unionByName(_of_stores(sums, "event_blocks", nodes).select(*columns))
    return rows.join(doubtful, ["store", "block"], "left_semi").select(*_PLACE)


def places_of_publishes(sums: DataFrame, nodes: DataFrame, doubtful: DataFrame) -> DataFrame:
    """The same, of what was published in stores that were trimmed."""
    rows = _published(sums, nodes).select("store", "block", *_PLACE)
    return rows.join(doubtful, ["store", "block"], "left_semi").select(*_PLACE)


def places_of_links(sums: DataFrame) -> DataFrame:
    """The same, of links whose events may not be in the order in which they were sent."""
    edges = partials(sums, "edges").withColumnRenamed("sender", "link_number")
    return send_order.doubtful(edges.drop("link").withColumnRenamed("link_number", "link")).select(*_PLACE)


def blocks_kept_nowhere(sums: DataFrame, due: DataFrame) -> DataFrame:
    """Blocks of EIDs of these stores with dead letters that are kept nowhere. `due`: see `copies.left_out`."""
    ends = partials(sums, "end_blocks").where(F.col("kept_nowhere") > 0)
    return ends.join(F.broadcast(due.select("store")), "store", "left_semi").select("store", "block").distinct()


def blocks_with_reasons(sums: DataFrame) -> DataFrame:
    """Blocks of EIDs with returns, or with ends that need a reason in the event."""
    ends = partials(sums, "end_blocks")
    wanted = F.col("returned") | (F.col("expired") > 0) | (F.col("filtered") > 0)
    return ends.where(wanted).select("store", "block")
