"""The same surroundings for every driver of the log port: a log, its rivals, and time that passes.

A world knows how its driver is opened; the tests know only the port.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event
from typing import Protocol

import pytest

from native_backend.log.open import wall_ms
from native_backend.log.port import Append, Appended, Completion, Failure, Log, LogError, Reader, Transacted, Write
from native_backend.log.sqlite.schema import connect
from tests.kit.patience import until
from tests.kit.processes.broker import Broker
from tests.kit.processes.cut_topic import cut_topics

RECORD_BYTES_MAX = 900_000
_DUE_S = 0.005


class World(Protocol):
    """Where a log lives. `open` gives another instance on the same log, as another process would have it."""

    name: str
    gap_free: bool

    def open(self) -> Log: ...
    def pass_time(self) -> None: ...
    def close(self) -> None: ...

    def cut(self, ends: dict[tuple[str, int], int]) -> None:
        """Partitions lose what they have at or above these offsets; at each of them something begins that was
        appended by itself."""


def pass_seconds(world: World, seconds: float) -> None:
    """So much of simulated time."""
    for _ in range(max(1, round(seconds * 1000))):
        world.pass_time()


def wait_for(wake: Event, world: World) -> None:
    """What a log says as soon as it has something; but not for long: other things are due by their time."""
    if isinstance(world, SimulatedWorld):
        world.pass_time()
    else:
        wake.wait(_DUE_S)
        wake.clear()


class SqliteWorld:
    name = "sqlite"
    gap_free = False

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._opened: list[Log] = []

    def open(self) -> Log:
        from native_backend.log.sqlite.driver import SqliteLog

        self._opened.append(SqliteLog(self._directory, wall_ms, RECORD_BYTES_MAX))
        return self._opened[-1]

    def pass_time(self) -> None:
        time.sleep(0.001)

    def close(self) -> None:
        for log in self._opened:
            log.close()

    def cut(self, ends: dict[tuple[str, int], int]) -> None:
        with closing(connect(self._directory)) as connection:
            for (topic, number), end in ends.items():
                key = "(SELECT id FROM partitions WHERE topic = ? AND number = ?)"
                connection.execute(f"DELETE FROM batches WHERE first >= ? AND partition = {key}", (end, topic, number))
                connection.execute(
                    "UPDATE partitions SET next = ? WHERE topic = ? AND number = ?", (end, topic, number)
                )


class SimulatedWorld:
    def __init__(self, name: str, faults: object = None, seed: int = 1) -> None:
        from native_backend.log.simulated.disk import Disk
        from native_backend.log.simulated.faults import NONE, Faults

        self.name = name
        self.faults = faults if isinstance(faults, Faults) else NONE
        self.gap_free = self.faults.gap == 0.0
        self.disk = Disk()
        self.random = Random(seed)
        self._now_ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self._now_ms

    def open(self) -> Log:
        from native_backend.log.simulated.driver import SimulatedLog

        return SimulatedLog(self.disk, self.random, self.now_ms, self.faults, RECORD_BYTES_MAX)

    def pass_time(self) -> None:
        self._now_ms += 1

    def close(self) -> None:
        pass

    def cut(self, ends: dict[tuple[str, int], int]) -> None:
        for place, end in ends.items():
            self.disk.partitions[place].cut(end)


class KafkaWorld:
    name = "kafka"
    gap_free = False

    def __init__(self, bootstrap: str, broker: Broker | None = None) -> None:
        """`broker`: where topics are to be cut; it is started anew for that."""
        self.bootstrap, self._broker = bootstrap, broker
        self._opened: list[Log] = []

    def open(self) -> Log:
        from native_backend.log.kafka.driver import KafkaLog

        self._opened.append(KafkaLog(self.bootstrap, {"message.max.bytes": RECORD_BYTES_MAX}))
        return self._opened[-1]

    def pass_time(self) -> None:
        time.sleep(0.001)

    def close(self) -> None:
        for log in self._opened:
            log.close()

    def cut(self, ends: dict[tuple[str, int], int]) -> None:
        assert self._broker is not None
        cut_topics(self._broker, ends)


class OpenLog:
    """A world with one log open in it and topics of its own, and the ways the tests use them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log = world.open()
        self.prefix = f"c{uuid.uuid4().hex[:8]}"

    def topic(self, name: str, *, partitions: int = 1, compacted: bool = False) -> str:
        from native_backend.log.port import TopicSpec

        full = f"{self.prefix}.{name}"
        self.log.control.create_topics([TopicSpec(full, partitions, compacted)])
        return full

    def until(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, what, pause=self.world.pass_time)

    def completions(self, count: int, log: Log | None = None) -> list[Completion]:
        """The next completions that speak of `count` records or transactions in all."""
        outcomes: list[Completion] = []

        def enough() -> bool:
            outcomes.extend((log or self.log).poll())
            return sum(len(c.offsets) if isinstance(c, Appended) else 1 for c in outcomes) >= count

        self.until(enough, f"{count} completions")
        return outcomes

    def store(self, topic: str, values: list[bytes], partition: int = 0) -> list[int]:
        """Append one batch that succeeds; its offsets."""
        self.log.append(Append(topic, partition, [b"k"] * len(values), values))
        offsets: list[int] = []
        for answer in self.completions(len(values)):
            assert isinstance(answer, Appended)
            assert answer.failure is None, answer.failure
            assert answer.first == len(offsets)
            offsets += answer.offsets
        return offsets

    def transact(self, shard: str, writes: list[Write], log: Log | None = None) -> Transacted:
        (log or self.log).transact(shard, writes, "me")
        (answer,) = self.completions(1, log)
        assert isinstance(answer, Transacted)
        assert answer.owner == "me"
        return answer

    def read(self, reader: Reader, count: int, at_a_time: int = 100) -> list[tuple[int, bytes, bytes | None]]:
        """The next `count` records of a reader."""
        records: list[tuple[int, bytes, bytes | None]] = []

        def enough() -> bool:
            taken = reader.read(at_a_time)
            assert not isinstance(taken, Failure), taken
            if taken is not None:
                offsets, values, keys = taken
                assert 1 <= len(offsets) == len(values) == len(keys) <= at_a_time
                records.extend(zip(offsets, values, keys, strict=True))
            return len(records) >= count

        self.until(enough, f"{count} records")
        return records

    def failure_of(self, reader: Reader) -> Failure:
        """The failure that a reader ends with."""
        failures: list[Failure] = []

        def failed() -> bool:
            taken = reader.read(10)
            if isinstance(taken, Failure):
                failures.append(taken)
            return bool(failures)

        self.until(failed, "a failure")
        return failures[0]

    def quiet(self, reader: Reader, turns: int = 100) -> None:
        """The reader finds nothing for a while."""
        for _ in range(turns):
            assert reader.read(10) is None
            self.world.pass_time()


def failure(call: Callable[[], object]) -> Failure:
    """The failure that an admin call raises."""
    with pytest.raises(LogError) as raised:
        call()
    return raised.value.failure
