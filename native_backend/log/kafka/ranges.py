"""Bounds and ranges of a partition, and single records put into it: the blocking calls that go over librdkafka."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from native_backend.log.kafka.causes import CLOSED, delivery_failure_of, failure_in, failure_of, is_retriable
from native_backend.log.kafka.login_errors import LoginErrors
from native_backend.log.kafka.producer import discard
from native_backend.log.kafka.publisher import UNKNOWN
from native_backend.log.kafka.reader import key_of
from native_backend.log.port import Failure, LogError, Records
from native_backend.log.retry import Retries

CONSUME_MAX = 5000
REACH_S = 2.0  # for one question, until it is asked again
PROPAGATION_S = 30.0
"""So long after a topic was made a broker may know nothing of it: the client's producers wait as long for it."""
_NOT_THERE = frozenset({*UNKNOWN, KafkaError.UNKNOWN_TOPIC_OR_PART})
_UNREACHED = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})
Answered = Callable[[KafkaError | None, Message], None]


class RangeReader:
    """One consumer, assigned anew for every range; one caller at a time."""

    def __init__(self, make: Callable[[], Consumer], login_errors: LoginErrors, retries: Retries) -> None:
        self._make = make
        self._retries = retries
        self._login_errors = login_errors
        self._consumer: Consumer | None = None
        self._lock, self._is_closed = threading.Lock(), False
        self._made: dict[str, float] = {}  # topics, and when; monotonic seconds

    def expect(self, topics: Iterable[str]) -> None:
        """They are made now: a broker that knows nothing of them yet is asked again."""
        now_s = time.monotonic()
        recent = {topic: at_s for topic, at_s in self._made.items() if now_s - at_s < PROPAGATION_S}
        self._made = {**recent, **dict.fromkeys(topics, now_s)}

    def forget(self, topics: Collection[str]) -> None:
        """They are deleted now: what a broker says of them is true."""
        self._made = {topic: at_s for topic, at_s in self._made.items() if topic not in topics}

    def bounds(self, topic: str, partition: int, deadline_s: float) -> tuple[int, int]:
        """Of a read-committed consumer, the high watermark is the last stable offset."""
        deadline = time.monotonic() + deadline_s
        with self._taken(deadline_s) as consumer:
            return self._bounds(consumer, topic, partition, deadline)

    def reach(self, deadline_s: float) -> None:
        """Until the cluster has answered once."""
        with self._taken(deadline_s):
            return

    def read(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float) -> Records:
        deadline = time.monotonic() + deadline_s
        with self._taken(deadline_s) as consumer:
            first, end = self._bounds(consumer, topic, partition, deadline)
            if start < first:
                raise LogError(Failure("retention", f"{topic}/{partition} begins at {first}"))
            if start >= end:
                return Records([], [], [], [], start)
            consumer.assign([TopicPartition(topic, partition, start)])
            try:
                return _read(consumer, start, end, count_max, deadline)
            finally:
                consumer.unassign()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._drop()

    def _reached(self, consumer: Consumer, deadline: float) -> Consumer:
        try:
            while not self._reaches(consumer, deadline):
                pass
        except BaseException:
            consumer.close()
            raise
        return consumer

    def _reaches(self, consumer: Consumer, deadline: float) -> bool:
        """False: ask again. Raises KafkaException and LogError."""
        try:
            consumer.list_topics(timeout=min(max(deadline - time.monotonic(), 0.1), REACH_S))
        except KafkaException:
            self._raise_refusal(consumer)
            if time.monotonic() >= deadline:
                raise
            return False
        return True

    def _bounds(self, consumer: Consumer, topic: str, partition: int, deadline: float) -> tuple[int, int]:
        place = TopicPartition(topic, partition)

        def ask() -> tuple[int, int]:
            try:
                marks: tuple[int, int] = consumer.get_watermark_offsets(place, max(deadline - time.monotonic(), 0.1))
                return marks
            except KafkaException:
                self._raise_refusal(consumer)
                raise

        def code_of(error: BaseException) -> str | None:
            """What the consumer remembers of a topic that it once missed is no answer, nor is what a leader says that
            does not know it yet: the cluster is asked."""
            if not isinstance(error, KafkaException):
                return None
            code = error.args[0].code()
            may_be_there = is_retriable(code) or (code in _NOT_THERE and self._may_be_there(consumer, topic, deadline))
            return str(error.args[0].name()) if may_be_there else None

        return self._retries.call(ask, code_of, deadline - time.monotonic())

    def _may_be_there(self, consumer: Consumer, topic: str, deadline: float) -> bool:
        """To ask the cluster is what makes the consumer forget that it missed a partition."""
        try:
            metadata = consumer.list_topics(topic, max(deadline - time.monotonic(), 0.1)).topics.get(topic)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._PARTIAL:
                raise  # the consumer reaches no broker: `_taken` replaces it
            return True  # an answer without brokers
        is_new = time.monotonic() - self._made.get(topic, float("-inf")) < PROPAGATION_S
        return is_new or (metadata is not None and metadata.error is None)

    def _raise_refusal(self, consumer: Consumer) -> None:
        """Where the login is refused, do not wait for the deadline."""
        consumer.poll(0)  # hears `error_cb`; nothing is assigned
        if self._login_errors.refusal is not None:
            raise LogError(self._login_errors.refusal)

    @contextmanager
    def _taken(self, deadline_s: float) -> Iterator[Consumer]:
        if not self._lock.acquire(timeout=max(deadline_s, 0.0)):
            raise LogError(Failure("unavailable", "another read has not ended yet"))
        try:
            if self._is_closed:
                raise LogError(CLOSED)
            if self._consumer is None:
                self._consumer = self._reached(self._make(), time.monotonic() + deadline_s)
            yield self._consumer
        except KafkaException as error:
            if error.args[0].code() in _UNREACHED:
                self._drop()
            raise LogError(self._login_errors.explained(_unavailable_if_overdue(failure_in(error)))) from error
        finally:
            self._lock.release()

    def _drop(self) -> None:
        """A consumer that reached no broker until its deadline is made anew. One that was once answered with no
        brokers, because all were fenced for a moment, may never look for them again (librdkafka issue 5301)."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class SyncProducer:
    """A producer for a few records at a time, stored in their order; one caller at a time."""

    def __init__(self, make: Callable[[], Producer]) -> None:
        self._make = make
        self._producer: Producer | None = None
        self._lock, self._is_closed = threading.Lock(), False

    def put(self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float) -> list[int]:
        deadline = time.monotonic() + deadline_s
        if not self._lock.acquire(timeout=max(deadline_s, 0.0)):
            raise LogError(Failure("unavailable", "another put has not ended yet"))
        try:
            return self._put(topic, keys, values, deadline)
        except KafkaException as error:
            raise LogError(failure_in(error)) from error
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._producer is not None:
                discard(self._producer)
                self._producer = None

    def _put(self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline: float) -> list[int]:
        if self._is_closed:
            raise LogError(CLOSED)
        if self._producer is None:
            self._producer = self._make()
        answers: dict[int, tuple[KafkaError | None, Message]] = {}  # by record: they come in any order

        def answered(index: int, *answer: Any) -> None:
            answers[index] = answer

        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            self._produce(topic, key, value, deadline, partial(answered, index))
        while len(answers) < len(keys) and (left := deadline - time.monotonic()) > 0:
            self._producer.poll(left)
        if len(answers) < len(keys):
            discard(self._producer)
            self._producer = None
            raise LogError(Failure("indeterminate", "not acknowledged in time"))
        for refused, _ in answers.values():
            if refused is not None:
                raise LogError(delivery_failure_of(refused))
        return [_offset(answers[index][1]) for index in range(len(keys))]

    def _produce(self, topic: str, key: bytes, value: bytes | None, deadline: float, answered: Answered) -> None:
        assert self._producer is not None
        looked_up = False
        while True:
            try:
                self._producer.produce(topic, value, key, 0, on_delivery=answered)
                return
            except BufferError:
                if time.monotonic() >= deadline:
                    raise LogError(Failure("unavailable", "the producer's queue is full")) from None
                self._producer.poll(0.01)
            except KafkaException as error:
                if looked_up or error.args[0].code() not in UNKNOWN:
                    raise
                looked_up = True
                self._producer.list_topics(topic, max(deadline - time.monotonic(), 0.1))


def _read(consumer: Consumer, start: int, end: int, count_max: int, deadline: float) -> Records:
    """Never requests more than can come: the consumer would wait for the rest."""
    records = Records([], [], [], [], end)
    while (left := deadline - time.monotonic()) > 0:
        there = end - (records.offsets[-1] + 1 if records.offsets else start)
        wanted = min(count_max - len(records.offsets), CONSUME_MAX, there)
        for message in consumer.consume(wanted, min(left, 0.05)):
            error = message.error()
            if error is None:
                if _offset(message) >= end:
                    return records
                _add(records, message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return records
            elif not is_retriable(error.code()):
                raise LogError(failure_of(error))
        if len(records.offsets) >= count_max:
            return Records(
                records.offsets, records.timestamps_ms, records.keys, records.values, records.offsets[-1] + 1
            )
        if records.offsets and records.offsets[-1] + 1 >= end:
            return records
    raise LogError(Failure("unavailable", "the range was not read in time"))


def _add(records: Records, message: Message) -> None:
    records.offsets.append(_offset(message))
    records.timestamps_ms.append(message.timestamp()[1])
    records.keys.append(key_of(message))
    records.values.append(message.value())


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "only an error has no offset"
    return offset


def _unavailable_if_overdue(failure: Failure) -> Failure:
    """A read that was not answered has changed nothing."""
    return Failure("unavailable", failure.detail, failure.code) if failure.cause == "indeterminate" else failure
