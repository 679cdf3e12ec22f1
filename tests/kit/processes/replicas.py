"""Which brokers of a real cluster hold a partition, and which of them leads: what tests look at and change there.

    replicas = Replicas(brokers)
    replicas.place("events", 0, [1, 2])      # only brokers 1 and 2 hold it, and 1 leads
    replicas.elect_any("events", 0)          # an unclean election: one that is up leads, whatever it lacks

Brokers are named by their number, from 1. Source: Kafka's admin protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from tests.kit.patience import until
from tests.kit.processes.broker import Broker

NO_LEADER = -1
PREFERRED, UNCLEAN = 0, 1  # types of an election


class Replicas:
    """See the module's docstring."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._addresses = [broker.bootstrap for broker in brokers]
        self._admin = KafkaAdminClient(bootstrap_servers=self._addresses)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Its number; NO_LEADER: there is none; 0: the broker that was asked went away, or does not know it yet."""
        described = self._described(topic, partition)
        return int(described["leader_id"]) if described else 0

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """The brokers that have all of it; empty when that is not known now."""
        described = self._described(topic, partition)
        return sorted(described["isr_nodes"]) if described else []

    def place(self, topic: str, partition: int, brokers: Sequence[int]) -> None:
        """Moves it to these brokers, and returns when all of them have all of it and the first one leads."""
        self._change(lambda admin: admin.alter_partition_reassignments({TopicPartition(topic, partition): [*brokers]}))
        until(lambda: self.in_sync(topic, partition) == sorted(brokers), "the replicas to move")
        if self.leader(topic, partition) != brokers[0]:
            self._change(lambda admin: admin.elect_leaders(PREFERRED, {topic: [partition]}))
        until(lambda: self.leader(topic, partition) == brokers[0], "the first one to lead")

    def elect_any(self, topic: str, partition: int) -> int:
        """The new leader, of those that are up, whatever it lacks."""
        self._change(lambda admin: admin.elect_leaders(UNCLEAN, {topic: [partition]}))
        until(lambda: self.leader(topic, partition) > 0, "a leader")
        return self.leader(topic, partition)

    def _change(self, ask: Callable[[KafkaAdminClient], object]) -> None:
        """A client keeps to the controller that it found first, which may have been killed since: each try has a client
        of its own."""

        def is_done() -> bool:
            try:
                with closing(KafkaAdminClient(bootstrap_servers=self._addresses)) as admin:
                    ask(admin)
            except KafkaError:
                return False
            return True

        until(is_done, "a controller that does it")

    def close(self) -> None:
        self._admin.close()

    def _described(self, topic: str, partition: int) -> dict[str, Any]:
        try:
            topics: list[dict[str, Any]] = self._admin.describe_topics([topic])
        except KafkaError:
            return {}
        return next((part for part in topics[0]["partitions"] if part["partition_index"] == partition), {})
