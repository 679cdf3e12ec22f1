"""The journal: the truth about acknowledgement, one fenced transaction at a time for everything that is waiting.

`Settlement`s and `Unit`s gather; a transaction begins when none is in flight and the last one began
`journal_interval_s` ago, or at once when `journal_events` wait; and when the log has rested. It carries their event
writes, then the journal's record. A record stored makes its items true, in order. One that fails for a reason that may
concern one item only is tried again item by item; where the log has no room, commits are refused, and all else waits.
A transaction of unknown result (or that was fenced) is resolved before any owner is answered: make sure that the shard
is still ours, claim again, read the journal's tail up to a mark written after the claim, apply or submit again. Another
owner, or another run's records in that tail, ends this process's ownership for good.

Records: docs/records.md "Journal".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import orjson

from mappings.language.causes import ANSWERS, unanswered
from native_backend.clock import Clock
from native_backend.events.known_ends import KnownEnds
from native_backend.journal.journal_record import Lookback, encode, encode_record
from native_backend.journal.settlement import (
    Item,
    Settlement,
    Unit,
    event_writes,
    is_commit,
    refuse,
    separable,
    settled_count,
    settlements_of,
    written_bytes,
)
from native_backend.limits import RealmLimits
from native_backend.log.find_written import find_written
from native_backend.log.port import Cause, Failure, Log, LogError, TopicPartition, Transacted, Write
from native_backend.log.worker import Worker
from native_backend.nodes.answers import Answer, Settled
from native_backend.nodes.metadata import read_tail
from native_backend.nodes.words import CommitAnswer, SettleAnswer
from native_backend.state.durations import Durations
from native_backend.state.mistakes import unforeseen

_LOG = logging.getLogger(__name__)
_ANSWERS = cast("Mapping[Cause, SettleAnswer]", ANSWERS["settle"])
_UNIT_ANSWERS = cast("Mapping[Cause, CommitAnswer]", ANSWERS["commit"])
_PAUSE_S = 0.001  # between two looks at the journal's end
_LOOKS = 5  # for events that are known to be stored
# Fenced is in doubt: Kafka says so also of a transaction that took too long; the lease knows who owns the shard.
_IN_DOUBT = unanswered("settle", "looked-up")
_TRIED_AGAIN = unanswered("settle", "asked-again")  # certainly not done, but it may be later: no answer is needed
_COMMITTED_AGAIN = unanswered("commit", "asked-again")


@dataclass(slots=True)
class _Batch:
    """One transaction of the log: the writes of its items in order, then the journal's own records."""

    items: list[Item]
    events: list[Write]
    records: list[Write]
    numbers: range  # `n` of its records
    began_s: float
    known: dict[TopicPartition, int]  # where the stores that it writes to were known to end


class Journal:
    """The group commit of one shard."""

    def __init__(
        self,
        log: Log,
        prefix: str,
        run: str,
        clock: Clock,
        worker: Worker,
        limits: RealmLimits,
        answer: Callable[[Answer], None],
    ) -> None:
        self.topic, self.shard = journal_topic(prefix), f"{prefix}.shard.0"
        self.next = 0  # the first offset whose record is not applied, or not as a whole
        self.applying = False  # a record, item by item: states are ahead of `next`
        self._afterwards: list[Callable[[], None]] = []
        self.records = 0  # stored by this run
        self.on_grown: Callable[[], None] = lambda: None  # it has more records
        self.on_stored: Callable[[list[Write], list[int]], None] = lambda writes, offsets: None  # of events
        self.seconds = Durations()  # of its transactions, tries and doubts included
        self.known = KnownEnds()
        self.fenced = False
        self.on_fenced: Callable[[], None] = lambda: None
        self.on_shorter: Callable[[int], None] = lambda _: None  # it ends that much earlier than it did
        self.confirm: Callable[[], None] = lambda: None  # blocks; raises `fenced` when another process owns the shard
        self.on_mistake: Callable[[str], str] = unforeseen
        self._log, self._run, self._clock, self._worker = log, run, clock, worker
        self._limits, self._answer = limits, answer
        self._waiting: list[Item] = []
        self.unstored = self._bytes = 0  # events settled by what is waiting; octets of those that it writes
        self._singly: list[list[Item]] = []  # to be tried one after another, before what is waiting
        self._batch: _Batch | None = None
        self._n = 0
        self._begin_s = self._rested_s = float("-inf")
        self._retry_s: float | None = None  # when to do `_again`
        self._again: Callable[[], None] = self._transact
        self._interval_s = limits.journal_interval_s if log.poll_interval_s > 0 else 0.0

    @property
    def busy(self) -> bool:
        return self._batch is not None or bool(self._waiting or self._singly)

    def items(self) -> list[Item]:
        """All that is not answered yet."""
        begun = self._batch.items if self._batch else []
        return [*begun, *(item for group in self._singly for item in group), *self._waiting]

    def begin(self) -> int:
        """After a claim: this run's first record, without entries; returns its offset. Blocks; raises LogError.

        Whatever an earlier owner committed lies below it. So who has read the journal up to it has read all of it, even
        where a log shows committed records a little late; and who finds it above his own knows that he was followed.
        """
        self._n = 1
        value = encode_record(self._run, self._n, self._clock.epoch_us(), {})
        self._log.transact(self.shard, [Write(self.topic, 0, self._run.encode(), value)], self)
        until_s = self._clock.monotonic_s() + self._limits.control_deadline_s
        while self._clock.monotonic_s() < until_s:
            for completion in self._log.poll():
                if isinstance(completion, Transacted) and completion.owner is self:
                    if completion.failure is not None:
                        raise LogError(_waited_for(completion.failure))
                    return completion.offsets[0]
            self._worker.pause(_PAUSE_S)
        raise LogError(Failure("unavailable", "the journal's first record was not stored in time"))

    def add(self, settlement: Settlement) -> None:
        """Answered by `Settled`."""
        if self.fenced:
            self._refuse([settlement], "fenced", "fenced")
            return
        self._waiting.append(settlement)
        self.unstored += settlement.count
        if settlement.writes:
            self._bytes += written_bytes(settlement)

    def add_unit(self, unit: Unit) -> None:
        """Answered by `Committed`."""
        if self.fenced:
            self._refuse([unit], "fenced", "fenced")
            return
        self._waiting.append(unit)
        self.unstored += settled_count(unit)
        self._bytes += written_bytes(unit)

    def advance(self) -> None:
        """Begin what may begin now."""
        now_s = self._clock.monotonic_s()
        if self._retry_s is not None and now_s >= self._retry_s:
            self._retry_s = None
            self._again()
        if self._batch is not None:
            return
        if self._singly:
            self._begin(self._singly.pop(0))
        elif self._waiting:
            full = self.unstored >= self._limits.journal_events or self._bytes >= self._limits.transaction_bytes
            if now_s >= self._rested_s and (full or now_s - self._begin_s >= self._interval_s):
                self._begin_s = now_s
                self._begin(self._gather())

    def _gather(self) -> list[Item]:
        """Of what is waiting as much as one transaction may carry; at least one item."""
        if self._bytes <= self._limits.transaction_bytes:
            items, self._waiting, self.unstored, self._bytes = self._waiting, [], 0, 0
            return items
        room, fit = self._limits.transaction_bytes, 0
        for item in self._waiting:
            room -= written_bytes(item)
            if room < 0 and fit:
                break
            fit += 1
        items, self._waiting = self._waiting[:fit], self._waiting[fit:]
        self._bytes -= sum(map(written_bytes, items))
        self.unstored -= sum(map(settled_count, items))
        return items

    def _begin(self, items: list[Item]) -> None:
        settlements = [settlement for item in items for settlement in settlements_of(item)]
        values = [*encode(self._run, self._n + 1, self._clock.epoch_us(), settlements, self._limits.journal_runs)]
        numbers = range(self._n + 1, self._n + 1 + len(values))
        self._n = numbers[-1]
        key = self._run.encode()
        records = [Write(self.topic, 0, key, value) for value in values]
        events = event_writes(items)
        known = {place: self.known.of(place) for place in {(write.topic, write.partition) for write in events}}
        self._batch = _Batch(items, events, records, numbers, self._clock.monotonic_s(), known)
        self._transact()

    def completed(self, transacted: Transacted) -> None:
        """The log's answer about the transaction in flight."""
        batch = self._batch
        if batch is None or transacted.owner is not batch:  # given up when this process was fenced
            return
        failure = transacted.failure
        self._rested_s = self._clock.monotonic_s() + transacted.rest_s
        if failure is None:
            self._stored(batch, transacted.offsets[: len(batch.events)], transacted.offsets[-1] + 1)
        elif failure.cause in _IN_DOUBT:
            _LOG.warning("journal transaction %s: %s", batch.numbers, failure)
            self._resolve()
        elif failure.cause in _COMMITTED_AGAIN:
            self._later(self._transact)
        elif failure.cause in _TRIED_AGAIN:
            self._no_room(batch, failure)
        else:
            self._failed(batch, failure)

    def _failed(self, batch: _Batch, failure: Failure) -> None:
        """Certainly not stored, and trying the same again would not help."""
        self._batch = None
        self._n = batch.numbers[0] - 1  # no hole in the numbers
        groups = separable(batch.items)
        if len(groups) > 1:
            _LOG.warning("journal transaction %s failed, its parts are tried singly: %s", batch.numbers, failure)
            self._singly[:0] = groups
            return
        _LOG.error("journal transaction %s failed: %s", batch.numbers, failure)
        self._refuse(batch.items, failure.cause, failure.code or failure.cause)

    def _no_room(self, batch: _Batch, failure: Failure) -> None:
        """Commits are tried one by one, and refused. All else waits, and holds up nothing that comes."""
        commits = [item for item in batch.items if is_commit(item)]
        if commits == batch.items and len(commits) == 1:
            self._failed(batch, failure)
            return
        self._batch = None
        self._n = batch.numbers[0] - 1
        self._singly[:0] = [[commit] for commit in commits]
        waits = [item for item in batch.items if not is_commit(item)]
        self._waiting[:0] = waits
        self._bytes += sum(map(written_bytes, waits))
        self.unstored += sum(map(settled_count, waits))
        self._rested_s = self._clock.monotonic_s() + self._limits.retry_interval_s

    def give_up(self, native: str, cause: Cause = "unexpected") -> None:
        """This process no longer owns the shard: nothing is written again."""
        self.fenced = True
        items = self.items()
        self._batch, self._singly, self._waiting, self._retry_s = None, [], [], None
        self.unstored = self._bytes = 0
        self._refuse(items, cause, native)
        self.on_fenced()

    def _transact(self) -> None:
        assert self._batch is not None
        self._log.transact(self.shard, self._batch.events + self._batch.records, self._batch)

    def _stored(self, batch: _Batch, offsets: list[int], following: int) -> None:
        self._batch, self.applying, missing = None, True, self.next - following
        self.records += len(batch.records)
        self.on_grown()
        self.seconds.add(self._clock.monotonic_s() - batch.began_s)
        try:
            self._apply(batch, offsets)
        finally:
            self.next, self.applying = following, False
        steps, self._afterwards = self._afterwards, []
        for step in steps:
            try:
                step()
            except Exception:
                self.on_mistake("what follows a stored settlement could not be done")
        if missing >= 0:
            self.on_shorter(missing)

    def afterwards(self, step: Callable[[], None]) -> None:
        """Once the record is applied as a whole; at once where none is being applied."""
        if self.applying:
            self._afterwards.append(step)
        else:
            step()

    def _apply(self, batch: _Batch, offsets: list[int]) -> None:
        self._written(batch, offsets)
        places = iter(offsets)
        for item in batch.items:
            for settlement in settlements_of(item):
                if settlement.writes:
                    settlement.offsets = [*islice(places, len(settlement.writes))]
                self._keep(settlement)
            if item.owner is None:
                continue
            if isinstance(item, Unit) and not item.settles:
                self._answer(item.answered("done", [*islice(places, len(item.writes))]))
            else:
                self._answer(Settled(item.owner, "done"))

    def _keep(self, settlement: Settlement) -> None:
        """The journal has it, whatever becomes of it here."""
        try:
            settlement.keeper.settled(settlement)
        except Exception:
            self.on_mistake("a stored settlement could not be applied")

    def _written(self, batch: _Batch, offsets: list[int]) -> None:
        """Its events have these offsets: -1 where one is gone already."""
        columns = zip(batch.events, offsets, strict=True)
        written = [((write.topic, write.partition), offset) for write, offset in columns if offset >= 0]
        if batch.events:
            self.on_stored(batch.events, offsets)
        for place, offset in written:
            self.known.stored(place, offset, offset, batch.known[place])

    def _refuse(self, items: list[Item], cause: Cause, native: str) -> None:
        for item in items:
            refuse(item, cause)
            if item.owner is None:
                continue
            if isinstance(item, Unit) and not item.settles:
                self._answer(item.answered(_UNIT_ANSWERS[cause], [-1] * len(item.writes), native))
            else:
                self._answer(Settled(item.owner, _ANSWERS[cause], native))

    def _later(self, again: Callable[[], None]) -> None:
        self._again, self._retry_s = again, self._clock.monotonic_s() + self._limits.retry_interval_s

    def _resolve(self) -> None:
        """Claim again (which ends the transaction one way or the other), then look."""
        batch, start = self._batch, self.next
        assert batch is not None

        def look() -> Lookback:
            self.confirm()  # a former owner must not fence the present one
            self._log.control.claim(self.shard, self._limits.control_deadline_s)
            self._await_mark()
            entries = [(offset, record["run"], record["n"]) for offset, record in tail(self._log, self.topic, start)]
            stored = any(run == self._run and n in batch.numbers for _, run, n in entries)
            offsets = self._find(batch.events) if stored else []
            rival = any(run != self._run for _, run, _ in entries)
            return Lookback(rival, stored, offsets, entries[-1][0] + 1 if entries else start)

        self._worker.submit(look, self._looked)

    def _find(self, events: list[Write]) -> list[int]:
        """Where they are; another topic than the journal's may show them a little later."""
        for _ in range(_LOOKS):
            offsets = find_written(self._log, events, self._limits.control_deadline_s)
            if -1 not in offsets:
                break
            self._worker.pause(self._limits.retry_interval_s)
        return offsets

    def _await_mark(self) -> None:
        """Write a tombstone and wait until it can be read: then so can all that was committed before. Else events would
        be written twice where a log shows a committed transaction a little late."""
        deadline_s = self._limits.control_deadline_s
        mark = self._log.control.put(self.topic, self._run.encode(), None, deadline_s)
        until_s = self._clock.monotonic_s() + deadline_s
        while self._log.control.bounds(self.topic, 0, deadline_s)[1] <= mark:
            if self._clock.monotonic_s() >= until_s:
                raise LogError(Failure("unavailable", f"{self.topic} cannot be read up to {mark}"))
            self._worker.pause(_PAUSE_S)

    def _looked(self, sight: Lookback | LogError) -> None:
        batch = self._batch
        if batch is None:
            return
        if isinstance(sight, LogError):
            if sight.failure.cause == "fenced":
                self.give_up("fenced", "fenced")
            else:
                _LOG.warning("the result of journal transaction %s is not known yet: %s", batch.numbers, sight)
                self._later(self._resolve)
        elif sight.rival:
            self.give_up("fenced", "fenced")  # another process owned the shard meanwhile: our state is stale
        elif sight.stored:
            self._stored(batch, sight.offsets, sight.following)
        else:
            self._transact()


def _waited_for(failure: Failure) -> Failure:
    """To open a realm waits for room, as it waits for a log that is away."""
    return replace(failure, cause="unavailable") if failure.cause in _TRIED_AGAIN else failure


def journal_topic(prefix: str) -> str:
    return f"{prefix}.journal"


def tail(log: Log, topic: str, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Offset and content of every journal record from `start`. Blocks; raises LogError."""
    for records in read_tail(log, topic, start):
        for offset, value in zip(records.offsets, records.values, strict=True):
            if value is not None:
                yield offset, orjson.loads(value)
