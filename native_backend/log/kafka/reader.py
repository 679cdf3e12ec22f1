"""A tail reader: one consumer assigned to one partition; `consume(n, 0)` takes what librdkafka has fetched already.

The consumer notices neither that its topic was deleted nor that it was made again (it reads on in the new one), so
every read looks at what the watch (`watch.py`) has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from native_backend.log.kafka.causes import failure_in, failure_of, is_retriable
from native_backend.log.kafka.settings import Config
from native_backend.log.kafka.watch import TopicWatcher, WatchedTopic
from native_backend.log.port import Failure, Taken
from native_backend.log.record_headers import headed


def key_of(message: Message) -> bytes | None:
    """With its headers."""
    headers: Any = message.headers()  # a list of pairs, or None: what was read has no other form
    return headed(message.key(), headers)


class KafkaReader:
    """Reads committed records forward."""

    def __init__(
        self,
        config: Config,
        watch: TopicWatcher,
        topic: str,
        partition: int,
        start: int,
        stamped: bool,
        headed: bool = False,
        closed: Callable[[KafkaReader], None] = lambda _: None,
    ) -> None:
        """`closed`: called once, when it has been."""
        self.times_ms: list[int] = []
        self._closed = closed
        self._is_open = True
        self._stamped = stamped
        self._headed = headed
        self._position = start
        self._watch = watch
        self._watched: WatchedTopic = watch.open(topic, partition)
        self._consumer = Consumer(config)
        self._consumer.assign([TopicPartition(topic, partition, start)])

    @property
    def position(self) -> int:
        return self._position

    def read(self, count_max: int) -> Taken | Failure | None:
        if self._watched.failure is not None:
            return self._watched.failure
        try:
            messages = self._consumer.consume(count_max, 0)
        except KafkaException as error:
            return failure_in(error)
        if not messages:
            return None
        keys = self._keys(messages)
        values: list[bytes | None] = [message.value() for message in messages]
        if None in keys or None in values:  # an error has no key: only then is it worth asking each
            return self._sort_out(messages)
        offsets: list[int] = [message.offset() for message in messages]  # type: ignore[misc]  # an error's may be None
        self._position = offsets[-1] + 1
        if self._stamped:
            self.times_ms = [message.timestamp()[1] for message in messages]
        return offsets, values, keys  # type: ignore[return-value]  # no None among the values

    def close(self) -> None:
        """At once: librdkafka joins its threads before it is done, and behind an offset that is out of range it may
        wait for ever. The thread that serves every peer does not wait with it."""
        if not self._is_open:
            return
        self._is_open = False
        self._closed(self)
        self._watch.close(self._watched)
        Thread(target=self._consumer.close, name="reader-close", daemon=True).start()

    def _keys(self, messages: list[Message]) -> list[bytes | None]:
        if self._headed:
            return [key_of(message) for message in messages]
        return [message.key() for message in messages]

    def _fail(self, error: KafkaError) -> None:
        failure = failure_of(error)
        if failure.cause == "retention":
            self._watch.suspect(self._watched, failure)
        else:
            self._watched.failure = failure

    def _sort_out(self, messages: list[Message]) -> Taken | Failure | None:
        """Records up to the first error; the error itself when it comes first."""
        offsets: list[int] = []
        values: list[bytes] = []
        keys: list[bytes | None] = []
        self.times_ms = []
        for message in messages:
            error = message.error()
            if error is not None:
                if is_retriable(error.code()):
                    continue
                self._fail(error)
                break
            offset, value = message.offset(), message.value()
            assert offset is not None
            self._position = offset + 1
            if value is not None:
                offsets.append(offset)
                values.append(value)
                keys += self._keys([message])
                self.times_ms.append(message.timestamp()[1])
        if offsets:
            return offsets, values, keys
        return self._watched.failure
