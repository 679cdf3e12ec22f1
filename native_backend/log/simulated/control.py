"""The control calls of the simulated log: at once, or refused at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from native_backend.log.access_lists import AccessLists
from native_backend.log.port import Failure, Inspection, LogError, Positions, Records, Topic, TopicSpec, check_metadata
from native_backend.log.simulated.disk import Disk, Partition
from native_backend.log.simulated.faults import Faults, happens


class SimulatedControl:
    """`native_backend.log.port.Control`. `epochs`: by shard, the claim of this process."""

    def __init__(
        self,
        disk: Disk,
        random: Random,
        now_ms: Callable[[], int],
        faults: Callable[[], Faults],
        record_bytes_max: int,
        epochs: dict[str, int],
    ) -> None:
        self._disk, self._random, self._now_ms, self._faults = disk, random, now_ms, faults
        self._record_bytes_max, self._epochs = record_bytes_max, epochs

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        self._may_fail()
        return [self._disk.create(spec, self._random) for spec in specs]

    def grow_topic(self, name: str, partitions: int, deadline_s: float = 10.0) -> None:
        self._may_fail()
        self._disk.grow(name, partitions)

    def topics(self, prefix: str, deadline_s: float = 10.0) -> dict[str, Topic]:
        self._may_fail()
        return {name: topic for name, topic in sorted(self._disk.topics.items()) if name.startswith(prefix)}

    def find_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> dict[str, Topic]:
        self._may_fail()
        return {name: self._disk.topics[name] for name in names if name in self._disk.topics}

    def delete_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> None:
        self._may_fail()
        for name in names:
            self._disk.delete(name)

    def bounds(self, topic: str, partition: int, deadline_s: float = 10.0) -> tuple[int, int]:
        part = self._partition(topic, partition)
        return part.first, part.stable_end(self._now_ms())

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        part = self._partition(topic, partition)
        if start < part.first:
            raise LogError(Failure("retention", f"{topic}/{partition} begins at {part.first}"))
        end = part.stable_end(self._now_ms())
        index = part.index(start)
        taken = [record for record in part.records[index : index + count_max] if record.offset < end]
        return Records(
            [record.offset for record in taken],
            [record.at_ms for record in taken],
            [record.key for record in taken],
            [record.value for record in taken],
            taken[-1].offset + 1 if len(taken) == count_max else max(end, start),
        )

    def holds_only(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        records: int,
        transactions: int,
        deadline_s: float = 10.0,
    ) -> bool:
        part = self._partition(topic, partition)
        return part.index(end) - part.index(start) == records

    def put(self, topic: str, key: bytes, value: bytes | None, deadline_s: float = 10.0) -> int:
        partition = self._partition(topic, 0)
        if len(key) + len(value or b"") > self._record_bytes_max:
            raise LogError(Failure("too-large", "the record"))
        return partition.write(self._now_ms(), key, value, self._now_ms()).offset

    def put_all(
        self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float = 10.0
    ) -> list[int]:
        return [self.put(topic, key, value, deadline_s) for key, value in zip(keys, values, strict=True)]

    def claim(self, shard: str, deadline_s: float = 10.0) -> None:
        self._may_fail()
        self._disk.end_transaction(shard, self._random)
        self._disk.epochs[shard] = self._epochs[shard] = self._disk.epochs.get(shard, 0) + 1

    def trim(self, topic: str, partition: int, before: int, deadline_s: float = 10.0) -> None:
        part = self._partition(topic, partition)
        part.first = min(max(before, part.first), part.stable_end(self._now_ms()))
        del part.records[: part.index(part.first)]

    def project(self, group: str, positions: Positions, deadline_s: float = 10.0) -> None:
        self._may_fail()
        check_metadata(positions)
        for topic, partition in positions:
            self._partition(topic, partition)
        self._disk.groups.setdefault(group, {}).update(positions)

    def projected(self, group: str, deadline_s: float = 10.0) -> Positions:
        self._may_fail()
        return dict(self._disk.groups.get(group, {}))

    def forget(self, group: str, deadline_s: float = 10.0) -> None:
        self._may_fail()
        self._disk.groups.pop(group, None)

    def access_lists(self, deadline_s: float = 10.0) -> AccessLists | None:
        return None

    def record_bytes_max(self, topics: Sequence[str], deadline_s: float = 10.0) -> dict[str, int]:
        self._may_fail()
        return dict.fromkeys(topics, self._record_bytes_max)

    def certain_copies(self, topic: str, deadline_s: float = 10.0) -> int | None:
        self._may_fail()
        return None

    def inspect(self, topics: Sequence[str], deadline_s: float = 10.0, *, whole: bool = True) -> Inspection | None:
        return None

    def _may_fail(self) -> None:
        if happens(self._faults().control, self._random):
            raise LogError(Failure("unavailable", "simulated"))

    def _partition(self, topic: str, partition: int) -> Partition:
        self._may_fail()
        part = self._disk.partitions.get((topic, partition))
        if part is None:
            raise LogError(Failure("not-found", f"no {topic}/{partition}"))
        return part
