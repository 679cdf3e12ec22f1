"""How much may be handed to a producer at once, of a topic that takes less than librdkafka puts into one batch.

A broker holds a whole batch against the topic's max.message.bytes, and librdkafka, which does not know that setting,
makes batches of up to a million octets: records that the topic takes one by one would be refused together. What is in
the producer of one partition at a time must therefore not be larger. Octets.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from native_backend.log.port import Write
from native_backend.log.record_headers import key_bytes

BATCH_BYTES = 1_000_000  # librdkafka's batch.size
AROUND_BATCH_BYTES = 512
AROUND_RECORD_BYTES = 64


class BatchSizes:
    """Topics whose setting has been read. Set by one thread, read by others."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}

    def learn(self, sizes: Mapping[str, int]) -> None:
        """`max.message.bytes` by topic."""
        for topic, size in sizes.items():
            if size < BATCH_BYTES:
                self._most[topic] = max(1, size - AROUND_BATCH_BYTES)
            else:
                self._most.pop(topic, None)

    def most(self, topic: str) -> float:
        """So much at once; infinite where librdkafka's own limit is lower."""
        return self._most.get(topic, inf)


class Filling:
    """What has been handed over since everything had landed, of one transaction."""

    def __init__(self, sizes: BatchSizes) -> None:
        self._sizes = sizes
        self._handed: dict[tuple[str, int], int] = {}

    def is_full(self, write: Write) -> bool:
        """With that record it would be too much: let all of it land first. Else the record is counted."""
        most = self._sizes.most(write.topic)
        if most == inf:
            return False
        place, size = (write.topic, write.partition), record_size(write.key, write.value)
        handed = self._handed.get(place, 0)
        if handed and handed + size > most:
            self._handed.clear()
            self._handed[place] = size
            return True
        self._handed[place] = handed + size
        return False


def record_size(key: bytes | None, value: bytes | None) -> int:
    return AROUND_RECORD_BYTES + (0 if key is None else key_bytes(key)) + len(value or b"")
