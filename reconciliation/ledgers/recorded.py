"""What the gateways recorded, as far as clients know it, too: outcomes of publishes, and states of deliveries.

Source: docs/records.md "Outcomes".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.read.catalog import Catalog
from reconciliation.transforms.frames import local_table

_GROUPS = """run string, digest string, groups array<struct<
direction string, container string, node string, store bigint, cause string, `table` string, cell int, outcome string,
seq array<bigint>, eid array<bigint>, message_ids array<array<string>>>>"""
_STATES = "digest string, cell int, `state` string"
_SETTLE = "settle"
TRANSACTIONAL = "transactional"


@dataclass(frozen=True, slots=True)
class Recorded:
    """`publishes`: run, seq, recorded (the outcome). `refused`: id, refused_as, of messages that were not stored and
    whose message-id is recorded. `settled`: container, store, eid, state, as consumers' dispositions were read.
    `stores`: node, store, of all that some outcome names."""

    publishes: DataFrame
    refused: DataFrame
    settled: DataFrame
    stores: DataFrame


def recorded(spark: SparkSession, records: DataFrame, catalog: Catalog) -> Recorded:
    """`records`: the landed outcome records."""
    parsed = records.select(F.from_json(F.col("value").cast("string"), _GROUPS).alias("record"))
    groups = parsed.select("record.run", "record.digest", F.explode("record.groups").alias("group"))
    groups = groups.select("run", "digest", "group.*").persist()
    publishes = groups.where(F.col("direction") == "publish")
    deliveries = publishes.select("run", F.col("outcome").alias("recorded"), F.explode("seq").alias("seq"))
    named = publishes.select(F.col("outcome").alias("refused_as"), F.explode("message_ids").alias("named"))
    refused = named.select(F.get("named", F.lit(1)).alias("id"), "refused_as")
    states = local_table(spark, sorted({*_states(catalog)}), _STATES)
    settled = groups.where((F.col("table") == _SETTLE) & (F.col("cause") == "disposition"))
    of_each = settled.select("container", "store", "digest", "cell", F.explode("eid").alias("eid"))
    with_state = of_each.join(F.broadcast(states), ["digest", "cell"])
    named_stores = groups.where(F.col("store").isNotNull()).select("node", "store").distinct()
    return Recorded(deliveries, refused, with_state.select("container", "store", "eid", "state"), named_stores)


def _states(catalog: Catalog) -> Iterable[tuple[str, int, str]]:
    """(digest, cell, state) of each cell of the tables `settle`; how a message was modified is not told apart."""
    for digest, table, cell, *_ in catalog.cells:
        state = catalog.facts.fact(digest, _SETTLE, cell, "state") if table == _SETTLE else None
        if state is not None:
            yield digest, cell, "modified" if state.startswith("modified") else state
