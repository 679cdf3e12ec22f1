"""`SimulatedLog`: the log port in memory, on one thread, deterministic by its seed and its clock.

An append or a transaction becomes events on a timeline: stored at one time, answered at a later one. Within a
partition both keep the order of the appends; between partitions they may change places. `poll` moves the timeline to
the clock's now; `next_due_ms` says where a simulation has to move its clock for the next thing to happen. `kill` is
what `kill -9` is to a process: what was under way is stored or lost, at random.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from random import Random

from native_backend.log.port import (
    Append,
    Appended,
    Cause,
    Completion,
    Failure,
    Reader,
    TopicPartition,
    Transacted,
    Write,
)
from native_backend.log.record_headers import key_bytes
from native_backend.log.simulated.control import SimulatedControl
from native_backend.log.simulated.disk import TRANSACTION_TIMEOUT_MS, Disk, OpenTransaction, Partition, Stored
from native_backend.log.simulated.faults import NONE, Faults, happens
from native_backend.log.simulated.reader import SimulatedReader

RECORD_BYTES_MAX = 16 << 20


class SimulatedLog:
    """A driver of `native_backend.log.port.Log`."""

    kind = "simulated"
    poll_interval_s = 0.001
    descriptor = -1

    def __init__(
        self,
        disk: Disk,
        random: Random,
        now_ms: Callable[[], int],
        faults: Faults = NONE,
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        self.faults = faults
        self._disk = disk
        self._random = random
        self._now_ms = now_ms
        self._record_bytes_max = record_bytes_max
        self._timeline: list[tuple[int, int, TopicPartition | None, Callable[[], None]]] = []
        self._count = 0
        self._busy_until: dict[TopicPartition, int] = {}
        self._epochs: dict[str, int] = {}
        self.control = SimulatedControl(disk, random, now_ms, lambda: self.faults, record_bytes_max, self._epochs)
        self._completions: list[Completion] = []
        self._dead = False

    # -- data

    def append(self, batch: Append) -> None:
        assert not self._dead
        place = (batch.topic, batch.partition)
        start = 0
        for end in self._pieces(batch):
            due = self._due(place)
            self._at(due, place, lambda start=start, end=end: self._store(batch, start, end))  # type: ignore[misc]
            start = end

    def transact(self, shard: str, writes: Sequence[Write], owner: object) -> None:
        assert not self._dead
        due = self._due((f"transactions of {shard}", 0))
        self._at(due, None, lambda: self._commit(shard, writes, owner))

    def open_reader(
        self, topic: str, partition: int, start: int, stamped: bool = False, headed: bool = False
    ) -> Reader:
        part = self._disk.partitions.get((topic, partition))
        return SimulatedReader(part, start, self._now_ms, lambda: self._roll(self.faults.stall), stamped)

    def poll(self) -> list[Completion]:
        self.advance()
        completions, self._completions = self._completions, []
        return completions

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Not needed: the owner of this log polls it."""

    def advance(self) -> None:
        """Let happen what is due by now."""
        now = self._now_ms()
        self._disk.expire(now, self._random)
        while self._timeline and self._timeline[0][0] <= now:
            heapq.heappop(self._timeline)[3]()

    def next_due_ms(self) -> int | None:
        """When something happens next; None when nothing is under way."""
        return self._timeline[0][0] if self._timeline else None

    def kill(self) -> None:
        """The process dies. Of each partition a prefix of what was under way is stored; no answer comes."""
        lost: set[TopicPartition | None] = set()
        for _, _, place, event in sorted(self._timeline, key=lambda item: item[:2]):
            if place in lost or self._random.random() < 0.5:
                lost.add(place)
            else:
                event()
        self._timeline.clear()
        self._completions.clear()
        self._dead = True

    def close(self, deadline_s: float = 3.0) -> None:
        """What was under way is carried out; its completions are not read any more."""
        for *_, event in sorted(self._timeline, key=lambda item: item[:2]):
            event()
        self._timeline.clear()
        self._dead = True

    # -- the timeline

    def _at(self, due_ms: int, place: TopicPartition | None, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._timeline, (due_ms, self._count, place, event))

    def _due(self, place: TopicPartition) -> int:
        """When the next thing at `place` happens: never before the one that was asked for earlier."""
        due = max(self._now_ms() + self._delay(self.faults.delay), self._busy_until.get(place, 0))
        self._busy_until[place] = due
        return due

    def _delay(self, probability: float) -> int:
        return self._random.randint(1, self.faults.delay_ms_max) if self._roll(probability) else 0

    def _roll(self, probability: float) -> bool:
        return happens(probability, self._random)

    def _answer(self, place: TopicPartition, completion: Completion) -> None:
        answers = (f"answers of {place[0]}", place[1])
        self._at(self._due(answers), None, lambda: self._completions.append(completion))

    # -- storing

    def _pieces(self, batch: Append) -> list[int]:
        """Where the batch is cut: each record too large for the log stands alone."""
        count = len(batch.keys)
        cuts = {count}
        if count > 1 and self._roll(self.faults.split):
            cuts.add(self._random.randint(1, count - 1))
        for index in range(count):
            if self._too_large(batch, index):
                cuts |= {index, index + 1}
        return sorted(cuts - {0}) or [0]

    def _too_large(self, batch: Append, index: int) -> bool:
        return key_bytes(batch.keys[index]) + len(batch.values[index]) > self._record_bytes_max

    def _store(self, batch: Append, start: int, end: int) -> None:
        place = (batch.topic, batch.partition)
        partition = self._disk.partitions.get(place)
        if partition is None:
            self._fail(batch, start, end, Failure("not-found", f"no {batch.topic}/{batch.partition}"))
        elif end > start and self._too_large(batch, start):
            self._fail(batch, start, end, Failure("too-large", "the record"))
        elif self._roll(self.faults.refuse):
            self._fail(batch, start, end, Failure(self._random.choice(self.faults.refusals), "simulated"))
        elif self._roll(self.faults.unknown_append):
            if self._random.random() < 0.5:
                self._write_run(partition, batch, start, end)
            self._fail(batch, start, end, Failure("indeterminate", "simulated"))
        else:
            self._answer(place, Appended(batch, start, self._write_run(partition, batch, start, end)))

    def _fail(self, batch: Append, start: int, end: int, failure: Failure) -> None:
        self._answer((batch.topic, batch.partition), Appended(batch, start, [-1] * (end - start), failure))

    def _write_run(self, partition: Partition, batch: Append, start: int, end: int) -> list[int]:
        visible = self._skip_and_lag(partition)
        return [
            partition.write(self._now_ms(), batch.keys[index], batch.values[index], visible).offset
            for index in range(start, end)
        ]

    def _skip_and_lag(self, partition: Partition) -> int:
        if self._roll(self.faults.gap):
            partition.end += self._random.randint(1, 5)
        lag = self._random.randint(1, self.faults.lag_ms_max) if self._roll(self.faults.lag) else 0
        return self._now_ms() + lag

    # -- transactions

    def _commit(self, shard: str, writes: Sequence[Write], owner: object) -> None:
        if self._roll(self.faults.fence):
            self._disk.epochs[shard] = self._disk.epochs.get(shard, 0) + 1
        failure = self._fault(shard, writes)
        offsets = [-1] * len(writes)
        if failure is None and self._roll(self.faults.unknown_commit):
            self._leave_unknown(shard, writes)
            failure = Failure("indeterminate", "simulated")
        elif failure is None:
            offsets = [record.offset for _, record in self._write_all(writes, is_open=False)]
        self._answer((f"transactions of {shard}", 0), Transacted(owner, offsets, failure))

    def _fault(self, shard: str, writes: Sequence[Write]) -> Failure | None:
        if shard not in self._epochs or self._epochs[shard] != self._disk.epochs.get(shard):
            return Failure("fenced", f"shard {shard} is claimed by another process, or by none")
        if shard in self._disk.left_open:
            return Failure("indeterminate", f"shard {shard} has a transaction in doubt: claim it again")
        for write in writes:
            partition = self._disk.partitions.get((write.topic, write.partition))
            cause: Cause | None = None
            if partition is None:
                cause = "not-found"
            elif key_bytes(write.key) + len(write.value or b"") > self._record_bytes_max:
                cause = "too-large"
            elif partition.compacted and write.key is None:
                cause = "unexpected"
            if cause is not None:
                return Failure(cause, f"{write.topic}/{write.partition}")
        if self._roll(self.faults.refuse):
            return Failure(self._random.choice(self.faults.refusals), "simulated")
        return None

    def _leave_unknown(self, shard: str, writes: Sequence[Write]) -> None:
        fate = self._random.choice(("applied", "not applied", "open"))
        if fate == "applied":
            self._write_all(writes, is_open=False)
        elif fate == "open":
            expires = self._now_ms() + TRANSACTION_TIMEOUT_MS
            self._disk.left_open[shard] = OpenTransaction(expires, self._write_all(writes, is_open=True))

    def _write_all(self, writes: Sequence[Write], *, is_open: bool) -> list[tuple[Partition, Stored]]:
        touched = {(w.topic, w.partition) for w in writes}
        visible = max((self._skip_and_lag(self._disk.partitions[place]) for place in sorted(touched)), default=0)
        places = []
        for write in writes:
            partition = self._disk.partitions[write.topic, write.partition]
            places.append((partition, partition.write(self._now_ms(), write.key, write.value, visible, is_open)))
        return places
