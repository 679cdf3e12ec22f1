"""Gateway runs as the evidence shows them: record numbers without holes, the last `low`, and how a run closed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.runs import RECORDED


def numbering(outcomes: DataFrame, journal: DataFrame, before: int, hidden_from: int, young: int) -> DataFrame:
    """One row per (source, run): how its records are numbered. A null run counts unreadable records. `before`: notes of
    the journal at and above that offset may speak of outcome records that were not read. `hidden_from`: from there on
    some of the journal could not be read. `young`: what was written after that time cannot have been trimmed."""
    turns = outcomes.select(
        F.lit("outcomes").alias("source"),
        "offset",
        "run",
        "n",
        "at",
        "low",
        "next",
        "closed",
        "digest",
        F.lit(None).cast("bigint").alias("recorded"),
    )
    commits = journal.select(
        F.lit("journal").alias("source"),
        "offset",
        "run",
        "n",
        "at",
        F.lit(None).cast("bigint").alias("low"),
        F.lit(None).cast("bigint").alias("next"),
        F.lit(None).cast("int").alias("closed"),
        F.lit(None).cast("string").alias("digest"),
        F.when(F.col("offset") < before, _recorded()).alias("recorded"),
    )
    return (
        turns.unionByName(commits)
        .groupBy("source", "run")
        .agg(
            F.count("*").alias("records"),
            *_numbers(),
            *_marks(),
            *_noted(young),
            F.max(F.when(F.col("offset") < hidden_from, F.col("at"))).alias("at_read"),
        )
    )


def _numbers() -> list[Column]:
    """Of the records of a run: how they are numbered, when they were written, and where they are."""
    return [
        F.min("n").alias("n_first"),
        F.max("n").alias("n_last"),
        F.count_distinct("n").alias("n_distinct"),
        F.min("at").alias("at_first"),
        F.max("at").alias("at_last"),
        F.min("offset").alias("offset_first"),
        F.max("offset").alias("offset_last"),
        F.min_by("at", "offset").alias("at_offset_first"),
    ]


def _marks() -> list[Column]:
    """Of outcome records: how far they came, and by which tables."""
    return [
        F.max("low").alias("low"),
        F.min_by("next", F.struct("n", "offset")).alias("next"),
        F.max("closed").alias("closed"),
        F.collect_set("digest").alias("digests"),
    ]


def _noted(young: int) -> list[Column]:
    """How many outcome records the journal notes: at most, in its old notes, and in its young ones at least."""
    return [
        F.max("recorded").alias("recorded"),
        F.max(F.when(F.col("at") <= young, F.col("recorded"))).alias("noted_old"),
        F.min(F.when(F.col("at") > young, F.col("recorded"))).alias("noted_young"),
    ]


def _recorded() -> Column:
    """The highest `n` of an outcome record that a journal record notes as stored; null where it notes none."""
    notes = F.filter("entries", lambda entry: entry["operation"] == RECORDED)
    return F.array_max(
        F.flatten(F.transform(notes, lambda entry: F.transform(entry["runs"], lambda run: F.get(run, 1))))
    )


def partial(records: DataFrame, source: str) -> DataFrame:
    """How the records of a link are numbered, by run (`model.run_sums` adds them up): of the notes see `notes`."""
    return records.groupBy(F.lit(source).alias("source"), "run").agg(
        F.count("*").alias("count"),
        F.count_if(F.col("at").isNull() | F.col("n").isNull()).alias("undated"),
        *_numbers(),
        *(_marks() if source == "outcomes" else ()),
    )


def notes(journal: DataFrame) -> DataFrame:
    """The journal records that note how many outcome records were stored."""
    return journal.select("run", "offset", "at", _recorded().alias("recorded")).where(F.col("recorded").isNotNull())


def added_notes(notes: DataFrame, before: int, young: int) -> DataFrame:
    """By run, as `numbering` has it."""
    return notes.where(F.col("offset") < before).groupBy("run").agg(*_noted(young))


def missing_numbers(records: DataFrame, runs: list[str], first: int | None) -> DataFrame:
    """The numbers that are not there, for the few runs that miss some: (run, from, to) for each hole."""
    of_runs = records.where(F.col("run").isin(runs))
    present = of_runs.groupBy("run").agg(F.array_sort(F.collect_set("n")).alias("n"))
    start = F.lit(first) if first is not None else F.array_min("n")
    neighbours = F.arrays_zip(F.concat(F.array(start - 1), "n").alias("left"), F.col("n").alias("right"))
    pairs = present.select("run", F.explode(F.filter(neighbours, lambda p: p["right"].isNotNull())).alias("pair"))
    holes = pairs.where(F.col("pair.right") > F.col("pair.left") + 1)
    return holes.select("run", (F.col("pair.left") + 1).alias("first"), (F.col("pair.right") - 1).alias("last"))
