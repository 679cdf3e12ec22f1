"""The control calls on Kafka. Topics and settings go by kafka-python; ranges, single records and claims by librdkafka;
group offsets by its admin client, as they are set too often for a call that waits for the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from native_backend.log.kafka import settings
from native_backend.log.kafka.admin import AdminCalls
from native_backend.log.kafka.batches import BatchSizes
from native_backend.log.kafka.claims import Claims
from native_backend.log.kafka.login_errors import LoginErrors
from native_backend.log.kafka.offsets import GroupOffsets
from native_backend.log.kafka.ranges import RangeReader, SyncProducer
from native_backend.log.port import Positions, Records, Topic, TopicSpec
from native_backend.log.retry import Retries


class KafkaControl(AdminCalls):
    """`native_backend.log.port.Control`. `own_bytes_max`: no larger record is handed over by the client."""

    def __init__(
        self,
        bootstrap: str,
        client: settings.Client,
        retries: Retries,
        login_errors: LoginErrors,
        batches: BatchSizes,
        own_bytes_max: int,
    ) -> None:
        on_error = login_errors.on_error
        ranging = settings.ranges(bootstrap, client, on_error)
        altering = settings.altering(bootstrap, client, on_error)
        self._client, self._batches, self._own_bytes_max = client, batches, own_bytes_max
        self._ranges = RangeReader(lambda: Consumer(ranging), login_errors, retries)
        self._offsets = GroupOffsets(lambda: AdminClient(altering), retries)  # type: ignore[arg-type]  # a callback, too
        self._putter = SyncProducer(lambda: Producer(settings.single(bootstrap, client, on_error)))
        self.claims = Claims(lambda name: Producer(settings.transactional(bootstrap, client, name, on_error)), batches)
        super().__init__(settings.admin(bootstrap, client), retries, self._ranges.reach)

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        topics = super().create_topics(specs, deadline_s)
        self._ranges.expect(topic.name for topic in topics)
        return topics

    def delete_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> None:
        self._ranges.forget(names)
        super().delete_topics(names, deadline_s)

    def bounds(self, topic: str, partition: int, deadline_s: float = 10.0) -> tuple[int, int]:
        return self._ranges.bounds(topic, partition, deadline_s)

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        return self._ranges.read(topic, partition, start, count_max, deadline_s)

    def holds_only(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        records: int,
        transactions: int,
        deadline_s: float = 10.0,
    ) -> bool:
        """A transaction leaves one mark in each partition."""
        return end - start == records + transactions

    def put(self, topic: str, key: bytes, value: bytes | None, deadline_s: float = 10.0) -> int:
        return self._putter.put(topic, (key,), (value,), deadline_s)[0]

    def put_all(
        self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float = 10.0
    ) -> list[int]:
        return self._putter.put(topic, keys, values, deadline_s)

    def claim(self, shard: str, deadline_s: float = 10.0) -> None:
        self.claims.claim(shard, deadline_s)

    def project(self, group: str, positions: Positions, deadline_s: float = 10.0) -> None:
        self._offsets.alter(group, positions, deadline_s)

    def record_bytes_max(self, topics: Sequence[str], deadline_s: float = 10.0) -> dict[str, int]:
        """No more than the client hands over, either."""
        own, configured = self._own_bytes_max, "message.max.bytes" in self._client
        unread = own if configured else settings.RECORD_BYTES_EVERYWHERE
        limits = super().record_bytes_max(topics, deadline_s)
        self._batches.learn(limits)
        return {topic: min(own, limits.get(topic, unread)) for topic in topics}

    def close(self, deadline_s: float = 3.0) -> None:
        deadline = time.monotonic() + deadline_s
        self._ranges.close()
        self._putter.close()
        self._offsets.close()
        super().close(max(deadline - time.monotonic(), 0.1))
