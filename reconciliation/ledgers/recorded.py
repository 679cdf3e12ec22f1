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
class string, seq array<bigint>, eid array<bigint>, message_ids array<array<string>>>>,
decisions array<struct<what string, container string>>"""
_STATES = "digest string, cell int, `state` string"
_SETTLE = "settle"
_BROKEN = ("cut-off", "stopped")
"""Causes of deliveries that come back although their client has not ended the link."""
_ENDED = "lost"
_ENDS_LINKS = ("fault", "subscription")
"""Decisions that end a consumer's link."""
TRANSACTIONAL = "transactional"


@dataclass(frozen=True, slots=True)
class Recorded:
    """`publishes`: run, seq, recorded (the outcome). `refused`: id, refused_as, of messages that were not stored and
    whose message-id is recorded. `settled`: container, store, eid, state, as consumers' dispositions were read.
    `broken`: container, store, eid, broken (how often it came back because the gateway had ended the link, or may have,
    or the connection broke). `stores`: node, store, of all that some outcome names."""

    publishes: DataFrame
    refused: DataFrame
    settled: DataFrame
    broken: DataFrame
    stores: DataFrame


def recorded(spark: SparkSession, records: DataFrame, catalog: Catalog) -> Recorded:
    """`records`: the landed outcome records."""
    parsed = records.select(F.from_json(F.col("value").cast("string"), _GROUPS).alias("record")).persist()
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
    broken = _broken(groups, parsed.select(F.explode("record.decisions").alias("decision")).select("decision.*"))
    return Recorded(deliveries, refused, with_state.select("container", "store", "eid", "state"), broken, named_stores)


def _broken(groups: DataFrame, decisions: DataFrame) -> DataFrame:
    """Who ended a link is not recorded. A gateway does it after a fatal error, a fault, or with a subscription."""
    fatal = groups.where((F.col("direction") == "subscribe") & (F.col("class") == "fatal")).select("container")
    ended = fatal.union(decisions.where(F.col("what").isin(*_ENDS_LINKS)).select("container")).distinct()
    of_client = groups.where(F.col("cause") == _ENDED).join(ended, "container", "left_semi")
    rows = groups.where(F.col("cause").isin(*_BROKEN)).unionByName(of_client)
    of_each = rows.where(F.col("table") == _SETTLE).select("container", "store", F.explode("eid").alias("eid"))
    return of_each.groupBy("container", "store", "eid").agg(F.count("*").alias("broken"))


def _states(catalog: Catalog) -> Iterable[tuple[str, int, str]]:
    """(digest, cell, state) of each cell of the tables `settle`; how a message was modified is not told apart."""
    for digest, table, cell, *_ in catalog.cells:
        state = catalog.facts.fact(digest, _SETTLE, cell, "state") if table == _SETTLE else None
        if state is not None:
            yield digest, cell, "modified" if state.startswith("modified") else state
