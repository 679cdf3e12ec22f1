"""Records of links (`reconciliation.read.increments`), as far as they count."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.model import schemas
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import Kind
from reconciliation.model.state import CHAINED, Link


def folders_of(links: Folder, chosen: Iterable[Link], kind: Kind) -> list[Folder]:
    """Those of the links that have records of the kind."""
    return [folder for link in chosen if (folder := links / f"link={link.name}" / f"kind={kind}").exists()]


_LANDED = tuple(f"kind={kind}" for kind in CHAINED)


def files_of(links: Folder, name: str) -> str:
    """A digest of the names of a link's Parquet files of records: it tells whether all are there."""
    own = links / f"link={name}"
    there = set(own.names())
    files = [
        f"{folder}/{file}"
        for folder in _LANDED
        if folder in there
        for file in (own / folder).names()
        if file.endswith(".parquet")
    ]
    return blake2b("\n".join(sorted(files)).encode(), digest_size=16).hexdigest()


def counting_records(spark: SparkSession, links: Folder, folders: Iterable[Folder], counting: DataFrame) -> DataFrame:
    """`counting`: by link, topic and partition, the offset from which on records count (`schemas.COUNTING`)."""
    reader = spark.read.option("basePath", links.url).schema(f"link string, {schemas.RECORD_DDL}")
    records = reader.parquet(*(folder.url for folder in folders))
    known = records.join(F.broadcast(counting), ["link", "topic", "partition"], "inner")
    return known.where(F.col("offset") >= F.col("counts")).select(
        "topic", "partition", "offset", "timestamp", "key", "value"
    )
