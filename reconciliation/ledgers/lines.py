"""Client ledgers as they are written: a line of JSON for each step of a message (docs/client-ledgers.md).

A line that is none is named (Q1): what it said is not known. Errors: `SettingsError` where there is no ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.model.folder import Folder
from reconciliation.model.settings import SettingsError

SUFFIX = ".jsonl"
OUTCOMES = ("accepted", "rejected", "released", "modified")
UNKNOWN = "unknown"
"""Of a settlement: by a state that the client's library chose."""
NEEDED = {
    "opened": ("container",),
    "sent": ("node", "id"),
    "told": ("id", "outcome"),
    "received": (),
    "settled": ("outcome",),
    "committed": ("transaction",),
    "closed": (),
}
"""What a line says, and what it must have besides `v`, `client`, `at`. A line of a consumer has `tag` or `id`."""
_BY_CONSUMERS = ("received", "settled")
_LINE = """v int, what string, client string, at bigint, container string, node string, id string, tag string,
body string, outcome string, `transaction` string"""
_TAG = r"^[0-9]{1,12}:[0-9]{1,18}\z"
_BODY = r"^[0-9a-f]{8}\z"
_AT_MOST = 4_102_444_800_000_000  # the year 2100: nanoseconds are no microseconds
_HIDDEN = ("_", ".")
"""Spark passes over files whose names begin so."""
_SHOWN = 5
_EXCERPT = 80


@dataclass(frozen=True, slots=True)
class Lines:
    """`steps`: one row a line that is one; `container` is that of its client, `store` and `eid` are what its tag names.
    `counts`: by what they say. `unreadable`: how many are none, and `examples` of them, file and text."""

    steps: DataFrame
    counts: dict[str, int]
    clients: int
    unreadable: int
    examples: list[tuple[str, str]]

    def of(self, what: str) -> DataFrame:
        return self.steps.where(F.col("what") == what)

    def findings(self) -> Iterator[dict[str, Any]]:
        """Q1: what could not be read."""
        if self.unreadable:
            places = ", ".join(f"{file} ({text})" for file, text in self.examples)
            words = f"so many lines of client ledgers are none, or say nothing that is known: {places}"
            yield {"class": "Q1", "count": self.unreadable, "detail": words}


def check(folder: Folder) -> None:
    """There are ledgers, and Spark reads them all."""
    names = [name for name in folder.names() if name.endswith(SUFFIX)] if folder.exists() else []
    if not names:
        raise SettingsError(f"--ledgers: no *{SUFFIX} in {folder}: the clients write them there, one file or more each")
    if hidden := [name for name in names if name.startswith(_HIDDEN)]:
        raise SettingsError(f"--ledgers: {hidden[0]} in {folder} would not be read: let its name begin otherwise")


def read(spark: SparkSession, folder: Folder) -> Lines:
    """All that is written there by now."""
    check(folder)
    text = spark.read.option("pathGlobFilter", f"*{SUFFIX}").text(folder.url)
    written = text.where(F.trim("value") != "").select("value", F.col("_metadata.file_name").alias("file"))
    parsed = written.withColumn("line", F.from_json("value", _LINE)).select("value", "file", "line.*")
    marked = parsed.withColumn("is_line", F.coalesce(_is_line(), F.lit(False))).persist()
    wrong = marked.where(~F.col("is_line"))
    counted = {row["what"]: row["count"] for row in marked.where("is_line").groupBy("what").count().collect()}
    excerpts = wrong.orderBy("file", "value").limit(_SHOWN).collect() if (unreadable := wrong.count()) else []
    steps = _with_places(marked.where("is_line").drop("is_line", "value", "file", "v"))
    clients = marked.where("is_line").select("client").distinct().count()
    return Lines(steps, counted, clients, unreadable, [(row["file"], row["value"][:_EXCERPT]) for row in excerpts])


def _is_line() -> Column:
    whole = [(F.col("what") == what) & _has(*names) for what, names in NEEDED.items()]
    names_message = ~F.col("what").isin(*_BY_CONSUMERS) | F.col("tag").isNotNull() | F.col("id").isNotNull()
    return (
        (F.col("v") == 1)
        & _has("client")
        & F.coalesce(F.col("at").between(0, _AT_MOST), F.lit(False))
        & reduce(or_, whole)
        & names_message
        & F.coalesce(F.col("tag").rlike(_TAG), F.lit(True))
        & F.coalesce(F.col("body").rlike(_BODY), F.lit(True))
        & F.coalesce(F.col("outcome").isin(*OUTCOMES) | _is_left_to_a_library(), F.lit(True))
    )


def _is_left_to_a_library() -> Column:
    return (F.col("outcome") == UNKNOWN) & (F.col("what") == "settled")


def _has(*names: str) -> Column:
    return reduce(lambda all_, name: all_ & F.col(name).isNotNull(), names, F.lit(True))


def _with_places(lines: DataFrame) -> DataFrame:
    """With the container of each client (its name, where no line says it), and what a tag names."""
    opened = lines.where(F.col("what") == "opened")
    containers = opened.groupBy("client").agg(F.min("container").alias("of_client"))
    closed = lines.where(F.col("what") == "closed").groupBy("client").agg(F.max("at").alias("closed_at"))
    known = lines.join(containers, "client", "left").join(closed, "client", "left")
    tag = F.split("tag", ":")
    return (
        known.withColumn("container", F.coalesce("of_client", "client"))
        .withColumns({"store": F.get(tag, 0).cast("bigint"), "eid": F.get(tag, 1).cast("bigint")})
        .drop("of_client", "tag")
        .persist()
    )
