"""Deliveries counted by everything that the tables and the peers see, and each combination checked against its rule
(A3).

Works on groups, not deliveries: a turn's group is one row. The check is a join with the expanded tables, which are
data: there is no second implementation of the mapping.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.tally import KEYS


def tallies(groups: DataFrame, since: int, until: int) -> DataFrame:
    """One row per combination, with its count, its span and its earliest group as example. Times in microseconds."""
    first = F.struct(
        F.col("at"), F.col("run"), F.get("seq", F.lit(0)).alias("seq"), F.get("eid", F.lit(0)).alias("eid"),
        F.col("name").alias("link"), F.col("container"),
    )  # fmt: skip
    inside = (F.col("at") >= since) & (F.col("at") < until)
    return groups.groupBy(*KEYS, inside.alias("inside")).agg(
        F.sum(F.size("seq")).alias("count"),
        F.min("at").alias("at_first"),
        F.max("at").alias("at_last"),
        F.min(first).alias("example"),
    )


def added(partials: DataFrame) -> DataFrame:
    """Several tallies as one."""
    return partials.groupBy(*KEYS, "inside").agg(
        F.sum("count").alias("count"),
        F.min("at_first").alias("at_first"),
        F.max("at_last").alias("at_last"),
        F.min("example").alias("example"),
    )


def judged(tallied: DataFrame, cells: DataFrame) -> DataFrame:
    """Adds `mismatch`: what differs from the active rules, null when nothing does or the cell is not known
    (`model.tally.unknown_cells`)."""
    settle = cells.select(*(F.col(name).alias(name) for name in cells.columns))
    answer = cells.select(
        F.col("digest"),
        *(F.col(name).alias(f"answer_{name}") for name in cells.columns if name != "digest"),
    )
    both = tallied.join(F.broadcast(settle), ["digest", "table", "cell"], "left").join(
        F.broadcast(answer), ["digest", "answer_table", "answer_cell"], "left"
    )
    differences = F.concat_ws("; ", _rule_differs(), _answer_rule_differs(), _operation_differs(), *_result_differs())
    return both.select(*tallied.columns, F.nullif(differences, F.lit("")).alias("mismatch"))


def _rule_differs() -> Column:
    return _differs("rule", F.col("rule"), F.col("expected_rule"), F.col("expected_rule").isNotNull())


def _answer_rule_differs() -> Column:
    expected = F.col("answer_expected_rule")
    return _differs("answer rule", F.col("answer_rule"), expected, expected.isNotNull())


def _operation_differs() -> Column:
    """`reassemble` gathers frames before the transfer is decided again; the group then says what came of it."""
    expected = F.col("then_operation")
    return _differs("operation", F.col("operation"), expected, expected.isNotNull() & (expected != "reassemble"))


def _result_differs() -> list[Column]:
    """The answer's rule has the last word; `asked` hands it back to the first rule. An empty text stands for none."""
    deferred = F.col("answer_then_outcome") == "asked"
    answered = F.col("answer_expected_rule").isNotNull() & ~F.coalesce(deferred, F.lit(False))
    known = F.col("expected_rule").isNotNull() & (
        F.col("answer_table").isNull() | F.col("answer_expected_rule").isNotNull()
    )
    checks = []
    for name in ("outcome", "condition", "class"):
        expected = F.when(answered, F.col(f"answer_then_{name}")).otherwise(F.col(f"then_{name}"))
        absent = F.lit("none" if name == "outcome" else "")
        checks.append(_differs(name, F.coalesce(name, absent), F.coalesce(expected, absent), known))
    return checks


def _differs(name: str, recorded: Column, expected: Column, known: Column) -> Column:
    text = F.concat(F.lit(f"{name} "), _shown(recorded), F.lit(" where the table says "), _shown(expected))
    return F.when(known & ~recorded.eqNullSafe(expected), text)


def _shown(value: Column) -> Column:
    return F.when(F.coalesce(value, F.lit("")) == "", F.lit("none")).otherwise(value)
