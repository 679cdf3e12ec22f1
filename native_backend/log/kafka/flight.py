"""A part of a batch on its way through the producer, and the column of offsets that the producer fills.

May import: the standard library, confluent-kafka, `native_backend.log`, `headers`, `strings`, this driver.
"""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import KafkaError

from native_backend.headers import HeadedKey, key_bytes
from native_backend.log import Append, Appended, Failure
from native_backend.logs.kafka.causes import delivery_failure_of
from native_backend.strings import Strings, size_of


class Flight:
    """Records `start .. end - 1` of `batch`. `refusals` are what the producer would not take: they get no callback."""

    __slots__ = ("batch", "end", "errors", "headed", "offsets", "refreshed", "refusals", "size", "start", "taken")

    def __init__(self, batch: Append, start: int, end: int, refusals: dict[int, Failure] | None = None) -> None:
        self.batch = batch
        self.start = start
        self.end = end
        self.size = size_of(batch.values if end - start == len(batch.values) else batch.values[start:end])
        self.headed = start < end and type(batch.keys[start]) is HeadedKey
        if self.headed:
            self.size += sum(map(key_bytes, batch.keys[start:end]))
        self.refusals = refusals or {}
        self.refreshed = False  # the topic's metadata was read anew for this flight
        self.offsets: list[int] = []
        self.errors: list[tuple[int, int, str]] = []  # place in offsets, code, words
        self.taken = 0

    def cut(self, count: int) -> Flight:
        """Its first `count` records as a flight of their own; the rest stay. Before it is launched, and while it has
        no refusals."""
        first = Flight(self.batch, self.start, self.start + count)
        self.start += count
        self.size -= first.size
        return first

    @property
    def count(self) -> int:
        """How many callbacks this flight gets in all."""
        return self.end - self.start - len(self.refusals)

    @property
    def weight(self) -> int:
        """Bytes of values (and of headers) that it has in the producer's queue."""
        return self.size if self.count else 0

    def columns(self) -> tuple[Strings, Strings]:
        """Its keys and values."""
        keys, values = self.batch.keys, self.batch.values
        if len(keys) == self.end - self.start:
            return keys, values
        return keys[self.start : self.end], values[self.start : self.end]

    def land(self) -> Iterator[Appended]:
        """What has been delivered since the last call, as completions."""
        if self.refusals or self.errors:
            yield from self._land_unevenly()
            return
        taken, self.taken = self.taken, len(self.offsets)
        if self.taken > taken or self.start == self.end:
            yield Appended(self.batch, self.start + taken, self.offsets[taken : self.taken])

    @property
    def is_down(self) -> bool:
        return len(self.offsets) >= self.count

    def give_up(self, failure: Failure) -> Iterator[Appended]:
        """Whatever has not been told yet, told as failed."""
        first = self.start + self.taken
        if first < self.end:
            yield Appended(self.batch, first, [-1] * (self.end - first), failure)

    def _land_unevenly(self) -> Iterator[Appended]:
        """With failures among them: all together, once all are down, in runs of one answer each."""
        if not self.is_down:
            return
        failures = {**self.refusals}
        delivered = iter(self.offsets)
        offsets = [-1 if index in failures else next(delivered) for index in range(self.end - self.start)]
        places = [index for index in range(len(offsets)) if index not in self.refusals]
        failures.update(
            {places[place]: delivery_failure_of(KafkaError(code, words)) for place, code, words in self.errors}
        )
        start = self.taken
        self.taken = len(offsets)
        for index in range(start + 1, len(offsets) + 1):
            if index == len(offsets) or failures.get(index) != failures.get(start):
                yield Appended(self.batch, self.start + start, offsets[start:index], failures.get(start))
                start = index
