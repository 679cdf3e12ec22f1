"""The Kafka driver's publisher on the fake librdkafka (fake_librdkafka.c), in a process of its own: the real producer
looks librdkafka's functions up once a process. `python -m tests.native_backend.log.kafka.reporting LIBRARY RUN SEED`
exits with 0 when the answer for each record is what was reported of it. Run by `test_reports.py`.
"""

from __future__ import annotations

import ctypes
import sys
from random import Random
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from native_backend.log.kafka import producer as driver
from native_backend.log.kafka.headed_producer import HeaderProducer
from native_backend.log.kafka.producer import NO_DESCRIPTOR, Producer
from native_backend.log.kafka.publisher import Publisher
from native_backend.log.port import Append, Appended

FAR = 1 << 40  # offsets that Python has no ready objects for
ERRORS = {KafkaError._MSG_TIMED_OUT: "indeterminate", KafkaError.MSG_SIZE_TOO_LARGE: "too-large"}
DELIVERED, LOGGED, FAILED = 1, 4, 8


class Told:
    """What a publisher has said of each record, by its value; and that a partition's answers came in order."""

    def __init__(self) -> None:
        self.outcomes: dict[bytes, int | str] = {}
        self._next: dict[int, tuple[int, int]] = {}  # partition -> number of the batch, next record in it

    def note(self, answers: list[Appended]) -> None:
        for answer in answers:
            batch = answer.batch
            number, at = self._next.get(batch.partition, (0, 0))
            if at == 0:
                number = batch.owner
            assert (batch.owner, answer.first) == (number, at), "out of order"
            at += len(answer.offsets)
            self._next[batch.partition] = (number, at) if at < len(batch.values) else (number + 1, 0)
            for index, offset in enumerate(answer.offsets, answer.first):
                assert (offset == -1) == (answer.failure is not None)
                assert batch.values[index] not in self.outcomes, "told twice"
                self.outcomes[batch.values[index]] = offset if answer.failure is None else answer.failure.cause


class Poor:
    """A `ColumnProducer` while whose polls memory may end, and at no other time."""

    def __init__(self, columns: Any, library: Any) -> None:
        self._columns, self._library = columns, library

    def poll(self) -> Any:
        try:
            return self._columns.poll()
        finally:
            self._library.fake_end_memory_after(-1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._columns, name)


class Run:
    """Batches go in, reports come out in any order."""

    def __init__(self, library: Any, seed: int) -> None:
        self.library, self.random = library, Random(seed)
        self.heard: list[KafkaError] = []
        self.publisher = Publisher(self.producer, HeaderProducer, 10_000, 1_000_000)  # type: ignore[arg-type]
        self.told = Told()
        self.expected: dict[bytes, int | str] = {}
        self._batches = [0, 0, 0]
        self._made = self._reported = 0

    def producer(self) -> Producer:
        made = Producer({"error_cb": self.hear}, NO_DESCRIPTOR)
        made._columns = Poor(made._columns, self.library)  # type: ignore[assignment]
        return made

    def hear(self, error: KafkaError) -> None:
        self.heard.append(error)

    def append(self, refusals: bool) -> None:
        partition = self.random.randrange(3)
        values = []
        for _ in range(self.random.choice([1, 3, 40, 300])):
            taken = not refusals or self.random.random() < 0.9
            values.append(b"%s%d" % (b"m" if taken else b"R", self._made))
            self._made += 1
            if not taken:
                self.expected[values[-1]] = "unavailable"
        self.publisher.append(Append("t", partition, [b"k"] * len(values), values, self._batches[partition]))
        self._batches[partition] += 1

    def report(self) -> None:
        """Some of what is under way, in any order, in any number of events."""
        waiting = list(range(self._reported, self.library.fake_sent()))
        self._reported = self.library.fake_sent()
        self.random.shuffle(waiting)
        for at in waiting:
            value = self.library.fake_body(at)
            error = self.random.choice([0, 0, 0, *ERRORS])
            offset = FAR + at if self.random.random() < 0.95 else -1001
            self.library.fake_report(at, error, offset if not error else -1)
            self.expected[value] = ERRORS[error] if error else offset if offset >= 0 else "indeterminate"
            if self.random.random() < 0.1:
                self.library.fake_next_event()

    def poll(self) -> None:
        while True:
            try:
                self.told.note(self.publisher.poll())
                return
            except MemoryError:
                continue

    def run(self, *, refusals: bool = False, memory_ends: bool = False) -> None:
        for turn in range(60):
            self.append(refusals)
            if memory_ends:
                self.library.fake_end_memory_after(self.random.choice([0, 1, 2, 5, 20, 100]))
            if turn % 3 == 2:
                self.report()
            self.poll()
        while not self.publisher.is_idle:
            self.report()
            self.poll()
        assert self.told.outcomes == self.expected


def in_any_order(library: Any, seed: int) -> None:
    Run(library, seed).run()


def with_refusals(library: Any, seed: int) -> None:
    Run(library, seed).run(refusals=True)


def where_memory_ends(library: Any, seed: int) -> None:
    Run(library, seed).run(memory_ends=True)
    assert library.fake_memory_ended() > 10


def news_where_memory_ends(library: Any, seed: int) -> None:
    """What a client says of itself is not lost either: neither words, nor that it is dead."""
    run = Run(library, seed)
    for allocations in range(12):
        library.fake_say(FAILED, KafkaError._TRANSPORT, 0, b"gone")
        library.fake_say(LOGGED, 7, 0, b"words")
        library.fake_end_memory_after(allocations)
        for _ in range(3):
            run.poll()
    assert library.fake_memory_ended() > 5
    assert [error.code() for error in run.heard] == [KafkaError._TRANSPORT] * 12
    producer = run.publisher._producer
    for allocations in range(4):
        library.fake_say(FAILED, 0, 1, b"dead")
        library.fake_end_memory_after(allocations)
        errors: list[KafkaError] = []
        while not errors:
            try:
                producer.poll()
            except KafkaException as error:
                errors.append(error.args[0])
            except MemoryError:
                continue
        assert errors[0].code() == KafkaError._FATAL


RUNS = {run.__name__: run for run in (in_any_order, with_refusals, where_memory_ends, news_where_memory_ends)}


def main(path: str, run: str, seed: str) -> None:
    library = ctypes.PyDLL(path)
    library.fake_body.restype = ctypes.c_char_p
    library.fake_report.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    setattr(driver, "cimpl", SimpleNamespace(__file__=path))  # noqa: B010  # where the producer finds librdkafka
    RUNS[run](library, int(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
