"""Where records come from: a realm on Kafka through the Spark connector, or the snapshot of an embedded one.

Both ways give the same landed Parquet, one directory `kind=...` for each kind of topic.
Errors: `SourceError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.model.errors import SourceError
from reconciliation.model.ranges import SINGLE, Extent, Range
from reconciliation.read.realm_file import IDENTITY

_SAME_NAME = {"security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm"}


def land_kafka(
    spark: SparkSession, bootstrap: str, prefix: str, client: Mapping[str, str], extent: Extent, target: str
) -> None:
    """Read the ranges of `extent`, committed records only, and write them below `target`, a URL, in one job."""
    ranges = [span for span in extent.ranges if span.first < span.end]
    if ranges:
        records = _landed(_records(spark, bootstrap, client, ranges), prefix)
        with _reading(bootstrap):
            records.write.partitionBy("kind").parquet(target, mode="overwrite")


def land_messages(
    spark: SparkSession, bootstrap: str, client: Mapping[str, str], ranges: Sequence[Range], target: str
) -> None:
    """The records of these ranges as they are stored, with headers (`schemas.MESSAGE`)."""
    records = _records(spark, bootstrap, client, ranges).where(F.col("value").isNotNull())
    columns = ("topic", "partition", "offset", F.unix_millis("timestamp").alias("timestamp"), "key", "value", "headers")
    with _reading(bootstrap):
        records.select(*columns).write.parquet(target, mode="overwrite")


def _records(spark: SparkSession, bootstrap: str, client: Mapping[str, str], ranges: Sequence[Range]) -> DataFrame:
    return (
        spark.read.format("kafka")
        .options(**{"kafka.bootstrap.servers": bootstrap, "kafka.isolation.level": "read_committed"})
        .options(**java_settings(client))
        .options(assign=_assign(ranges), failOnDataLoss="true", includeHeaders="true")
        .options(startingOffsets=_by_partition(ranges, lambda span: span.first))
        .options(endingOffsets=_by_partition(ranges, lambda span: span.end))
        .load()
    )


@contextmanager
def _reading(bootstrap: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        first_line = str(error).strip().splitlines()[0]
        raise SourceError(f"Spark could not read Kafka at {bootstrap}: {first_line}") from error


def _landed(records: DataFrame, prefix: str) -> DataFrame:
    kind = _kind(prefix)
    kept = records.where((kind != "events") | F.col("value").isNotNull())  # a tombstone is no event
    return kept.select(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("timestamp"),
        identity().alias("key"),
        F.when(kind != "events", F.col("value")).alias("value"),
        kind.alias("kind"),
    )


def identity() -> Column:
    """What names an event: the value of its first header where that is an identity, else its key (docs/records.md)."""
    first = F.try_element_at("headers", F.lit(1))
    named = (first["key"] == IDENTITY) & first["value"].cast("string").rlike("^[23];")
    return F.when(named, first["value"]).otherwise(F.col("key"))


def _kind(prefix: str) -> Column:
    kind = F.when(F.col("topic") == f"{prefix}.{SINGLE[0]}", F.lit(SINGLE[0]))
    for single in SINGLE[1:]:
        kind = kind.when(F.col("topic") == f"{prefix}.{single}", F.lit(single))
    return kind.otherwise(F.lit("events"))  # no other topic is in the ranges


def _assign(ranges: Sequence[Range]) -> str:
    topics: dict[str, list[int]] = {}
    for span in ranges:
        topics.setdefault(span.topic, []).append(span.partition)
    return json.dumps(topics)


def _by_partition(ranges: Sequence[Range], offset: Callable[[Range], int]) -> str:
    offsets: dict[str, dict[str, int]] = {}
    for span in ranges:
        offsets.setdefault(span.topic, {})[str(span.partition)] = offset(span)
    return json.dumps(offsets)


def java_settings(client: Mapping[str, str]) -> dict[str, str]:
    """The gateway's librdkafka settings in the Java client's words, as far as they say how to get in."""
    settings = {f"kafka.{name}": value for name, value in client.items() if name in _SAME_NAME}
    if "security.protocol" in client:
        settings["kafka.security.protocol"] = client["security.protocol"].upper()
    if "sasl.mechanisms" in client:
        settings["kafka.sasl.mechanism"] = client["sasl.mechanisms"]
    if "sasl.username" in client:
        mechanism = settings.get("kafka.sasl.mechanism", "PLAIN")
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        settings["kafka.sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required "
            f"username={_quoted(client['sasl.username'])} password={_quoted(client.get('sasl.password', ''))};"
        )
    if "ssl.ca.location" in client:
        settings |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": client["ssl.ca.location"]}
    if "ssl.certificate.location" in client:
        settings |= {
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.certificate.chain": Path(client["ssl.certificate.location"]).read_text(),
            "kafka.ssl.keystore.key": Path(client.get("ssl.key.location", "")).read_text(),
        }
    if "ssl.key.password" in client:
        settings["kafka.ssl.key.password"] = client["ssl.key.password"]
    if settings.get("kafka.ssl.endpoint.identification.algorithm") == "none":
        settings["kafka.ssl.endpoint.identification.algorithm"] = ""
    return settings


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
