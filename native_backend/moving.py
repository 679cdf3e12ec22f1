"""Moving events from a queue or durable to another node, by command: copied and ended in one journal transaction.

Returned events first, as consumers get them; a piece at a time, read again on the control thread, so that memory is
bounded whatever is moved. A copy's key says where it comes from (`moved`); its value keeps every octet. What has no
room in a piece is given back.
A full target ends it early. Records: docs/records.md "Journal", "Event key".
May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from native_backend.acknowledgement import Run
from native_backend.capacity import Capacities
from native_backend.dispatch import Dispatch
from native_backend.durable_changes import Done, refused
from native_backend.letter import copy_key
from native_backend.limits import RealmLimits
from native_backend.log import Log, LogError, Write
from native_backend.nodes import Node
from native_backend.reservation import Full, Reservation
from native_backend.services import Services, store_bounds
from native_backend.settlement import Settlement

_RUNS = 64


@dataclass(slots=True)
class _Piece:
    """Events to copy, the runs that they end, what is to be given back, and where there are no events."""

    runs: list[Run] = field(default_factory=list)
    eids: list[int] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    rest: list[Run] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    size: int = 0

    def add(self, eid: int, cover: int, key: bytes, value: bytes) -> None:
        if self.runs and self.runs[-1][1] == eid - 1:
            first, _, _, before = self.runs[-1]
            self.runs[-1] = (first, eid, 0, before)
        else:
            self.runs.append((eid, eid, 0, cover))
        self.eids.append(eid)
        self.keys.append(key)
        self.values.append(value)
        self.size += len(value)


class Move:
    """Keeper of a move's pieces."""

    def __init__(
        self,
        services: Services,
        capacities: Capacities,
        dispatch: Dispatch,
        target: Node,
        cause: str,
        done: Done,
    ) -> None:
        self._services, self._capacities, self._dispatch, self._target = services, capacities, dispatch, target
        self._reservation: Reservation
        self._cause, self._done = cause, done
        self._left = 0
        self._end = 0
        self._count = 0

    def begin(self, count: int) -> None:
        """At most so many of the events that are there now; 0: all."""
        self._left = count or 2**62
        log, node, deadline_s = self._services.log, self._dispatch.node, self._services.limits.control_deadline_s

        def bounded(bounds: tuple[int, int] | LogError) -> None:
            if isinstance(bounds, LogError):
                self._done("unavailable", 0, str(bounds))
                return
            self._end = bounds[1]
            self._next()

        self._services.control.submit(lambda: store_bounds(log, node, deadline_s), bounded)

    def _next(self, room: int = 2**62) -> None:
        limits, dispatch = self._services.limits, self._dispatch
        events_max = min(self._left, limits.letter_events, room)
        runs = dispatch.withdraw(self._end, _RUNS, limits.letter_events) if self._left else []
        if not runs:
            self._done("done", self._count, "")
            return
        log, node = self._services.log, dispatch.node

        def found(piece: _Piece | LogError) -> None:
            if isinstance(piece, LogError):
                self._give_back(runs)
                self._done("unavailable", self._count, str(piece))
            else:
                self._found(piece)

        self._services.control.submit(lambda: _read(log, node, runs, events_max, limits), found)

    def _found(self, piece: _Piece) -> None:
        self._give_back(piece.rest)
        for first, last in piece.gaps:
            self._dispatch.state.cover(first, last)
        if not piece.eids:
            self._next()
            return
        self._reservation = Reservation(self._capacities, ((self._target, len(value)) for value in piece.values))
        self._reservation.begin(lambda hindrance: self._reserved(piece, hindrance))

    def _reserved(self, piece: _Piece, hindrance: Full | LogError | None) -> None:
        if hindrance is None:
            self._copy(piece)
            return
        self._give_back(piece.runs)
        if isinstance(hindrance, LogError):
            self._done("unavailable", self._count, str(hindrance))
        elif hindrance.room:
            self._next(hindrance.room)
        else:
            self._done("done", self._count, f"{hindrance.node} is full")

    def _copy(self, piece: _Piece) -> None:
        store = self._dispatch.node.store
        writes = [
            Write(self._target.topic, self._target.partition, copy_key(store, eid, "moved", key), value)
            for eid, key, value in zip(piece.eids, piece.keys, piece.values, strict=True)
        ]
        self._services.journal.add(
            Settlement(
                self,
                None,
                "move",
                failed=False,
                elsewhere=False,
                cause=self._cause,
                runs=piece.runs,
                count=len(writes),
                owner=None,
                writes=writes,
                to=self._target.store,
            )
        )

    def _give_back(self, runs: list[Run]) -> None:
        for first, last, _, _ in runs:
            self._dispatch.state.again(first, last)

    def keys(self) -> tuple[str, str, int]:
        return self._dispatch.keys()

    def settled(self, settlement: Settlement) -> None:
        self._reservation.stored(settlement.offsets)
        self._dispatch.settled(settlement)
        self._count += settlement.count
        self._left -= settlement.count
        self._next()

    def restore(self, settlement: Settlement) -> None:
        self._reservation.release(certain=False)
        self._dispatch.restore(settlement)
        answer, detail = refused(self._services)
        self._done(answer, self._count, detail)


def _read(log: Log, node: Node, runs: list[Run], events_max: int, limits: RealmLimits) -> _Piece:
    """The first events of `runs`, as many as a piece may have; one always fits. Blocks; raises LogError."""
    piece = _Piece()
    for at, (first, last, _, cover) in enumerate(runs):
        start, before = first, cover
        while start <= last:
            room = events_max - len(piece.eids)
            if room <= 0 or piece.size >= limits.letter_bytes:
                piece.rest = [(start, last, 0, start), *runs[at + 1 :]]
                return piece
            records = log.read_range(
                node.topic, node.partition, start, min(room, last - start + 1), limits.control_deadline_s
            )
            for eid, key, value in zip(records.offsets, records.keys, records.values, strict=True):
                if eid > last:
                    break
                if value is None:
                    continue
                if piece.size >= limits.letter_bytes:
                    piece.rest = [(eid, last, 0, before), *runs[at + 1 :]]
                    return piece
                piece.add(eid, before, key or b"", value)
                before = eid + 1
            start = max(records.next, start + 1)
        if before <= last:  # gaps behind the last event
            piece.gaps.append((before, last))
    return piece
