"""`KafkaLog`: the log port on Kafka.

Appends go out by one idempotent producer, evidence by another (ADR 0051), transactions by a producer a shard on its
own thread, readers are one consumer each; control calls by kafka-python, but for group offsets, which are set too
often. `poll` serves the callbacks and has to be called about every millisecond while anything is under way.
May import: the standard library, confluent-kafka, `native_backend.log`, `retrying`, `rights`, this driver.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from native_backend.log import (
    Append,
    Completion,
    Failure,
    LogError,
    Reader,
    Records,
    Topic,
    TopicSpec,
    Transacted,
    Write,
)
from native_backend.logs.kafka import settings
from native_backend.logs.kafka.control import Control
from native_backend.logs.kafka.entry import Entry, quieten
from native_backend.logs.kafka.headed_producer import HeadedProducer
from native_backend.logs.kafka.offsets import GroupOffsets, Positions
from native_backend.logs.kafka.producer import NOBODY
from native_backend.logs.kafka.producer import Producer as ColumnProducer
from native_backend.logs.kafka.publisher import IN_FLIGHT_BYTES_MAX, Publisher
from native_backend.logs.kafka.ranges import Putter, Ranges
from native_backend.logs.kafka.reader import KafkaReader
from native_backend.logs.kafka.slot import Slot, claim
from native_backend.logs.kafka.watch import Watch
from native_backend.retrying import Retries
from native_backend.rights import Rights

WATCH_S = 5.0
_CLOSE_PAUSE_S = 0.002


class KafkaLog:
    """A driver of `native_backend.log.Log`."""

    kind = "kafka"
    reads_lag = True
    poll_interval_s = 0.001

    def __init__(self, bootstrap: str, client: settings.Client, retries: Retries | None = None) -> None:
        self._bootstrap = bootstrap
        self._client = client
        self._is_closed = False
        self._entry = Entry()
        quieten()
        one_sided = settings.one_sided(client)
        if one_sided:
            told = f"realm.client: {', '.join(one_sided)}: the client for control calls knows no such setting"
            raise LogError(Failure("unexpected", told))
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        on_error = self._entry.on_error
        try:
            self._publisher = _publisher(settings.publish(bootstrap, client, on_error), self.descriptor)
            self._evidence = _publisher(settings.evidence(bootstrap, client, on_error), NOBODY)
            Consumer(settings.tail(bootstrap, client, self._entry.on_error)).close()  # a wrong setting is told now
        except (KafkaException, ValueError) as error:
            os.close(self.descriptor)
            raise LogError(Failure("unexpected", f"realm.client: {error}")) from error
        self._slots: dict[str, Slot] = {}
        self._retired: list[Slot] = []
        self._fenced: list[Completion] = []
        retries = retries or Retries()
        ranging = settings.ranges(bootstrap, client, self._entry.on_error)
        self._ranges = Ranges(lambda: Consumer(ranging), self._entry, retries)
        self._control = Control(settings.admin(bootstrap, client), retries, self._ranges.reach)
        altering = settings.altering(bootstrap, client, self._entry.on_error)
        self._offsets = GroupOffsets(lambda: AdminClient(altering), retries)  # type: ignore[arg-type]  # a callback, too
        self._putter = Putter(lambda: Producer(settings.single(bootstrap, client, self._entry.on_error)))
        self._watch = Watch(lambda names: self._control.describe(names, WATCH_S))

    def append(self, batch: Append) -> None:
        (self._evidence if batch.aside else self._publisher).append(batch)

    def transact(self, shard: str, writes: Sequence[Write], owner: object) -> None:
        slot = self._slots.get(shard)
        if slot is None:
            failure = Failure("fenced", f"shard {shard} is not claimed")
            self._fenced.append(Transacted(owner, [-1] * len(writes), failure))
            return
        slot.submit(writes, owner)

    def open_reader(
        self, topic: str, partition: int, start: int, stamped: bool = False, headed: bool = False
    ) -> Reader:
        config = settings.tail(self._bootstrap, self._client, self._entry.on_error)
        return KafkaReader(config, self._watch, topic, partition, start, stamped, headed)

    def poll(self) -> list[Completion]:
        completions: list[Completion] = [*self._publisher.poll(), *self._evidence.poll()]
        for slot in [*self._retired, *self._slots.values()]:
            completions += slot.poll()
        if self._retired:
            self._retired = [slot for slot in self._retired if not slot.is_done]
        if self._fenced:
            completions += self._fenced
            self._fenced = []
        return completions

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Not needed: this driver has a poll interval, and a descriptor."""

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        return self._control.create_topics(specs, deadline_s)

    def grow_topic(self, name: str, partitions: int, deadline_s: float = 10.0) -> None:
        self._control.grow_topic(name, partitions, deadline_s)

    def topics(self, prefix: str, deadline_s: float = 10.0) -> dict[str, Topic]:
        return self._control.topics(prefix, deadline_s)

    def find_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> dict[str, Topic]:
        return self._control.describe(list(names), deadline_s) if names else {}

    def delete_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> None:
        self._control.delete_topics(names, deadline_s)

    def bounds(self, topic: str, partition: int, deadline_s: float = 10.0) -> tuple[int, int]:
        return self._ranges.bounds(topic, partition, deadline_s)

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        return self._ranges.read(topic, partition, start, count_max, deadline_s)

    def put(self, topic: str, key: bytes, value: bytes | None, deadline_s: float = 10.0) -> int:
        return self._putter.put(topic, (key,), (value,), deadline_s)[0]

    def put_all(
        self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float = 10.0
    ) -> list[int]:
        return self._putter.put(topic, keys, values, deadline_s)

    def claim(self, shard: str, deadline_s: float = 10.0) -> None:
        deadline = time.monotonic() + deadline_s
        held = self._slots.pop(shard, None)
        if held is not None:
            self._retired.append(held)
            held.retire(deadline_s / 2)
        producers = [
            Producer(settings.transactional(self._bootstrap, self._client, name, self._entry.on_error))
            for name in (shard, f"{shard}.second")
        ]
        self._slots[shard] = claim(shard, producers, max(deadline - time.monotonic(), 0.1))

    def trim(self, topic: str, partition: int, before: int, deadline_s: float = 10.0) -> None:
        self._control.trim(topic, partition, before, deadline_s)

    def project(self, group: str, positions: Positions, deadline_s: float = 10.0) -> None:
        self._offsets.alter(group, positions, deadline_s)

    def projected(self, group: str, deadline_s: float = 10.0) -> Positions:
        return self._control.projected(group, deadline_s)

    def forget(self, group: str, deadline_s: float = 10.0) -> None:
        self._control.forget(group, deadline_s)

    def rights(self, deadline_s: float = 10.0) -> Rights | None:
        return self._control.rights(deadline_s)

    def certain_copies(self, topic: str, deadline_s: float = 10.0) -> int | None:
        return self._control.certain_copies(topic, deadline_s)

    def close(self, deadline_s: float = 3.0) -> None:
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
        for slot in self._slots.values():
            slot.retire(max(deadline - time.monotonic(), 0.1))
        self._watch.stop(max(deadline - time.monotonic(), 0.1))
        self._ranges.close()
        self._putter.close()
        self._control.close(max(deadline - time.monotonic(), 0.1))
        os.close(self.descriptor)


def _publisher(config: settings.Config, ready: int) -> Publisher:
    """`ready`: an eventfd that is to tell of answers, or `NOBODY`. Half of the producer's queue is used: keys and
    headers may count, too."""
    queue_bytes = int(str(config["queue.buffering.max.kbytes"])) * 1024
    return Publisher(
        lambda: ColumnProducer(config, ready),
        lambda: HeadedProducer(config),
        int(str(config["queue.buffering.max.messages"])),
        int(str(config["message.max.bytes"])),
        in_flight_bytes_max=min(queue_bytes // 2, IN_FLIGHT_BYTES_MAX),
    )
