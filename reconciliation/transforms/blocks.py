"""Where the three accounts disagree, found without joining rows: a digest per (run, block of 16,384 seqs).

Rows arrive nearly sorted, so partial aggregation collapses them before anything is shuffled. A block is *suspect*
when the counts or the xor of row hashes differ between claim and fact, when outcome records are missing or doubled
below the run's `low`, or when it holds something that only a row can answer (an unknown answer). Only suspect blocks
are folded row by row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.ranges import EID_BITS, SEQ_BITS, SEQ_SIZE
from reconciliation.model.tally import TERMINAL
from reconciliation.transforms.claims import RETURNED, STORED

EXPECTED = "expected"

_PLACE = ("seq", "store", "eid")
_END = ("seq", "store", "durable", "eid")


def block_of(seq: str) -> Column:
    return F.shiftright(seq, SEQ_BITS).alias("block")


def eid_block_of(eid: str) -> Column:
    return F.shiftright(eid, EID_BITS).alias("block")


def suspects(accounts: DataFrame, runs: DataFrame) -> DataFrame:
    """(run, block) to look at row by row. `accounts`: claims, events and terminals together; `runs`: run, low,
    state, base."""
    digests = _digests(accounts.join(F.broadcast(runs.select("run", "low", "base")), "run", "left"))
    return digests.where(_disagrees() | incomplete() | (F.col("unknown") > 0)).select("run", "block")


def _digests(accounts: DataFrame) -> DataFrame:
    what = F.col("what")
    below = F.col("seq") < F.col("low")
    claimed = ~(what.startswith("journal") | what.isin("event", EXPECTED))
    place = F.col("seq").bitwiseAND(SEQ_SIZE - 1)
    return accounts.groupBy("run", block_of("seq")).agg(
        *_pair("stored", what.isin(*STORED), _PLACE),
        *_pair("event", what == "event", _PLACE),
        *_pair("told", what.isin(*TERMINAL, *RETURNED), _END, F.concat_ws(" ", F.lit("journal"), "what")),
        *_pair("ended", what.startswith("journal"), _END, what),
        F.count_if(what.endswith("unknown")).alias("unknown"),
        F.max("low").alias("low"),
        F.max("base").alias("base"),
        F.count_if(claimed & below).alias("records"),
        F.sum(F.when(claimed & below, place)).alias("places"),
        F.sum(F.when(claimed & below, place * place)).alias("squares"),
    )


def _pair(name: str, condition: Column, columns: tuple[str, ...], *more: Column) -> list[Column]:
    """A count beside the xor: a row that is there twice would cancel itself out."""
    return [
        F.count_if(condition).alias(f"{name}_count"),
        F.bit_xor(F.when(condition, F.xxhash64(*columns, *more))).alias(f"{name}_xor"),
    ]


def _disagrees() -> Column:
    pairs = (("stored", "event"), ("told", "ended"))
    same = [
        (F.col(f"{claim}_count") == F.col(f"{fact}_count")) & F.col(f"{claim}_xor").eqNullSafe(F.col(f"{fact}_xor"))
        for claim, fact in pairs
    ]
    return ~(same[0] & same[1])


def incomplete() -> Column:
    """Each seq from the base to low - 1 has exactly one record: compare count, sum and sum of squares with what they
    must be."""
    start = F.col("block") * SEQ_SIZE
    first = F.least(F.greatest(F.coalesce("base", F.lit(1)) - start, F.lit(0)), F.lit(SEQ_SIZE))
    end = F.greatest(F.least(F.col("low") - start, F.lit(SEQ_SIZE)), first)  # places first <= p < end
    count = end - first
    total = _sum_below(end) - _sum_below(first)
    squares = _squares_below(end) - _squares_below(first)
    return F.coalesce(
        (F.col("records") != count)
        | (F.coalesce("places", F.lit(0)) != total)
        | (F.coalesce("squares", F.lit(0)) != squares),
        F.lit(False),
    )


def _sum_below(end: Column) -> Column:
    return end * (end - 1) / 2


def _squares_below(end: Column) -> Column:
    return end * (end - 1) * (2 * end - 1) / 6


def expected(runs: DataFrame) -> DataFrame:
    """A row for every block from a run's base up to its `low`, so that a block of which nothing is left is missed all
    the same."""
    blocks = F.sequence(F.shiftright("base", SEQ_BITS), F.shiftright(F.col("low") - 1, SEQ_BITS))
    rows = runs.where(F.col("low") > F.col("base")).select("run", F.explode(blocks).alias("block"))
    return rows.select("run", F.shiftleft("block", SEQ_BITS).alias("seq"), F.lit(EXPECTED).alias("what"))


def within(rows: DataFrame, suspect: DataFrame) -> DataFrame:
    """Only the rows of suspect blocks."""
    return rows.withColumn("block", block_of("seq")).join(suspect, ["run", "block"], "left_semi").drop("block")
