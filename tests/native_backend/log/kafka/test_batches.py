"""What is handed to a Kafka producer at once, of topics that take less than librdkafka puts into one batch."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from native_backend.log.kafka.batches import AROUND_BATCH_BYTES, BATCH_BYTES, BatchSizes, Filling, record_size
from native_backend.log.kafka.publisher import Publisher
from native_backend.log.port import Append, Write

KEY, VALUE = b"k" * 36, b"v" * 900
EACH = record_size(KEY, VALUE)


class _Producer:
    """Keeps what it is given until all of it lands."""

    def __init__(self) -> None:
        self.held: list[tuple[bytes, bytes]] = []
        self._columns: list[tuple[list[int], int]] = []

    def produce(
        self, topic: str, partition: int, keys: list[bytes], values: list[bytes], offsets: list[int], errors: Any
    ) -> list[Any]:
        self.held += zip(keys, values, strict=True)
        self._columns.append((offsets, len(keys)))
        return []

    def land(self) -> None:
        for offsets, count in self._columns:
            offsets.extend(range(count))
        self.held, self._columns = [], []

    def poll(self) -> None:
        """It calls no one back."""


def sizes(topic: str, size: int) -> BatchSizes:
    batches = BatchSizes()
    batches.learn({topic: size})
    return batches


def test_a_topic_that_takes_a_whole_batch_is_not_limited_and_one_that_is_raised_is_not_any_more() -> None:
    batches = sizes("t", BATCH_BYTES)
    assert batches.most("t") == batches.most("unknown") == inf
    batches.learn({"t": 20_000})
    assert batches.most("t") == 20_000 - AROUND_BATCH_BYTES
    batches.learn({"t": 16 << 20})
    assert batches.most("t") == inf


@pytest.mark.parametrize("counts", [[1], [500], [3, 200, 1, 77], [1] * 40])
def test_what_is_in_the_producer_is_never_more_than_its_topic_takes(counts: list[int]) -> None:
    """And all of it comes, in order."""
    producer: Any = _Producer()
    topic_size = 10 * EACH + AROUND_BATCH_BYTES
    subject = Publisher(lambda: producer, lambda: producer, 10_000, 64 << 20, batches=sizes("t", topic_size))
    numbers = iter(range(sum(counts)))
    for count in counts:
        values = [b"%03d" % next(numbers) + VALUE[3:] for _ in range(count)]
        subject.append(Append("t", 0, [KEY] * count, values))
    seen: list[bytes] = []
    while not subject.is_idle:
        assert 0 < sum(record_size(key, value) for key, value in producer.held) <= topic_size - AROUND_BATCH_BYTES
        seen += [value[:3] for _, value in producer.held]
        producer.land()
        subject.poll()
    assert seen == [b"%03d" % number for number in range(sum(counts))]


def test_a_transaction_lets_land_what_would_be_too_much_together() -> None:
    filling = Filling(sizes("small", 3 * EACH + AROUND_BATCH_BYTES))
    small, other, second = (Write(topic, at, KEY, VALUE) for topic, at in (("small", 0), ("large", 0), ("small", 1)))
    assert [filling.is_full(small) for _ in range(3)] == [False] * 3
    assert not any(filling.is_full(other) for _ in range(5_000))
    assert [filling.is_full(second) for _ in range(3)] == [False] * 3
    assert filling.is_full(small), "the fourth of that partition"
    assert [filling.is_full(small) for _ in range(2)] == [False] * 2
    assert filling.is_full(small)
    huge = Write("small", 0, KEY, VALUE * 100)
    assert filling.is_full(huge) and filling.is_full(huge), "alone, to be refused alone"
