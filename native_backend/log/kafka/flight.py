"""A part of a batch on its way through the producer, and the column of offsets that the producer fills."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import KafkaError

from native_backend.log.columns import Strings, size_of
from native_backend.log.kafka.batches import record_size
from native_backend.log.kafka.causes import delivery_failure_of
from native_backend.log.port import Append, Appended, Failure
from native_backend.log.record_headers import HeadedKey, key_bytes

BESIDE = KafkaError._INVALID_DIFFERENT_RECORD
TOGETHER = frozenset({KafkaError.INVALID_RECORD, KafkaError.POLICY_VIOLATION, BESIDE})
"""By these a broker refuses a whole request because of one record in it: it stored nothing of that request."""


class Flight:
    """Records `start .. end - 1` of `batch`. `refusals` are what the producer would not take: nothing comes back of
    them."""

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
        self.offsets: list[int] = []  # of the first records of the flight, -1 where one is not stored
        self.errors: list[tuple[int, int, str]] = []  # index in the flight, code, words
        self.taken = 0

    def cut(self, count: int) -> Flight:
        """Its first `count` records as a flight of their own; the rest stay. Before it is launched, and while it has
        no refusals."""
        first = Flight(self.batch, self.start, self.start + count)
        self.start += count
        self.size -= first.size
        return first

    def unlaunched(self, first: int) -> Flight:
        """Its records from the `first` on, of which none is stored, as a flight that was never launched. Those before
        stay, with what became of them."""
        if not self.count:
            return self  # the producer took none: that stays its answer
        rest = Flight(self.batch, self.start + first, self.end)
        self.end = rest.start
        self.size -= rest.size
        self.offsets = self.offsets[:first]
        self.errors = [error for error in self.errors if error[0] < first]
        self.refusals = {index: failure for index, failure in self.refusals.items() if index < first}
        return rest

    @property
    def refused_together(self) -> int:
        """How many of its records the broker refused, each for itself or for another of its request."""
        return sum(code in TOGETHER for _, code, _ in self.errors)

    def unstored_from(self) -> int:
        """The first record behind which, to the end, all are certainly not stored and may be sent again."""
        unstored = {index for index, code, _ in self.errors if code in TOGETHER} | set(self.refusals)
        first = self.end - self.start
        while first - 1 in unstored:
            first -= 1
        return first

    def lay_on_others(self) -> None:
        """Which record of their request was meant is not known: each may be in order."""
        self.errors = [(index, BESIDE if code in TOGETHER else code, words) for index, code, words in self.errors]

    @property
    def count(self) -> int:
        """How many of its records the producer took."""
        return self.end - self.start - len(self.refusals)

    @property
    def record_bytes(self) -> int:
        """Of its records in a batch, about; counted anew each time."""
        return sum(map(record_size, *self.columns()))

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
        """The producer has said what became of each record that it took."""
        return len(self.offsets) == self.end - self.start or not self.count

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
        failures.update({index: delivery_failure_of(KafkaError(code, words)) for index, code, words in self.errors})
        offsets = self.offsets or [-1] * (self.end - self.start)  # nothing of it was taken
        start = self.taken
        self.taken = len(offsets)
        for index in range(start + 1, len(offsets) + 1):
            if index == len(offsets) or failures.get(index) != failures.get(start):
                yield Appended(self.batch, self.start + start, offsets[start:index], failures.get(start))
                start = index
