"""How a cluster and its topics are set up, asked by kafka-python; what the user may not see is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from native_backend.log.port import Inspection, TopicState

_NAMES = (
    *("cleanup.policy", "retention.ms", "retention.bytes", "min.insync.replicas", "unclean.leader.election.enable"),
    "message.timestamp.before.max.ms",  # since Kafka 3.6
)
_WITHOUT_MARKERS = range(30, 34)
"""Levels of `metadata.version` that 4.3.0, 4.3.1 and 4.4.0 know; 4.2 knows up to 29 (Kafka's MetadataVersion)."""
RISK = (
    "Kafka 4.3.0, 4.3.1 and 4.4.0 may leave a transaction open where a partition has no leader for a moment; what was "
    "stored behind it cannot be read, and the abort that opens the partition loses what was committed"
)


def inspect(admin: KafkaAdminClient, topics: Sequence[str], *, whole: bool = True) -> Inspection:
    """Raises `KafkaError`."""
    brokers = admin.describe_cluster()["brokers"]
    version = str(admin.get_broker_version_data(brokers[0]["broker_id"])) if whole else ""
    wanted = [ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(_NAMES)) for topic in topics]
    settings = admin.describe_configs(wanted, config_filter="all").get("topic", {}) if wanted else {}
    states, unread = {}, set()
    for topic in admin.describe_topics(list(topics)) if topics else ():
        name, partitions = topic["name"], topic["partitions"]
        if topic["error_code"] == 0 and partitions and settings.get(name):
            states[name] = TopicState(
                {key: str(setting["value"]) for key, setting in settings[name].items()},
                min(len(partition["replica_nodes"]) for partition in partitions),
                min(len(partition["isr_nodes"]) for partition in partitions),
            )
        elif topic["error_code"] != kafka_errors.UnknownTopicOrPartitionError.errno:
            unread.add(name)
    free_bytes = _free(admin) if whole else None
    version = version.removeprefix("<BrokerVersionData ").rstrip(">")
    return Inspection(len(brokers), version, free_bytes, states, unread, _risk(admin))


def _risk(admin: KafkaAdminClient) -> str:
    """Of the broker that answers: others may be of another release while a cluster is upgraded."""
    try:
        features = admin.describe_features()
    except kafka_errors.UnsupportedVersionError:  # before 2.4
        return ""
    _, newest = features.get("metadata.version", {}).get("supported", (0, 0))
    return RISK if newest in _WITHOUT_MARKERS else ""


def _free(admin: KafkaAdminClient) -> int | None:
    """Brokers say it since 3.3, to those who may describe the cluster."""
    try:
        brokers: list[dict[str, Any]] = admin.describe_log_dirs()
    except kafka_errors.KafkaError:
        return None
    directories = [directory for broker in brokers for directory in broker["log_dirs"]]
    free = [directory["usable_bytes"] for directory in directories if directory.get("usable_bytes", -1) >= 0]
    return min(free, default=None)
