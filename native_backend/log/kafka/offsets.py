"""Group offsets, as a durable's projection for Kafka's own tools: set by librdkafka's admin client.

A thousand durables have theirs set over and over, beside a loop that settles for them. kafka-python takes three times
the processor time for one, all of it with the interpreter's lock held (ADR 0014).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as Overdue

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from native_backend.log.kafka.causes import CLOSED, failure_in, is_retriable, unsent
from native_backend.log.port import Failure, LogError, Positions, check_metadata
from native_backend.log.retry import Retries

_LEAST_S = 0.1
_NEVER_S = 300.0
"""What librdkafka is given for a call: more than its own requests take to fail (`socket.timeout.ms`). A call whose time
passes while its coordinator is looked for makes librdkafka 2.16 abort the process, once the coordinator answers."""


class GroupOffsets:
    """Connects at the first call."""

    def __init__(self, make: Callable[[], AdminClient], retries: Retries) -> None:
        self._make = make
        self._retries = retries
        self._admin: AdminClient | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def alter(self, group: str, positions: Positions, deadline_s: float) -> None:
        """Raises `LogError`. Blocks. What was given up may still come to be."""
        check_metadata(positions)
        offsets = [TopicPartition(*place, offset, metadata) for place, (offset, metadata) in positions.items()]
        deadline = time.monotonic() + deadline_s
        try:
            self._retries.call(lambda: self._ask(group, offsets, deadline), _code_of, deadline_s)
        except Overdue as error:
            raise LogError(Failure("unavailable", f"no answer within {deadline_s} s")) from error
        except KafkaException as error:
            raise LogError(unsent(failure_in(error))) from error  # or it was, and is set again

    def close(self) -> None:
        """The client ends with its last reference: at once, or with the call that is under way."""
        with self._lock:
            admin, self._admin, self._is_closed = self._admin, None, True
        del admin

    def _ask(self, group: str, offsets: list[TopicPartition], deadline: float) -> None:
        wanted = [ConsumerGroupTopicPartitions(group, offsets)]
        [future] = self._connected().alter_consumer_group_offsets(wanted, request_timeout=_NEVER_S).values()
        for place in future.result(max(deadline - time.monotonic(), _LEAST_S)).topic_partitions:
            if place.error is not None:
                raise KafkaException(place.error)

    def _connected(self) -> AdminClient:
        with self._lock:
            if self._is_closed:
                raise LogError(CLOSED)
            if self._admin is None:
                self._admin = self._make()
            return self._admin


def _code_of(error: BaseException) -> str | None:
    known = error.args[0] if isinstance(error, KafkaException) else None
    if not isinstance(known, KafkaError) or not is_retriable(known.code()):
        return None
    return str(known.name())
