"""What outlives a simulated driver: topics, records, claims, group offsets. A second driver opened on the same disk is
the successor, or the rival, of the first.

A record of an unfinished transaction is `open`; the stable offset never passes an open record, nor one whose time to
become visible has not come. Times are milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from random import Random

from native_backend.log.port import Failure, LogError, Topic, TopicSpec

TRANSACTION_TIMEOUT_MS = 10_000


@dataclass(slots=True)
class Stored:
    """One record on the disk."""

    offset: int
    at_ms: int
    key: bytes | None
    value: bytes | None
    visible_ms: int
    open: bool = False


@dataclass(slots=True)
class Partition:
    """Records in offset order; `end` is one past the last offset that was given out."""

    compacted: bool
    records: list[Stored] = field(default_factory=list)
    first: int = 0
    end: int = 0
    stable: int = 0
    gone: bool = False

    def write(
        self, now_ms: int, key: bytes | None, value: bytes | None, visible_ms: int, is_open: bool = False
    ) -> Stored:
        record = Stored(self.end, now_ms, key, value, visible_ms, is_open)
        self.store(record)
        return record

    def store(self, record: Stored) -> None:
        self.records.append(record)
        self.end = record.offset + 1
        if self.compacted and not record.open:
            self.records = [r for r in self.records if r.key != record.key or r is record or r.open]

    def stable_end(self, now_ms: int) -> int:
        """One past the last offset that a reader may see. Never falls."""
        for record in self.records[self.index(self.stable) :]:
            if record.open or record.visible_ms > now_ms:
                self.stable = max(self.stable, record.offset)
                return self.stable
        self.stable = self.end
        return self.end

    def cut(self, end: int) -> None:
        """It loses what it has at or above `end`."""
        del self.records[self.index(end) :]
        self.end, self.stable = min(self.end, end), min(self.stable, end)

    def index(self, offset: int) -> int:
        return bisect_left(self.records, offset, key=lambda record: record.offset)


@dataclass(slots=True)
class OpenTransaction:
    """Left behind without an end; `claim`, or its timeout, ends it one way or the other."""

    expires_ms: int
    places: list[tuple[Partition, Stored]]


@dataclass(slots=True)
class Disk:
    """The whole simulated cluster."""

    topics: dict[str, Topic] = field(default_factory=dict)
    partitions: dict[tuple[str, int], Partition] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    left_open: dict[str, OpenTransaction] = field(default_factory=dict)
    groups: dict[str, dict[tuple[str, int], tuple[int, str]]] = field(default_factory=dict)

    def create(self, spec: TopicSpec, random: Random) -> Topic:
        if spec.name not in self.topics:
            self.topics[spec.name] = Topic(spec.name, random.randbytes(16), spec.partitions)
            for number in range(spec.partitions):
                self.partitions[spec.name, number] = Partition(spec.compacted)
        return self.topics[spec.name]

    def grow(self, name: str, partitions: int) -> None:
        if name not in self.topics:
            raise LogError(Failure("not-found", f"no topic {name}"))
        topic, compacted = self.topics[name], self.partitions[name, 0].compacted
        for number in range(topic.partitions, partitions):
            self.partitions[name, number] = Partition(compacted)
        self.topics[name] = replace(topic, partitions=max(partitions, topic.partitions))

    def delete(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        if topic is None:
            return
        for number in range(topic.partitions):
            self.partitions.pop((name, number)).gone = True
        for positions in self.groups.values():
            for place in [place for place in positions if place[0] == name]:
                del positions[place]

    def end_transaction(self, shard: str, random: Random) -> None:
        """Commit or abort what `shard` has left open."""
        left = self.left_open.pop(shard, None)
        if left is None:
            return
        applied = random.random() < 0.5
        for partition, record in left.places:
            record.open = False
            if not applied:
                partition.records.remove(record)

    def expire(self, now_ms: int, random: Random) -> None:
        for shard in [shard for shard, left in self.left_open.items() if left.expires_ms <= now_ms]:
            self.end_transaction(shard, random)
