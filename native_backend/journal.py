"""The journal: the truth about acknowledgement, one fenced transaction at a time for everything that is waiting.

`Settlement`s gather; a transaction begins when none is in flight and the last one began `journal_interval_s` ago, or at
once when `journal_events` wait. A record stored makes its settlements true, in order. A transaction of unknown result
is resolved before anybody is answered: claim again, read the journal's tail, apply or submit again. Being fenced, or
finding another run's records in that tail, ends this process's ownership for good.

Records: docs/records.md "Journal". May import: the standard library, orjson, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from native_backend.acknowledgement import Run
from native_backend.answers import Answer, Operation, SettleAnswer, Settled
from native_backend.clock import Clock
from native_backend.control import Control
from native_backend.limits import RealmLimits
from native_backend.log import Cause, Failure, Log, LogError, Transacted, Write
from native_backend.metadata import read_tail

_LOG = logging.getLogger(__name__)
_ANSWERS: dict[Cause, SettleAnswer] = {"refused": "access-denied", "not-found": "not-found"}
_PAUSE_S = 0.001  # between two looks while a journal is begun
_TRIED_AGAIN = ("unavailable",)  # certainly not done, and not for ever: nobody needs to be told


class Keeper(Protocol):
    """Whose state a settlement changes."""

    def keys(self) -> tuple[str, str, int]:
        """Node, durable, store."""
        ...

    def settled(self, settlement: Settlement) -> None:
        """The journal holds it."""
        ...

    def restore(self, settlement: Settlement) -> None:
        """The journal will never hold it: the events are as outstanding as before."""
        ...


@dataclass(slots=True, eq=False)
class Settlement:
    """One `Subscription.settle`, waiting for the journal."""

    keeper: Keeper
    link: Any
    operation: Operation
    failed: bool
    elsewhere: bool
    cause: str
    runs: list[Run]
    count: int
    owner: Any


@dataclass(slots=True)
class _Batch:
    settlements: list[Settlement]
    writes: list[Write]
    numbers: range  # `n` of its records


class Journal:
    """The group commit of one shard."""

    def __init__(
        self,
        log: Log,
        prefix: str,
        run: str,
        clock: Clock,
        control: Control,
        limits: RealmLimits,
        answer: Callable[[Answer], None],
    ) -> None:
        self.topic = journal_topic(prefix)
        self.shard = f"{prefix}.shard.0"
        self.next = 0  # the first offset whose record is not applied
        self.records = 0  # stored by this run
        self.fenced = False
        self.on_fenced: Callable[[], None] = lambda: None
        self._log, self._run, self._clock, self._control = log, run, clock, control
        self._limits, self._answer = limits, answer
        self._waiting: list[Settlement] = []
        self._count = 0
        self._batch: _Batch | None = None
        self._n = 0
        self._begin_s = float("-inf")
        self._retry_s: float | None = None  # when to do `_again`
        self._again: Callable[[], None] = self._transact
        self._interval_s = limits.journal_interval_s if log.poll_interval_s > 0 else 0.0

    @property
    def busy(self) -> bool:
        return self._batch is not None or bool(self._waiting)

    def begin(self) -> int:
        """After a claim: this run's first record, without entries; returns its offset. Blocks; raises LogError.

        Whatever an earlier owner committed lies below it. So who has read the journal up to it has read all of it, even
        where a log shows committed records a little late; and who finds it above his own knows that he was followed.
        """
        self._n = 1
        value = _record(self._run, self._n, self._clock.epoch_us(), {})
        self._log.transact(self.shard, [Write(self.topic, 0, self._run.encode(), value)], self)
        until_s = self._clock.monotonic_s() + self._limits.control_deadline_s
        while self._clock.monotonic_s() < until_s:
            for completion in self._log.poll():
                if isinstance(completion, Transacted) and completion.owner is self:
                    if completion.failure is not None:
                        raise LogError(completion.failure)
                    return completion.offsets[0]
            self._control.pause(_PAUSE_S)
        raise LogError(Failure("unavailable", "the journal's first record was not stored in time"))

    def add(self, settlement: Settlement) -> None:
        if self.fenced:
            self._refuse([settlement], "unexpected", "fenced")
            return
        self._waiting.append(settlement)
        self._count += settlement.count

    def advance(self) -> None:
        """Begin what may begin now."""
        now_s = self._clock.monotonic_s()
        if self._retry_s is not None and now_s >= self._retry_s:
            self._retry_s = None
            self._again()
        if self._batch is not None or not self._waiting:
            return
        if now_s - self._begin_s < self._interval_s and self._count < self._limits.journal_events:
            return
        self._begin_s = now_s
        waiting, self._waiting, self._count = self._waiting, [], 0
        values = [*encode(self._run, self._n + 1, self._clock.epoch_us(), waiting, self._limits.journal_runs)]
        numbers = range(self._n + 1, self._n + 1 + len(values))
        self._n = numbers[-1]
        key = self._run.encode()
        self._batch = _Batch(waiting, [Write(self.topic, 0, key, value) for value in values], numbers)
        self._transact()

    def completed(self, transacted: Transacted) -> None:
        """The log's answer about the transaction in flight."""
        batch = self._batch
        if batch is None or transacted.owner is not batch:  # given up when this process was fenced
            return
        failure = transacted.failure
        if failure is None:
            self._stored(batch, transacted.offsets[-1] + 1)
        elif failure.cause == "fenced":
            self.give_up(failure.code or "fenced")
        elif failure.cause == "indeterminate":
            _LOG.warning("journal transaction %s has no known result: %s", batch.numbers, failure.detail)
            self._resolve()
        elif failure.cause in _TRIED_AGAIN:
            self._later(self._transact)
        else:
            _LOG.error("journal transaction %s failed: %s", batch.numbers, failure)
            self._batch = None
            self._n = batch.numbers[0] - 1  # nothing was stored: no hole in the numbers
            self._refuse(batch.settlements, _ANSWERS.get(failure.cause, "unexpected"), failure.code or failure.cause)

    def give_up(self, native: str, answer: SettleAnswer = "unexpected") -> None:
        """This process no longer owns the shard: nothing is written again."""
        self.fenced = True
        settlements = (self._batch.settlements if self._batch else []) + self._waiting
        self._batch, self._waiting, self._count, self._retry_s = None, [], 0, None
        self._refuse(settlements, answer, native)
        self.on_fenced()

    def _transact(self) -> None:
        assert self._batch is not None
        self._log.transact(self.shard, self._batch.writes, self._batch)

    def _stored(self, batch: _Batch, following: int) -> None:
        self._batch = None
        self.next = following
        self.records += len(batch.writes)
        for settlement in batch.settlements:
            settlement.keeper.settled(settlement)
            self._answer(Settled(settlement.owner, "done"))

    def _refuse(self, settlements: list[Settlement], answer: SettleAnswer, native: str) -> None:
        for settlement in settlements:
            settlement.keeper.restore(settlement)
            self._answer(Settled(settlement.owner, answer, native))

    def _later(self, again: Callable[[], None]) -> None:
        self._again = again
        self._retry_s = self._clock.monotonic_s() + self._limits.retry_interval_s

    def _resolve(self) -> None:
        """Claim again (which ends the transaction one way or the other), then look."""
        start = self.next

        def look() -> list[tuple[int, str, int]]:
            self._log.claim(self.shard, self._limits.control_deadline_s)
            return [(offset, record["run"], record["n"]) for offset, record in tail(self._log, self.topic, start)]

        self._control.submit(look, self._looked)

    def _looked(self, found: list[tuple[int, str, int]] | LogError) -> None:
        batch = self._batch
        if batch is None:
            return
        if isinstance(found, LogError):
            if found.failure.cause == "fenced":
                self.give_up("fenced")
            else:
                _LOG.warning("cannot learn the fate of journal transaction %s yet: %s", batch.numbers, found)
                self._later(self._resolve)
        elif any(run != self._run for _, run, _ in found):
            self.give_up("fenced")  # another process owned the shard meanwhile: our state is stale
        elif any(n in batch.numbers for _, _, n in found):
            self._stored(batch, found[-1][0] + 1)
        else:
            self._transact()


def journal_topic(prefix: str) -> str:
    return f"{prefix}.journal"


def tail(log: Log, topic: str, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Offset and content of every journal record from `start`. Blocks; raises LogError."""
    for records in read_tail(log, topic, start):
        for offset, value in zip(records.offsets, records.values, strict=True):
            if value is not None:
                yield offset, orjson.loads(value)


def encode(run: str, n: int, at_us: int, settlements: list[Settlement], runs_max: int) -> Iterator[bytes]:
    """The settlements of one transaction as records of at most `runs_max` runs each: one, nearly always."""
    entries: dict[tuple[int, str, bool, str], dict[str, Any]] = {}
    room = runs_max
    for settlement in settlements:
        runs, at = settlement.runs, 0
        while at < len(runs):
            if not room:
                yield _record(run, n, at_us, entries)
                entries, room, n = {}, runs_max, n + 1
            part = runs[at : at + room] if at or len(runs) > room else runs
            _entry(entries, settlement)["runs"].extend(part)
            at += len(part)
            room -= len(part)
    yield _record(run, n, at_us, entries)


def _record(run: str, n: int, at_us: int, entries: dict[tuple[int, str, bool, str], dict[str, Any]]) -> bytes:
    return orjson.dumps({"v": 1, "run": run, "n": n, "at": at_us, "entries": [*entries.values()]})


def _entry(entries: dict[tuple[int, str, bool, str], dict[str, Any]], settlement: Settlement) -> dict[str, Any]:
    """What has the same keeper, operation, count and cause shares an entry."""
    key = (id(settlement.keeper), settlement.operation, settlement.failed, settlement.cause)
    entry = entries.get(key)
    if entry is None:
        node, durable, store = settlement.keeper.keys()
        entry = entries[key] = {
            "node": node,
            "durable": durable,
            "store": store,
            "operation": settlement.operation,
            "failed": int(settlement.failed),
            "cause": settlement.cause,
            "runs": [],
        }
    return entry
