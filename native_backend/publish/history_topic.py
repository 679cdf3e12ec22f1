"""The topic of the history: one small record a minute with what was counted in it (docs/records.md "History").

No record is kept here: its owner hears whether it is stored, and writes the next one accordingly. Reading goes a piece
at a time, so that other control work waits for one piece at most. Offsets, milliseconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass

from native_backend.dispatch.context import RealmContext, subscribe_answer
from native_backend.log.port import Append, Appended, Log, LogError, Records
from native_backend.log.time_search import first_at
from native_backend.nodes.answers import HistoryFound, HistoryStored
from native_backend.nodes.words import history_topic

PIECE = 100
"""Records of one read: at most some 3 MB."""


@dataclass(slots=True, eq=False)
class HistoryRecord:
    """The owner of its append."""

    owner: object


@dataclass(frozen=True, slots=True)
class HistoryPiece:
    """`oldest`: the first record that is kept, where a piece was read by its time."""

    records: Records
    end: int
    oldest: bytes | None


class HistoryTopic:
    """See the module's docstring."""

    def __init__(self, context: RealmContext) -> None:
        self.pending = 0  # records under way
        self._context = context
        self._topic = history_topic(context.prefix)

    def append(self, key: bytes, value: bytes, owner: object) -> None:
        """Answered by `HistoryStored`."""
        self.pending += 1
        self._context.log.append(Append(self._topic, 0, [key], [value], HistoryRecord(owner), aside=True))

    def completed(self, record: HistoryRecord, appended: Appended) -> None:
        """The log has answered about a record."""
        self.pending -= 1
        failure = appended.failure
        native = "" if failure is None else failure.code or failure.cause
        self._context.answer(HistoryStored(record.owner, failure is None, native))

    def read(self, since_ms: int, position: int | None, owner: object) -> None:
        """Answered by `HistoryFound`: at most `PIECE` records from `position` on; None: those that were stored at
        `since_ms` or later."""
        context, topic = self._context, self._topic

        def found(piece: HistoryPiece | LogError) -> None:
            if isinstance(piece, LogError):
                failure = piece.failure
                context.answer(HistoryFound(owner, [], [], None, None, subscribe_answer(failure), failure.code))
                return
            records = piece.records
            values = [value or b"" for value in records.values]
            further = records.next if records.next < piece.end else None
            context.answer(HistoryFound(owner, records.offsets, values, further, piece.oldest, "ready"))

        deadline_s = context.limits.control_deadline_s
        context.worker.submit(lambda: read_piece(context.log, topic, since_ms, position, deadline_s), found)


def read_piece(log: Log, topic: str, since_ms: int, position: int | None, deadline_s: float) -> HistoryPiece:
    """Blocks; raises LogError."""
    first, end = log.control.bounds(topic, 0, deadline_s)
    oldest: bytes | None = None
    if position is None:
        for value in log.control.read_range(topic, 0, first, 1, deadline_s).values:
            oldest = value
        position = first_at(log, topic, 0, (first, end), since_ms, deadline_s)
    start = max(position, first)
    return HistoryPiece(log.control.read_range(topic, 0, start, PIECE, deadline_s), end, oldest)
