"""The messages that the stores hold, read with their octets: which message-id and which body each EID has.

They are read after the ledgers: what a client was told before stands there already. Errors: `SourceError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.ledgers.parsing import parsed
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import Extent, Range
from reconciliation.model.realm_nodes import Node
from reconciliation.model.schemas import MESSAGE_DDL
from reconciliation.model.settings import Realm
from reconciliation.read import export, landing, sources
from reconciliation.transforms.frames import local_table

_STORES = "store bigint, node string, topic string, partition int"


@dataclass(frozen=True, slots=True)
class Messages:
    """`rows`: store, node, eid, at, run, seq, id, body, is_read. `extent`: as far as they were read."""

    rows: DataFrame
    extent: Extent


def read(spark: SparkSession, realm: Realm, nodes: Mapping[int, Node], target: Folder) -> Messages:
    """Of all stores in `nodes`, as they are now. Their octets are below `target` then."""
    topics = {node.topic for node in nodes.values()}
    target.make()

    def written(extent: Extent) -> DataFrame:
        return _written(spark, realm, [span for span in extent.ranges if span.topic in topics], target)

    records = landing.read_again(landing.extent_of(realm), written, lambda: landing.extent_of(realm))
    extent = landing.extent_of(realm)  # what is trimmed or deleted by now may be missing
    rows = [(store, node.name, node.topic, node.partition) for store, node in nodes.items()]
    stores = local_table(spark, rows, _STORES)
    placed = parsed(records).join(F.broadcast(stores), ["topic", "partition"])
    columns = ("store", "node", F.col("offset").alias("eid"), (F.col("timestamp") * 1000).alias("at"))
    return Messages(placed.select(*columns, "run", "seq", "id", "body", "is_read").persist(), extent)


def _written(spark: SparkSession, realm: Realm, spans: Sequence[Range], target: Folder) -> DataFrame:
    ranges = [span for span in spans if span.first < span.end]
    if not ranges:
        return local_table(spark, [], MESSAGE_DDL)
    if realm.path is not None:
        with target.filled() as local:
            export.export_messages(realm.path, {span.topic for span in ranges}, local)
    else:
        sources.land_messages(spark, realm.bootstrap, realm.client, ranges, target.url)
    return spark.read.schema(MESSAGE_DDL).parquet(target.url)
