"""`KafkaLog`: the log port on Kafka.

Appends go out by one idempotent producer, evidence by another (ADR 0051), transactions by a producer a shard on its
own thread, readers are one consumer each. `poll` serves the callbacks and has to be called about every millisecond
while anything is under way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaException

from native_backend.log.kafka import settings
from native_backend.log.kafka.batches import BatchSizes
from native_backend.log.kafka.control import KafkaControl
from native_backend.log.kafka.headed_producer import HeaderProducer
from native_backend.log.kafka.login_errors import LoginErrors, silence_client_log
from native_backend.log.kafka.producer import NO_DESCRIPTOR
from native_backend.log.kafka.producer import Producer as ColumnProducer
from native_backend.log.kafka.publisher import IN_FLIGHT_BYTES_MAX, Publisher
from native_backend.log.kafka.reader import KafkaReader
from native_backend.log.kafka.watch import TopicWatcher
from native_backend.log.port import Append, Completion, Failure, LogError, Reader, Write
from native_backend.log.retry import Retries

WATCH_S = 5.0
_CLOSE_PAUSE_S = 0.002


class KafkaLog:
    """A driver of `native_backend.log.port.Log`."""

    kind = "kafka"
    poll_interval_s = 0.001

    def __init__(self, bootstrap: str, client: settings.Client, retries: Retries | None = None) -> None:
        self._bootstrap = bootstrap
        self._client = client
        self._is_closed = False
        self._login_errors = LoginErrors()
        silence_client_log()
        one_sided = settings.one_sided(client)
        if one_sided:
            description = f"realm.client: {', '.join(one_sided)}: the client for admin calls knows no such setting"
            raise LogError(Failure("unexpected", description))
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        on_error = self._login_errors.on_error
        batches = BatchSizes()
        publishing = settings.publish(bootstrap, client, on_error)
        record_bytes_max = int(str(publishing["message.max.bytes"]))
        try:
            self._publisher = _publisher(publishing, self.descriptor, batches)
            self._evidence = _publisher(settings.evidence(bootstrap, client, on_error), NO_DESCRIPTOR, batches)
            Consumer(settings.tail(bootstrap, client, on_error)).close()  # raises for a wrong setting
        except (KafkaException, ValueError) as error:
            os.close(self.descriptor)
            raise LogError(Failure("unexpected", f"realm.client: {error}")) from error
        self.control = KafkaControl(
            bootstrap, client, retries or Retries(), self._login_errors, batches, record_bytes_max
        )
        self._claims = self.control.claims
        self._readers: set[KafkaReader] = set()
        self._watch = TopicWatcher(lambda names: self.control.existing(names, WATCH_S))

    def append(self, batch: Append) -> None:
        (self._evidence if batch.aside else self._publisher).append(batch)

    def transact(self, shard: str, writes: Sequence[Write], owner: object) -> None:
        self._claims.transact(shard, writes, owner)

    def open_reader(
        self, topic: str, partition: int, start: int, stamped: bool = False, headed: bool = False
    ) -> Reader:
        config = settings.tail(self._bootstrap, self._client, self._login_errors.on_error)
        reader = KafkaReader(
            config, self._watch, topic, partition, start, stamped, headed, closed=self._readers.discard
        )
        self._readers.add(reader)
        return reader

    def poll(self) -> list[Completion]:
        return [*self._publisher.poll(), *self._evidence.poll(), *self._claims.poll()]

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Not needed: this driver has a poll interval, and a descriptor."""

    def close(self, deadline_s: float = 3.0) -> None:
        """Ends every client that this log has made. One that is left to the garbage collector keeps its threads and
        connections until then: a process that opens many logs has thousands of them."""
        if self._is_closed:
            return
        self._is_closed = True
        deadline = time.monotonic() + deadline_s
        producers = (self._publisher, self._evidence)
        while not all(producer.is_idle for producer in producers) and time.monotonic() < deadline:
            for producer in producers:
                producer.poll()
            time.sleep(_CLOSE_PAUSE_S)
        for producer in producers:
            producer.close()
        for reader in [*self._readers]:
            reader.close()
        self._claims.close(deadline)
        self._watch.stop(max(deadline - time.monotonic(), 0.1))
        self.control.close(max(deadline - time.monotonic(), 0.1))
        os.close(self.descriptor)


def _publisher(config: settings.Config, ready: int, batches: BatchSizes) -> Publisher:
    """`ready`: an eventfd that is to tell of answers, or `NO_DESCRIPTOR`. Half of the producer's queue is used: keys
    and headers may count, too."""
    queue_bytes = int(str(config["queue.buffering.max.kbytes"])) * 1024
    return Publisher(
        lambda: ColumnProducer(config, ready),
        lambda: HeaderProducer(config),
        int(str(config["queue.buffering.max.messages"])),
        int(str(config["message.max.bytes"])),
        in_flight_bytes_max=min(queue_bytes // 2, IN_FLIGHT_BYTES_MAX),
        batches=batches,
    )
