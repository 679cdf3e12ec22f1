"""Dead letters: events that are given up are copied to the node's dead-letter node, in the journal's transaction that
ends them.

Their bytes are read again on the control thread, a piece at a time, so that memory is bounded whatever a consumer
rejects at once. A letter is no letter twice: what is rejected at a dead-letter node, or would come back to where it is,
is discarded, so that nothing goes round for ever.

Records: docs/records.md "Event key", "Journal". May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from native_backend.acknowledgement import Acknowledgement, Run
from native_backend.answers import SettleAnswer, Settled
from native_backend.letter import Letter, copy_key, is_letter
from native_backend.limits import RealmLimits
from native_backend.log import Log, LogError, Records, Write
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.services import Services
from native_backend.settlement import Keeper, Settlement, Unit

_LOG = logging.getLogger(__name__)
_WAITED_OUT = ("unavailable", "unexpected", "indeterminate")


def dead_letter_node(metadata: Metadata, node: Node) -> Node | None:
    """Where letters of a node go now; None: nowhere."""
    current = metadata.stores.get(node.store, node)
    target = metadata.nodes.get(current.properties.dead_letter)
    return target.twin(node) if target is not None and target.name != node.name else None


class _Piece:
    """What is read at once: events to copy, and those that are not to be, or are no more (`gone`)."""

    def __init__(self, count: int, size_bytes: int) -> None:
        self.room, self._bytes = count, size_bytes
        self.eids: list[int] = []
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        self.kept: list[Run] = []
        self.gone: list[Run] = []
        self.missing: list[int] = []
        self.rest: list[Run] = []

    @property
    def is_full(self) -> bool:
        return self.room <= 0 or self._bytes <= 0

    def add(self, run: Run, start: int, records: Records) -> int:
        """Events of `run` from `start` on, as far as they fit; returns where to go on."""
        found = {
            eid: (key or b"", value)
            for eid, key, value in zip(records.offsets, records.keys, records.values, strict=True)
            if value is not None
        }
        for eid in range(start, min(records.next, run[1] + 1)):
            if self.is_full:
                return eid
            self.room -= 1
            key, value = found.get(eid, (b"", None))
            if value is None:
                self.missing.append(eid)
            if value is None or is_letter(key):
                _extend(self.gone, run, eid)
                continue
            _extend(self.kept, run, eid)
            self.eids.append(eid)
            self.keys.append(key)
            self.values.append(value)
            self._bytes -= len(value)
        return min(records.next, run[1] + 1)


def _extend(runs: list[Run], run: Run, eid: int) -> None:
    """Add an event of `run` to its own last run, or begin one."""
    _, _, seq, _ = one = _from(run, eid)
    if runs and runs[-1][1] == eid - 1 and (not seq or runs[-1][2] + eid - runs[-1][0] == seq):
        first, _, first_seq, cover = runs[-1]
        runs[-1] = (first, eid, first_seq, cover)
    else:
        runs.append((eid, eid, seq, one[3]))


class Burial:
    """One settlement on its way to the dead letters. Keeper of its pieces; its owner is told when the last one is in
    the journal, or when one is not."""

    def __init__(
        self, services: Services, keeper: Keeper, state: Acknowledgement, target: Node, node: Node, reason: str
    ) -> None:
        self._services, self._keeper, self._state = services, keeper, state
        self._target, self._topic, self._partition, self._reason = target, node.topic, node.partition, reason
        self._rest: list[Run] = []
        self._open = 0  # parts of the piece that is in the journal's hands
        self._whole: Settlement | None = None

    def begin(self, settlement: Settlement) -> None:
        """Its events are in our hands from now on."""
        self._whole, self._rest = settlement, settlement.runs
        self._read(0.0)

    def keys(self) -> tuple[str, str, int]:
        return self._keeper.keys()

    def settled(self, settlement: Settlement) -> None:
        self._keeper.settled(settlement)
        self._open -= 1
        if self._open:
            return
        if self._rest:
            self._read(0.0)
        else:
            self._tell("done", "")

    def restore(self, settlement: Settlement) -> None:
        """A piece failed, and with it what is left."""
        self._keeper.restore(settlement)
        self._open -= 1
        if not self._open:
            self._give_up("unexpected", "its dead letter could not be stored")

    def _give_up(self, answer: SettleAnswer, native: str) -> None:
        rest, self._rest = self._rest, []
        if rest:
            self._keeper.restore(self._part(rest))
        self._tell(answer, native)

    def _tell(self, answer: SettleAnswer, native: str) -> None:
        assert self._whole is not None
        if self._whole.owner is not None:
            self._services.answer(Settled(self._whole.owner, answer, native))

    def _read(self, pause_s: float) -> None:
        services, place, runs = self._services, (self._topic, self._partition), self._rest

        def job() -> _Piece:
            if pause_s:
                services.control.pause(pause_s)
            return _read_piece(services.log, place, runs, services.limits)

        services.control.submit(job, self._found)

    def _found(self, piece: _Piece | LogError) -> None:
        if isinstance(piece, LogError):
            if piece.failure.cause in _WAITED_OUT and not self._services.journal.fenced:
                _LOG.warning("cannot read dead letters from %s yet: %s", self._topic, piece)
                self._read(self._services.limits.retry_interval_s)
            else:
                known: SettleAnswer = "not-found" if piece.failure.cause == "not-found" else "unexpected"
                self._give_up(known, piece.failure.code or piece.failure.cause)
            return
        self._rest = piece.rest
        if piece.missing:
            _LOG.error("%s: %d events were gone before they could be dead letters", self._topic, len(piece.missing))
        parts = []
        if piece.eids:
            parts.append(self._part(piece.kept))
            parts[-1].to, parts[-1].writes = self._target.store, self._writes(piece)
        if piece.gone:
            parts.append(self._part(piece.gone))
        self._take(piece, parts)

    def _take(self, piece: _Piece, parts: list[Settlement]) -> None:
        self._open = len(parts)
        self._services.journal.add_unit(Unit(parts, [], None))

    def _part(self, runs: list[Run]) -> Settlement:
        whole = self._whole
        assert whole is not None
        count = sum(last - first + 1 for first, last, _, _ in runs)
        cause, held = whole.cause, whole.held
        return Settlement(self, whole.link, whole.operation, False, False, cause, runs, count, None, held=held)

    def _writes(self, piece: _Piece) -> list[Write]:
        node, durable, store = self.keys()
        at_ms, failed = self._services.clock.epoch_us() // 1000, self._state.failed
        counted = int("failed" in self._reason or self._reason == "rejected")
        writes = []
        for eid, key, value in zip(piece.eids, piece.keys, piece.values, strict=True):
            letter = Letter(self._reason, node, durable, eid, failed.get(eid, 0) + counted, at_ms)
            kept, enclosed = self._services.enclose(key, value, letter)
            copy = copy_key(store, eid, self._reason, kept)
            writes.append(Write(self._target.topic, self._target.partition, copy, enclosed))
        return writes


class Enclosing(Burial):
    """The same for a settlement that is part of a transaction: all its letters are read first, and nothing is given to
    the journal here. `prepared` is called with the settlements that take its place; with too many octets for one
    transaction, or when reading fails, with the answer, and the settlement is restored."""

    _prepared: Callable[[list[Settlement] | SettleAnswer], None]

    def prepare(self, settlement: Settlement, prepared: Callable[[list[Settlement] | SettleAnswer], None]) -> None:
        self._prepared, self._parts = prepared, list[Settlement]()
        self._room = self._services.limits.transaction_bytes
        self.begin(settlement)

    def settled(self, settlement: Settlement) -> None:
        self._keeper.settled(settlement)

    def restore(self, settlement: Settlement) -> None:
        self._keeper.restore(settlement)

    def _take(self, piece: _Piece, parts: list[Settlement]) -> None:
        self._parts += parts
        self._room -= sum(map(len, piece.values))
        if self._room < 0:
            self._give_up("unexpected", "more dead letters than one transaction may carry")
        elif self._rest:
            self._read(0.0)
        else:
            self._prepared(self._parts)

    def _give_up(self, answer: SettleAnswer, native: str) -> None:
        _LOG.error("%s: dead letters of a transaction: %s %s", self._topic, answer, native)
        assert self._whole is not None
        self._keeper.restore(self._whole)
        self._prepared(answer)


def _read_piece(log: Log, place: tuple[str, int], runs: list[Run], limits: RealmLimits) -> _Piece:
    """Events from the beginning of `runs`, as many as a piece may have. Blocks; raises LogError."""
    piece = _Piece(limits.letter_events, limits.letter_bytes)
    for at, run in enumerate(runs):
        start, last = run[0], run[1]
        while start <= last:
            if piece.is_full:
                piece.rest = [_from(run, start), *runs[at + 1 :]]
                return piece
            count = min(piece.room, last - start + 1)
            start = piece.add(run, start, _records(log, place, start, count, limits.control_deadline_s))
    return piece


def _records(log: Log, place: tuple[str, int], start: int, count: int, deadline_s: float) -> Records:
    """As the log has them; where it has trimmed them, it has none."""
    try:
        return log.read_range(*place, start, count, deadline_s)
    except LogError as error:
        if error.failure.cause != "retention":
            raise
        return Records([], [], [], [], min(log.bounds(*place, deadline_s)[0], start + count))


def _from(run: Run, start: int) -> Run:
    """What is left of a run from `start` on."""
    first, last, seq, cover = run
    return (start, last, seq and seq + start - first, cover if start == first else start)
