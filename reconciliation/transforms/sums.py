"""Partial aggregates of the rows of one link: the job adds them to those of other links (`transforms.added`), and so
needs no row of what agrees. Where the files are on this machine, `reconciliation.summing` makes the same numbers.

Nothing that later records decide is in them: no store's standing, no run's last `low`, no rule of a cell. Each names
the topic and the partition of its records, and the offsets from where to where they go: where only the rows can tell,
those are read.
"""

from __future__ import annotations

from functools import reduce
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from reconciliation.model import schemas
from reconciliation.model.acts import DEAD_LETTER, WAYS
from reconciliation.model.ranges import SEQ_SIZE
from reconciliation.model.window import BEGINNING, END
from reconciliation.transforms import decode, runs, send_order, tallies
from reconciliation.transforms.blocks import block_of, eid_block_of
from reconciliation.transforms.durables import lowest_covered

_SPAN = (F.min, "offset_first"), (F.max, "offset_last")


def of_link(outcomes: DataFrame, journal: DataFrame, events: DataFrame, prefix: str) -> DataFrame:
    """All in one table (`schemas.SUMS`). `outcomes` and `journal` are decoded, `events` are as they were landed."""
    groups, settled = decode.outcome_groups(outcomes), decode.settlements(journal)
    named = decode.named_events(events)
    of_outcomes = {
        "runs": runs.partial(outcomes, "outcomes"),
        "tallies": tallies.tallies(groups, BEGINNING, END),
        "claims": _claims(groups),
        "published": _published(groups),
        "edges": send_order.edges(groups).withColumnRenamed("link", "sender"),
    }
    of_journal = {
        "runs": runs.partial(journal, "journal"),
        "notes": runs.notes(journal),
        "acts": decode.acts(journal),
        "mentions": _mentions(journal),
        "ends": _ends(settled),
        "end_blocks": _end_blocks(settled),
        "copied": _copied(settled),
    }
    of_events = {"events": _events(named), "event_blocks": _event_blocks(named), "held": _held(named)}
    tables = [_shaped(frame, name, f"{prefix}.outcomes") for name, frame in of_outcomes.items()]
    tables += [_shaped(frame, name, f"{prefix}.journal") for name, frame in of_journal.items()]
    tables += [_shaped(frame, name) for name, frame in of_events.items()]
    return reduce(DataFrame.unionAll, tables)


def _shaped(frame: DataFrame, name: str, topic: str = "") -> DataFrame:
    """`topic`: what it is of, which has one partition; empty: the rows say it."""
    values = {"sum": F.lit(name)} | ({"topic": F.lit(topic), "partition": F.lit(0)} if topic else {})
    values |= {column: F.col(column) for column in frame.columns if column not in values}
    fields = cast(StructType, StructType.fromDDL(schemas.SUMS)).fields
    return frame.select(
        *(values.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in fields)
    )


def _offsets(column: str = "offset") -> list[Column]:
    return [least_or_most(column).alias(name) for least_or_most, name in _SPAN]


def _count(*hashed: str) -> list[Column]:
    """A count beside the xor: a row that is there twice would cancel itself out."""
    return [F.count("*").alias("count"), F.bit_xor(F.xxhash64(*hashed)).alias("xor")]


def _claims(groups: DataFrame) -> DataFrame:
    """Deliveries by their block of seqs and by all that decides what they claim. `lowest`: of the EIDs; -1: some have
    none."""
    eid = F.coalesce("eid", F.lit(-1))
    place = F.col("seq").bitwiseAND(SEQ_SIZE - 1)
    keys = ("run", "store", "durable", "direction", "answer", "operation", "digest", "table", "cell")
    return decode.deliveries(groups).groupBy(*keys, block_of("seq")).agg(
        *_count("seq", "eid"), *_offsets(), F.min("seq").alias("seq_first"), F.max("seq").alias("seq_last"),
        F.sum(place).alias("places"), F.sum(place * place).alias("squares"),
        F.min(eid).alias("lowest"), F.max(eid).alias("highest"),
    )  # fmt: skip


def _published(groups: DataFrame) -> DataFrame:
    """What was answered stored, by block of EIDs: it stands for events that the store has no more."""
    stored = groups.where((F.col("direction") == "publish") & (F.col("answer") == "stored"))
    named = decode.deliveries(stored).where(F.col("eid").isNotNull())
    return named.groupBy("run", "store", eid_block_of("eid")).agg(
        *_count("eid"), *_offsets(), F.min("eid").alias("lowest"), F.max("eid").alias("highest"),
        F.count_distinct("eid").alias("n_distinct"),
    )  # fmt: skip


def _ends(settled: DataFrame) -> DataFrame:
    """What the journal says of deliveries, by their block of seqs."""
    keys = ("run", "store", "durable", "operation", "failed")
    journalled = settled.where(F.col("seq").isNotNull())
    return journalled.groupBy(*keys, block_of("seq")).agg(*_count("seq", "eid"), *_offsets())


def _end_blocks(settled: DataFrame) -> DataFrame:
    """The same, and what the realm ended by itself, by block of EIDs and by run; returns beside ends."""
    returned = (F.col("operation") == "return").alias("returned")
    ways = [F.count_if(F.col("operation") == operation).alias(name) for operation, name in WAYS.items()]
    kept_nowhere = F.count_if((F.col("operation") == DEAD_LETTER) & F.col("to").isNull()).alias("kept_nowhere")
    return settled.groupBy("run", "store", "durable", returned, eid_block_of("eid")).agg(
        *_count("eid"), *_offsets(), F.max("eid").alias("eid_last"), *ways, kept_nowhere, lowest_covered()
    )


def _copied(settled: DataFrame) -> DataFrame:
    """Copies that the journal tells of, by the store that they are in."""
    noted = settled.where(F.col("to").isNotNull()).withColumnRenamed("store", "from_store")
    return noted.groupBy(F.col("to").alias("store")).agg(*_count("from_store", "eid"))


def _mentions(journal: DataFrame) -> DataFrame:
    """What the journal speaks of, and when."""
    spoken_of = decode.spoken_of_stores(journal).groupBy("store", "durable")
    return spoken_of.agg(*decode.mentioned(F.col("at")), *_offsets())


def _events(named: DataFrame) -> DataFrame:
    """Published ones by their block of seqs; those that no gateway published by their EID."""
    seq = F.when(F.col("run").isNull(), F.col("eid")).otherwise(F.col("seq"))
    published = named.where(~F.col("copy")).withColumn("seq", seq)
    return published.groupBy("topic", "partition", "run", block_of("seq")).agg(*_count("seq", "eid"), *_offsets("eid"))


def _event_blocks(named: DataFrame) -> DataFrame:
    """All of them by block of EIDs, and by run: it is not known yet where in the journal that began."""
    keys = ("topic", "partition", "run", eid_block_of("eid"))
    return named.groupBy(*keys).agg(*_count("eid"), *_offsets("eid"))


def _held(named: DataFrame) -> DataFrame:
    """Copies that are there."""
    return named.where("copy").groupBy("topic", "partition").agg(*_count("from_store", "from_eid"), *_offsets("eid"))
