"""The producer of records with headers, which no batch call of librdkafka takes: confluent-kafka's, a call a record.

Made when the first such record comes. It answers as the producer of columns does (`producer.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from native_backend.log.columns import Strings
from native_backend.log.kafka.producer import Errors, discard
from native_backend.log.kafka.settings import Config, OnError
from native_backend.log.record_headers import HeadedKey


class HeaderProducer:
    """Used by one thread, but for `look_up`."""

    def __init__(self, config: Config) -> None:
        self._on_error: OnError = config["error_cb"]  # type: ignore[assignment]
        self._fatal: KafkaError | None = None
        settings: dict[str, Any] = {**config, "error_cb": self._hear}
        self._producer = confluent_kafka.Producer(settings)

    def produce(
        self, topic: str, partition: int, keys: Strings, values: Strings, offsets: list[int], errors: Errors
    ) -> Errors:
        """As `Producer.produce`."""
        refused: Errors = []
        landing = _Landing(offsets, errors, len(keys))
        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            assert type(key) is HeadedKey
            try:
                landed = partial(landing.landed, index)
                self._producer.produce(
                    topic, value, key.record_key, partition, on_delivery=landed, headers=list(key.headers)
                )
            except BufferError:
                refused.append((index, KafkaError._QUEUE_FULL, "the producer's queue is full"))
            except KafkaException as error:
                refused.append((index, error.args[0].code(), error.args[0].str()))
        landing.refused(refused)
        return refused

    def poll(self) -> None:
        """Raises KafkaException on a fatal error: this producer will store nothing more."""
        self._producer.poll(0)
        if self._fatal is not None:
            raise KafkaException(self._fatal)

    def look_up(self, topic: str, timeout_s: float) -> None:
        """Blocks: the topic's metadata is read anew."""
        self._producer.list_topics(topic, timeout_s)

    def close(self) -> None:
        """Blocks. What is on its way is given up."""
        discard(self._producer)

    def _hear(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = error
        else:
            self._on_error(error)


class _Landing:
    """What becomes of records that were handed over together, into their columns in the order of the records: what
    times out in librdkafka's queue is reported before what is still in flight."""

    def __init__(self, offsets: list[int], errors: Errors, count: int) -> None:
        self._offsets, self._errors = offsets, errors
        self._reports: list[int | None] = [None] * count

    def landed(self, index: int, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is not None or offset is None:
            code, words = (error.code(), error.str()) if error is not None else (KafkaError._NO_OFFSET, "no offset")
            self._errors.append((index, code, words))
            offset = -1
        self._reports[index] = offset
        self._tell()

    def refused(self, refused: Errors) -> None:
        """Nothing comes back of these; the columns stay empty where that is all of them."""
        for index, _, _ in refused:
            self._reports[index] = -1
        if len(refused) < len(self._reports):
            self._tell()

    def _tell(self) -> None:
        reports, offsets = self._reports, self._offsets
        while len(offsets) < len(reports) and (offset := reports[len(offsets)]) is not None:
            offsets.append(offset)
