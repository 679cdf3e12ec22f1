"""Dead letters: events that are given up are copied to the node's dead-letter node, in the journal's transaction that
ends them.

Their bytes are read again on the worker thread, a piece at a time, so that memory is bounded whatever a consumer
rejects at once. A letter is no letter twice: what is rejected at a dead-letter node, or would come back to where it is,
is discarded, so that nothing goes round for ever.

An event whose letter the log does not take stays where it is, and rests (ADR 0144). Of a piece that is refused for one
of its records, smaller pieces are tried, so that the others become letters.

When an event is given up: tables `settle` and `default`, docs/how-to/dead-letters.md. Records: docs/records.md
"Event key", "Journal".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from native_backend.dispatch.context import RealmContext, ask_first_eid
from native_backend.dispatch.copy_piece import CopyPiece
from native_backend.events.copy_key import CopyOrigin, copy_key, is_copy
from native_backend.journal.settlement import Keeper, Settlement, Unit
from native_backend.limits import RealmLimits
from native_backend.log.port import Cause, Failure, Log, LogError, Records, Write
from native_backend.nodes.answers import Settled
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.node import Node
from native_backend.nodes.words import SettleAnswer
from native_backend.state.ack_state import AckState, Run
from native_backend.state.outcome_detail import OutcomeDetail

_LOG = logging.getLogger(__name__)
ALARM: Final = "dead letters refused"
_OF_A_RECORD = ("too-large", "invalid")  # the log takes others
_WAITED_OUT = ("unavailable", "unexpected", "indeterminate")


def dead_letter_node(metadata: Metadata, node: Node) -> Node | None:
    """Where letters of a node go now; None: nowhere."""
    current = metadata.stores.get(node.store, node)
    target = metadata.nodes.get(current.properties.dead_letter)
    return target.twin(node) if target is not None and target.name != node.name else None


class RestingKeeper(Keeper, Protocol):
    def rest(self, settlement: Settlement, until_ms: int) -> None:
        """As `restore`, but no consumer gets its events before then."""
        ...


@dataclass(slots=True)
class PieceSize:
    """How many events the next piece may have. Among the next `suspects` there is one that the log does not take: it is
    looked for by halves."""

    events_max: int
    suspects: int = 0

    @property
    def events(self) -> int:
        return max(1, self.suspects // 2) if self.suspects else self.events_max

    def stored(self, count: int) -> None:
        self.suspects = max(0, self.suspects - count)

    def refused(self, count: int) -> None:
        """A piece of so many: the next ones. One that was alone is found, and behind us."""
        self.suspects = count if count > 1 else 0


class DeadLetterCopy:
    """One settlement on its way to the dead letters. Keeper of its pieces; its owner gets the answer when the last one
    is in the journal, or rests."""

    def __init__(
        self,
        context: RealmContext,
        keeper: RestingKeeper,
        state: AckState,
        target: Node,
        node: Node,
        reason: str,
        detail: OutcomeDetail | None = None,
    ) -> None:
        self._context, self._keeper, self._state, self._detail = context, keeper, state, detail
        self._target, self._node, self._reason = target, node, reason
        self._topic = node.topic
        self._rest: list[Run] = []
        self._begun: list[Run] = []  # what was left before the piece was read
        self._size = PieceSize(context.limits.letter_events)
        self._open = 0  # parts of the piece that is in the journal's hands
        self._refused: list[Settlement] = []  # of these parts
        self._is_short = False  # some of its events are no letters
        self._whole: Settlement | None = None

    def begin(self, settlement: Settlement) -> None:
        """Its events are in our hands from now on."""
        self._whole, self._rest = settlement, settlement.runs
        refused_until_s = self._context.refused_letters.get(self._target.store, float("-inf"))
        if self._context.clock.monotonic_s() < refused_until_s:
            self._leave([])
        else:
            self._read(0.0)

    def keys(self) -> tuple[str, str, int]:
        return self._keeper.keys()

    def settled(self, settlement: Settlement) -> None:
        self._count(settlement)
        self._keeper.settled(settlement)
        if settlement.writes:
            self._size.stored(settlement.count)
        self._open -= 1
        if not self._open:
            self._go_on()

    def _go_on(self) -> None:
        if self._rest:
            self._read(0.0)
        elif self._is_short:
            self._tell("unexpected", "dead-letter-not-stored")
        else:
            self._tell("done", "")

    def restore(self, settlement: Settlement) -> None:
        """All parts of a piece fail, or none."""
        self._refused.append(settlement)
        self._open -= 1
        if not self._open:
            parts, self._refused = self._refused, []
            self._was_refused(parts, settlement.refused)

    def _was_refused(self, parts: list[Settlement], cause: Cause | None) -> None:
        context, letters = self._context, [part for part in parts if part.writes]
        if context.journal.fenced:
            for part in parts:
                self._keeper.restore(part)
            self._give_up("unexpected", "dead-letter-not-stored")
        elif letters and cause in _OF_A_RECORD:
            count = sum(part.count for part in letters)
            self._size.refused(count)
            if count > 1:
                self._rest = self._begun
            else:
                self._rest = [run for part in parts if not part.writes for run in part.runs] + self._rest
                self._let_rest(letters)
            self._go_on()
        else:
            rest_s = context.limits.letter_rest_s
            context.refused_letters[self._target.store] = context.clock.monotonic_s() + rest_s
            self._leave(parts)

    def _leave(self, parts: list[Settlement]) -> None:
        """The node takes no letter now: nothing of what is left becomes one."""
        rest, self._rest = self._rest, []
        self._let_rest([*parts, self._part(rest)] if rest else parts)
        self._go_on()

    def _let_rest(self, parts: list[Settlement]) -> None:
        limits, count = self._context.limits, sum(part.count for part in parts)
        until_ms = self._context.clock.epoch_us() // 1000 + round(limits.letter_rest_s * 1000)
        for part in parts:
            self._keeper.rest(part, until_ms)
        self._is_short = True
        self._context.alarms[ALARM] += count
        level = logging.ERROR if self._begun else logging.DEBUG  # it was tried
        words = "%s: node %r does not take the dead letters of %d events from %d on: they stay, and rest for %s s"
        first = min(run[0] for part in parts for run in part.runs)
        _LOG.log(level, words, self._topic, self._target.name, count, first, limits.letter_rest_s)

    def _count(self, settlement: Settlement) -> None:
        if settlement.to:
            self._context.dead_letters.add(self._node, self._reason, settlement.count)

    def _give_up(self, answer: SettleAnswer, native: str) -> None:
        rest, self._rest = self._rest, []
        if rest:
            self._keeper.restore(self._part(rest))
        self._tell(answer, native)

    def _tell(self, answer: SettleAnswer, native: str) -> None:
        assert self._whole is not None
        self._context.preparing.discard(self._whole)
        if self._whole.owner is not None:
            self._context.answer(Settled(self._whole.owner, answer, native))

    def _read(self, pause_s: float) -> None:
        context, place, runs = self._context, (self._topic, self._node.partition), self._rest
        self._begun, events_max = runs, self._size.events

        def job() -> CopyPiece:
            if pause_s:
                context.worker.pause(pause_s)
            return _read_piece(context.log, place, runs, events_max, context.limits)

        context.worker.submit(job, self._found)

    def _found(self, piece: CopyPiece | LogError) -> None:
        if isinstance(piece, LogError):
            if piece.failure.cause in _WAITED_OUT and not self._context.journal.fenced:
                _LOG.warning("cannot read dead letters from %s yet: %s", self._topic, piece)
                self._read(self._context.limits.retry_interval_s)
            else:
                if piece.failure.cause == "retention":
                    ask_first_eid(self._context, self._node, self._state.position, _kept)
                known: SettleAnswer = "not-found" if piece.failure.cause == "not-found" else "unexpected"
                self._give_up(known, piece.failure.code or piece.failure.cause)
            return
        self._rest = piece.rest
        if piece.missing:
            _LOG.error("%s: %d events were gone before they could be dead letters", self._topic, piece.missing)
        parts = []
        if piece.eids:
            parts.append(self._part(piece.kept))
            parts[-1].to, parts[-1].writes = self._target.store, self._writes(piece)
        if piece.gone:
            parts.append(self._part(piece.gone))
        self._take(piece, parts)

    def _take(self, piece: CopyPiece, parts: list[Settlement]) -> None:
        self._open = len(parts)
        self._context.journal.add_unit(Unit(parts, [], None))

    def _part(self, runs: list[Run]) -> Settlement:
        whole = self._whole
        assert whole is not None
        count = sum(last - first + 1 for first, last, _, _ in runs)
        cause, reserved = whole.cause, whole.reserved
        return Settlement(self, whole.link, whole.operation, False, False, cause, runs, count, None, reserved=reserved)

    def _writes(self, piece: CopyPiece) -> list[Write]:
        node, durable, store = self.keys()
        at_ms, failed = self._context.clock.epoch_us() // 1000, self._state.failed
        counted = int("failed" in self._reason or self._reason == "rejected")
        writes = []
        for eid, key, value in zip(piece.eids, piece.keys, piece.values, strict=True):
            origin = CopyOrigin(self._reason, node, durable, eid, failed.get(eid, 0) + counted, at_ms, self._detail)
            kept, annotated_value = self._context.annotate(key, value, origin)
            copy = copy_key(store, eid, self._reason, kept)
            writes.append(Write(self._target.topic, self._target.partition, copy, annotated_value))
        return writes


class DeadLetterInTransaction(DeadLetterCopy):
    """The same for a settlement that is part of a transaction: all its letters are read first, and nothing is given to
    the journal here. `prepared` is called with the settlements that take its place; with too many octets for one
    transaction, or when reading fails, with the answer, and the settlement is restored."""

    _prepared: Callable[[list[Settlement] | SettleAnswer], None]

    def prepare(self, settlement: Settlement, prepared: Callable[[list[Settlement] | SettleAnswer], None]) -> None:
        self._prepared, self._parts = prepared, list[Settlement]()
        self._room = self._context.limits.transaction_bytes
        self._whole, self._rest = settlement, settlement.runs
        self._read(0.0)

    def settled(self, settlement: Settlement) -> None:
        self._count(settlement)
        self._keeper.settled(settlement)

    def restore(self, settlement: Settlement) -> None:
        self._keeper.restore(settlement)

    def _take(self, piece: CopyPiece, parts: list[Settlement]) -> None:
        self._parts += parts
        self._room -= sum(map(len, piece.values))
        if self._room < 0:
            self._give_up("unexpected", "too-many-dead-letters")
        elif self._rest:
            self._read(0.0)
        else:
            self._prepared(self._parts)

    def _give_up(self, answer: SettleAnswer, native: str) -> None:
        _LOG.error("%s: dead letters of a transaction: %s %s", self._topic, answer, native)
        assert self._whole is not None
        self._keeper.restore(self._whole)
        self._prepared(answer)


def _kept(_first: int) -> None:
    """Where the store begins is not asked."""


def _read_piece(log: Log, place: tuple[str, int], runs: list[Run], events_max: int, limits: RealmLimits) -> CopyPiece:
    """Events from the beginning of `runs`, as many as a piece may have. Blocks; raises LogError."""
    piece = CopyPiece(events_max, limits.letter_events, limits.letter_bytes, lambda key: not is_copy(key))
    piece.read(runs, lambda start, count: _records(log, place, start, count, limits.control_deadline_s))
    return piece


def _records(log: Log, place: tuple[str, int], start: int, count: int, deadline_s: float) -> Records:
    """As the log has them; where it has trimmed them, it has none. Raises `retention` where it has lost its end."""
    try:
        records = log.control.read_range(*place, start, count, deadline_s)
    except LogError as error:
        if error.failure.cause != "retention":
            raise
        return Records([], [], [], [], min(log.control.bounds(*place, deadline_s)[0], start + count))
    if records.next <= start:
        raise LogError(Failure("retention", f"{place[0]}/{place[1]} ends below {start}"))
    return records
