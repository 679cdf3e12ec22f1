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
    return Inspection(len(brokers), version.removeprefix("<BrokerVersionData ").rstrip(">"), free_bytes, states, unread)


def _free(admin: KafkaAdminClient) -> int | None:
    """Brokers say it since 3.3, to those who may describe the cluster."""
    try:
        brokers: list[dict[str, Any]] = admin.describe_log_dirs()
    except kafka_errors.KafkaError:
        return None
    directories = [directory for broker in brokers for directory in broker["log_dirs"]]
    free = [directory["usable_bytes"] for directory in directories if directory.get("usable_bytes", -1) >= 0]
    return min(free, default=None)
