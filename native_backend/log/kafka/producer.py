"""The producers of events and of evidence: `ColumnProducer` with this driver's errors and logging; and the end of the
other producers, which are confluent-kafka's.
"""

from __future__ import annotations

import logging

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, cimpl

from native_backend.log.columns import Strings
from native_backend.log.kafka.column_producer import ColumnProducer
from native_backend.log.kafka.settings import Config, OnError
from native_backend.log.library_version import Version, require

_LOG = logging.getLogger("librdkafka")
_LEVELS = (logging.CRITICAL,) * 3 + (logging.ERROR, logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)
NO_DESCRIPTOR = -1  # no file descriptor: no loop is woken when there is something to poll
Errors = list[tuple[int, int, str]]  # index, code, words


def _librdkafka() -> Version:
    """Of the only one in the process: ours is confluent-kafka's."""
    number = confluent_kafka.libversion()[1]
    return number >> 24 & 0xFF, number >> 16 & 0xFF, number >> 8 & 0xFF


require("librdkafka", _librdkafka(), (2, 16, 0), (3, 0, 0), "install confluent-kafka==2.16.1")


class Producer:
    """Used by one thread, but for `look_up`. Raises ValueError for settings that librdkafka does not take."""

    def __init__(self, config: Config, ready: int) -> None:
        """`ready`: an eventfd, readable when there is something to poll; or `NO_DESCRIPTOR`."""
        words = {name: _word(value) for name, value in config.items() if name not in ("error_cb", "logger")}
        self._on_error: OnError = config["error_cb"]  # type: ignore[assignment]
        self._columns = ColumnProducer(cimpl.__file__, words)
        self._columns.wake(ready)

    def produce(
        self, topic: str, partition: int, keys: Strings, values: Strings, offsets: list[int], errors: Errors
    ) -> Errors:
        """Hand over. What is not taken is returned. Unless that is all, later polls append to `offsets` an element for
        each record, in their order (-1: not stored), and to `errors` why."""
        return self._columns.produce(topic, partition, keys, values, offsets, errors)

    def poll(self) -> None:
        """Raises KafkaException on a fatal error: this producer will store nothing more."""
        for kind, number, words in self._columns.poll():
            if kind == "log":
                _LOG.log(_LEVELS[min(max(number, 0), 7)], "%s", words)
            elif kind == "fatal":
                raise KafkaException(KafkaError(number, words))
            else:
                self._on_error(KafkaError(number, words))

    def look_up(self, topic: str, timeout_s: float) -> None:
        """Blocks: the topic's metadata is read anew."""
        self._columns.look_up(topic, int(timeout_s * 1000))

    def disable_wakeups(self) -> None:
        """Wake no loop any more when there is something to poll."""
        self._columns.wake(NO_DESCRIPTOR)

    def close(self) -> None:
        """Blocks. What is on its way is given up."""
        self._columns.close()


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def discard(producer: confluent_kafka.Producer) -> None:
    """Throw away what a producer still holds, and close it. Its callbacks fill columns that are not read."""
    try:
        producer.purge()
        producer.close()
    except (KafkaException, SystemError):  # of a producer with a fatal error
        return
