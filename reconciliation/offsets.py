"""Offset ranges and group positions of a realm on Kafka, asked with kafka-python: an auditor that shares no client code
with what it audits. Spark cannot read group offsets.

Order of the questions, so that races are harmless (each later answer may only know *more*):

1. end of outcomes: what an outcome record claims was stored before it was written, so all that follows must hold it;
2. first kept offsets: a trim after this makes a read fail loudly (and is retried), never look like a loss;
3. group positions and the end of state: both are computed from the journal, so they claim nothing beyond 4;
4. end of the journal: each entry speaks of an event that was stored before, so 5 must hold it;
5. ends of events, realm and tables.

Ends are last stable offsets (read_committed). Metadata may carry a trailing NUL that librdkafka adds: it is stripped.
Errors: `SourceError`. May import: kafka (kafka-python), the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from reconciliation.errors import SourceError
from reconciliation.ranges import Extent, GroupPosition, Range, kind_of

TIMEOUT_MS = 10_000
BOOTSTRAP_TIMEOUT_MS = 5_000
_SAME_NAME = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}


def client_settings(client: Mapping[str, str]) -> dict[str, Any]:
    """The gateway's librdkafka settings in kafka-python's words, as far as they say how to get in."""
    settings: dict[str, Any] = {ours: client[theirs] for theirs, ours in _SAME_NAME.items() if theirs in client}
    if "security_protocol" in settings:
        settings["security_protocol"] = settings["security_protocol"].upper()
    if "ssl.endpoint.identification.algorithm" in client:
        settings["ssl_check_hostname"] = client["ssl.endpoint.identification.algorithm"] != "none"
    return settings


def extent_of(bootstrap: str, prefix: str, client: Mapping[str, str]) -> Extent:
    """The ranges to read, in the order above."""
    settings = {
        "bootstrap_servers": bootstrap,
        "request_timeout_ms": TIMEOUT_MS,
        "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
        **client_settings(client),
    }
    try:
        consumer = KafkaConsumer(isolation_level="read_committed", enable_auto_commit=False, **settings)
    except KafkaError as error:
        raise SourceError(f"no Kafka at {bootstrap} ({error}); is it running, and is realm.bootstrap right?") from error
    try:
        return _ask(consumer, prefix, settings)
    except KafkaError as error:
        raise SourceError(f"Kafka at {bootstrap} did not answer: {error}") from error
    finally:
        consumer.close()


def _ask(consumer: Any, prefix: str, settings: Mapping[str, Any]) -> Extent:
    outcomes = TopicPartition(f"{prefix}.outcomes", 0)
    if outcomes.topic not in consumer.topics():
        raise SourceError(
            f"Kafka has no realm with the prefix {prefix!r} (no topic {outcomes.topic}); check realm.prefix"
        )
    ends = dict(consumer.end_offsets([outcomes]))
    places = _places(consumer, prefix)  # after the line above: every node that those outcomes speak of is in the list
    firsts = consumer.beginning_offsets(places)
    positions = _positions(settings, prefix)
    for kind in ("state", "journal"):
        ends |= consumer.end_offsets([place for place in places if place.topic == f"{prefix}.{kind}"])
    ends |= consumer.end_offsets([place for place in places if place not in ends])
    ranges = (Range(p.topic, p.partition, min(firsts[p], ends[p]), ends[p]) for p in places)
    return Extent(tuple(sorted(ranges)), positions)


def _places(consumer: Any, prefix: str) -> list[TopicPartition]:
    topics = [topic for topic in consumer.topics() if kind_of(prefix, topic)]
    return [
        TopicPartition(topic, number)
        for topic in sorted(topics)
        for number in sorted(consumer.partitions_for_topic(topic) or ())
    ]


def _positions(settings: Mapping[str, Any], prefix: str) -> tuple[GroupPosition, ...]:
    admin = KafkaAdminClient(**settings)
    try:
        names = sorted(_field(group, "group_id") for group in admin.list_groups())
        groups = [name for name in names if name.startswith((f"{prefix}.queue.", f"{prefix}.durable."))]
        offsets = admin.list_group_offsets(groups) if groups else {}
    finally:
        admin.close()
    return tuple(
        GroupPosition(group, place.topic, place.partition, found.offset, (found.metadata or "").rstrip("\0"))
        for group in groups
        for place, found in sorted(offsets[group].items())
        if found.offset >= 0
    )


def _field(group: Any, name: str) -> str:
    return str(group[name] if isinstance(group, dict) else getattr(group, name))
