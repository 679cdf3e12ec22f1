"""When snapshots are written, and what the state topic has of each durable.

A round writes every durable of the shard, some at a time: their states are copied on the realm's thread (columns, so a
copy is cheap), encoded and stored on the worker thread, one batch after the other. When a set is complete, what it
replaces gets tombstones, in this order: between the two a kill leaves one set too many and never one too few.
A failure is logged and made good by the next round: nothing depends on a snapshot while the journal is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from native_backend.dispatch.context import RealmContext
from native_backend.journal.recovery import Recovery
from native_backend.journal.snapshot import Key, StateCopy, encode_snapshot, state_topic
from native_backend.log.port import LogError

_LOG = logging.getLogger(__name__)
_PUT_BYTES = 2 << 20
Freeze = Callable[[Key], StateCopy | None]
Known = dict[Key, tuple[bytes, ...]]
Stored = dict[Key, tuple[int, tuple[bytes, ...]]]  # the journal offset of the newest set, and the keys of all records


class SnapshotWriter:
    """See the module's docstring. `every`: the durables of a round. `freeze` copies the state of one as of now; None
    when it is gone or just opening."""

    def __init__(self, context: RealmContext, every: Callable[[], Iterable[Key]], freeze: Freeze) -> None:
        self._context = context
        self._every, self._freeze = every, freeze
        self._timer = context.timers.timer("snapshots", self._go_on)
        context.journal.on_grown = self._grown
        self._stored: Stored = {}
        self._due: dict[Key, None] = {}  # of the round under way, the last first
        self._running = 0  # batches on their way
        self._gone: list[tuple[int, str | None]] = []  # deleted while they were; None: the whole store
        self._next = context.limits.snapshot_records
        self._sets = 0

    def begin(self, recovery: Recovery) -> None:
        """What the state topic has. The more of the journal recovery had to read, the sooner is the first round."""
        self._stored = {key: (state.snapshot, state.keys) for key, state in recovery.states.items() if state.keys}
        self._next = max(0, self._context.limits.snapshot_records - recovery.replayed)
        self._grown()

    @property
    def needed(self) -> int | None:
        """Recovery reads the journal from here, if this process ends now; None: from wherever it begins."""
        return min((journal for journal, _ in self._stored.values()), default=None)

    def covers(self, keys: Iterable[Key]) -> bool:
        """Whether each of them has a snapshot."""
        return all(key in self._stored for key in keys)

    def _grown(self) -> None:
        """The journal has more records."""
        if self._context.journal.records >= self._next:
            self._timer.soon()

    def _go_on(self) -> None:
        """Begin a round when one is due, and its next batch."""
        records = self._context.journal.records
        if self._context.journal.fenced:
            return
        if records >= self._next:
            self._next = records + self._context.limits.snapshot_records
            if not self._due:
                self._due = dict.fromkeys(self._every())
        if self._due and not self._running:
            self._submit(self._batch())

    def _submit(self, batch: list[StateCopy]) -> None:
        if batch:
            self._running += 1
            known, number = self._known(frozen.key for frozen in batch), self._number(len(batch))
            deadline_s = self._context.limits.control_deadline_s
            self._context.worker.submit(partial(self._write, batch, number, known, deadline_s), self._written)

    def write_first(self, keys: list[Key]) -> None:
        """These are new, without a snapshot. They have one before the worker does what it is given after this."""
        size = self._context.limits.snapshot_batch
        for at in range(0, len(keys), size):
            copies = map(self._freeze, keys[at : at + size])
            self._submit([frozen for frozen in copies if frozen is not None])

    def writer(self, store: int, durable: str) -> Callable[[StateCopy], Stored]:
        """For a job that stores one snapshot now; what it returns is for `stored`."""
        known, number = self._known([(store, durable)]), self._number(1)
        return lambda frozen: self._write([frozen], number, known, self._context.limits.control_deadline_s)

    def stored(self, done: Stored) -> None:
        self._stored.update(done)

    def hurry(self, every: Iterable[Key]) -> None:
        """A round of these begins now."""
        self._due = dict.fromkeys(every)
        self._timer.soon()
        self._go_on()

    def soon(self, key: Key) -> None:
        """This one is due now, besides those of the round under way."""
        self._due[key] = None
        self._timer.soon()

    def rewrite(self, every: Iterable[Key]) -> None:
        """A round of these, at once. Blocks; raises LogError."""
        self._due = dict.fromkeys(every)
        while self._due:
            self._write_next(self._context.limits.control_deadline_s)

    def close(self, every: Iterable[Key], until_s: float) -> None:
        """The last round. Blocks."""
        self._due = dict.fromkeys(every)
        while self._due and (left_s := until_s - self._context.clock.monotonic_s()) > 0:
            try:
                self._write_next(left_s)
            except LogError as error:
                _warn(error)
                return

    def _write_next(self, deadline_s: float) -> None:
        batch = self._batch()
        known = self._known(frozen.key for frozen in batch)
        self.stored(self._write(batch, self._number(len(batch)), known, deadline_s))

    def forget(self, store: int, durable: str | None = None) -> None:
        """This durable was deleted, or the whole store: delete its snapshots."""
        if self._running:
            self._gone.append((store, durable))
        gone = [key for key in self._stored if key[0] == store and durable in (None, key[1])]
        self._erase([record for key in gone for record in self._stored.pop(key)[1]])

    def _erase(self, records: list[bytes]) -> None:
        log, topic = self._context.log, state_topic(self._context.prefix)
        deadline_s = self._context.limits.control_deadline_s
        if records:
            nothing = [None] * len(records)
            self._context.worker.submit(lambda: log.control.put_all(topic, records, nothing, deadline_s), _forgotten)

    def _known(self, keys: Iterable[Key]) -> Known:
        return {key: self._stored[key][1] for key in keys if key in self._stored}

    def _number(self, count: int) -> int:
        """The first of `count` numbers of sets."""
        first, self._sets = self._sets, self._sets + count
        return first

    def _batch(self) -> list[StateCopy]:
        """Copies of the next few: at most `snapshot_batch` durables and about as many ranges as make one record."""
        limits, batch, size = self._context.limits, list[StateCopy](), 0
        while self._due and len(batch) < limits.snapshot_batch and size < limits.snapshot_bytes // 50:
            frozen = self._freeze(self._due.popitem()[0])
            if frozen is not None:
                batch.append(frozen)
                size += len(frozen.state.acked) + len(frozen.state.failed)
        return batch

    def _write(self, batch: list[StateCopy], number: int, known: Known, deadline_s: float) -> Stored:
        log, topic = self._context.log, state_topic(self._context.prefix)
        keys: list[bytes] = []
        values: list[bytes] = []
        done: Stored = {}
        for at, frozen in enumerate(batch, number):
            parts = encode_snapshot(frozen, f"{self._context.run}:{at}", self._context.limits.snapshot_bytes)
            done[frozen.key] = frozen.journal, tuple(key for key, _ in parts)
            keys += (key for key, _ in parts)
            values += (value for _, value in parts)
        for part in _slices(values):
            log.control.put_all(topic, keys[part], values[part], deadline_s)
        replaced = [record for key, records in known.items() for record in records if record not in done[key][1]]
        if replaced:
            log.control.put_all(topic, replaced, [None] * len(replaced), deadline_s)
        return done

    def _written(self, done: Stored | LogError) -> None:
        self._running, gone = self._running - 1, self._gone
        if not self._running:
            self._gone = []
        if isinstance(done, LogError):
            self._due.clear()
            _warn(done)
        else:
            late = [key for key in done if (key[0], None) in gone or key in gone]
            self._erase([record for key in late for record in done.pop(key)[1]])
            self.stored(done)
            if self._due:
                self._timer.soon()


def _slices(values: list[bytes]) -> Iterator[slice]:
    """The records in slices that do not delay other work for long."""
    begin = size = 0
    for end, value in enumerate(values, 1):
        size += len(value)
        if size >= _PUT_BYTES or end == len(values):
            yield slice(begin, end)
            begin, size = end, 0


def _forgotten(done: list[int] | LogError) -> None:
    if isinstance(done, LogError):
        _LOG.warning("snapshots of a deleted node stay in the state topic: %s", done)


def _warn(error: LogError) -> None:
    _LOG.warning("snapshot not written, recovery will read more of the journal: %s", error)
