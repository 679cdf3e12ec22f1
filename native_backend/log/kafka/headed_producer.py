"""The producer of records with headers, which no batch call of librdkafka takes: confluent-kafka's, a call a record.

Made when the first such record comes. It answers as the producer of columns does (`producer.py`).
May import: the standard library, confluent-kafka, `native_backend.headers`, this driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from native_backend.headers import HeadedKey
from native_backend.logs.kafka.producer import Errors, bury
from native_backend.logs.kafka.settings import Config, OnError
from native_backend.strings import Strings


class HeadedProducer:
    """Used by one thread, but for `look_up`."""

    def __init__(self, config: Config) -> None:
        self._on_error: OnError = config["error_cb"]  # type: ignore[assignment]
        self._fatal: KafkaError | None = None
        settings: dict[str, Any] = {**config, "error_cb": self._hear}
        self._producer = confluent_kafka.Producer(settings)

    def produce(
        self, topic: str, partition: int, keys: Strings, values: Strings, offsets: list[int], errors: Errors
    ) -> Errors:
        """Hand over; what is taken fills `offsets` (and `errors`) in later polls, what is not is returned."""
        refused: Errors = []
        landed = _landing(offsets, errors)
        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            assert type(key) is HeadedKey
            try:
                self._producer.produce(
                    topic, value, key.record_key, partition, on_delivery=landed, headers=list(key.headers)
                )
            except BufferError:
                refused.append((index, KafkaError._QUEUE_FULL, "the producer's queue is full"))
            except KafkaException as error:
                refused.append((index, error.args[0].code(), error.args[0].str()))
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
        bury(self._producer)

    def _hear(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = error
        else:
            self._on_error(error)


def _landing(offsets: list[int], errors: Errors) -> Callable[[KafkaError | None, Message], None]:
    def landed(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is not None or offset is None:
            code, words = (error.code(), error.str()) if error is not None else (KafkaError._FAIL, "no offset")
            errors.append((len(offsets), code, words))
            offset = -1
        offsets.append(offset)

    return landed
