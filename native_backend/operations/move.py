"""Ending chosen events of a queue or durable by command: copied to another node in the same journal transaction (move,
resend), or not copied (a purge with a selector).

Returned events first, as consumers get them; a piece at a time, read again on the worker thread, so that memory is
bounded whatever is moved. A copy's key says where it comes from (`moved`); its value keeps every octet. What has no
room in a piece is given back. What stays is held until the command ends, so that it is looked at once, and given back
then with its delays.
A full target ends a move early; of several targets the others go on. Records: docs/records.md "Journal", "Event key".
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import orjson

from native_backend.dispatch.context import RealmContext
from native_backend.dispatch.copy_piece import CopyPiece
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.events.copy_key import copy_key
from native_backend.events.selection import PIECE
from native_backend.journal.settlement import Settlement
from native_backend.limits import RealmLimits
from native_backend.log import event_key
from native_backend.log.port import Log, LogError, Write
from native_backend.nodes.node import Node
from native_backend.nodes.words import CommandAnswer
from native_backend.operations.durable_changes import Done, refused, with_bounds
from native_backend.operations.route import ROWS, Route
from native_backend.publish.capacities import Capacities
from native_backend.publish.reservation import Full, Reservation
from native_backend.state.ack_state import Run
from native_backend.state.delayed import DelayedEvents
from native_backend.state.intervals import Intervals, dense_runs

_RUNS = 64


@dataclass(frozen=True, slots=True)
class _Group:
    """Events of one piece that go to one store, or end without a copy."""

    target: Node | None
    eids: list[int] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def part(self, begin: int, end: int | None) -> _Group:
        places = slice(begin, end)
        return replace(self, eids=self.eids[places], keys=self.keys[places], values=self.values[places])


class Move:
    """Keeper of a move's pieces."""

    def __init__(
        self, context: RealmContext, capacities: Capacities, dispatch: Dispatcher, route: Route, cause: str, done: Done
    ) -> None:
        self._context, self._capacities, self._dispatch, self._route = context, capacities, dispatch, route
        self._reservation: Reservation | None = None
        self._cause, self._done = cause, done
        self._left = 0
        self._end = 0
        self._count = 0
        self._groups: deque[_Group] = deque()
        self._covers: dict[int, int] = {}  # of this piece's runs, by their first EID
        self._held = Intervals()  # what stays, as far as it was looked at
        self._delays = DelayedEvents()  # of what was delayed: nothing is given while they are in hand
        self._full: set[int] = set()
        self._rows: Counter[tuple[int, str]] = Counter()

    def begin(self, count: int, below: int = 0) -> None:
        """At most so many of the events that are there now, and below that EID; 0: all."""
        self._left = count or 2**62

        def bounded(_: int, end: int) -> None:
            self._end = min(below, end) if below else end
            self._next()

        with_bounds(self._context, self._dispatch.node, self._done, bounded)

    def _next(self) -> None:
        limits, dispatch = self._context.limits, self._dispatch
        self._hold_delays()
        at_once = limits.letter_events if self._route.wanted is None else min(limits.letter_events, PIECE)
        runs = dispatch.withdraw(self._end, _RUNS, at_once) if self._left else []
        if not runs:
            self._finish("done")
            return
        events_max = min(self._left, at_once)
        log, node = self._context.log, dispatch.node

        def found(piece: CopyPiece | LogError) -> None:
            if isinstance(piece, LogError):
                self._hold(runs)
                self._finish("unavailable", str(piece))
            else:
                self._found(piece)

        self._context.worker.submit(lambda: _read(log, node, runs, events_max, limits), found)

    def _hold_delays(self) -> None:
        """What is withdrawn forgets them."""
        for not_before_ms, first, last in self._dispatch.state.delayed:
            if first < self._end:
                self._delays.add(first, last, not_before_ms)
                self._dispatch.moving = True

    def _found(self, piece: CopyPiece) -> None:
        for first, last, _, _ in piece.rest:
            self._dispatch.state.requeue(first, last)
        for _, last, _, cover in piece.gone:
            self._dispatch.state.cover(cover, last)
        self._covers = {first: cover for first, _, _, cover in _covering(piece)}
        self._groups = deque(self._grouped(piece))
        self._next_group()

    def _grouped(self, piece: CopyPiece) -> Iterator[_Group]:
        """By the stores that they go to; the others are held."""
        wanted = self._route.wanted
        chosen = wanted(piece.keys, piece.values) if wanted is not None else [True] * len(piece.eids)
        groups: dict[int, _Group] = {}
        for eid, key, value, is_chosen in zip(piece.eids, piece.keys, piece.values, chosen, strict=True):
            goes = self._route.goes(key) if is_chosen and self._left else ""
            if isinstance(goes, str):
                self._stay([eid], [key], goes)
                continue
            self._left -= 1
            group = groups.setdefault(goes.store if goes is not None else 0, _Group(goes))
            group.eids.append(eid)
            group.keys.append(key)
            group.values.append(value)
        return iter(groups.values())

    def _next_group(self) -> None:
        if not self._groups:
            self._next()
            return
        group = self._groups.popleft()
        if group.target is None:
            self._end_events(group, [])
        elif group.target.store in self._full:
            self._stay(group.eids, group.keys, "full")
            self._next_group()
        else:
            self._reserve(group, group.target)

    def _reserve(self, group: _Group, target: Node) -> None:
        self._reservation = reservation = Reservation(
            self._capacities, ((target, len(value)) for value in group.values)
        )

        def reserved(hindrance: Full | LogError | None) -> None:
            if hindrance is None:
                self._end_events(group, self._copies(group, target))
            elif isinstance(hindrance, LogError):
                self._groups.appendleft(group)
                self._finish("unavailable", str(hindrance))
            else:
                self._fill(group, target, hindrance)

        reservation.begin(reserved)

    def _fill(self, group: _Group, target: Node, full: Full) -> None:
        """There is room for the first ones only."""
        if full.room:
            self._groups.appendleft(group.part(full.room, None))
            self._reserve(group.part(0, full.room), target)
            return
        self._stay(group.eids, group.keys, "full")
        self._full.add(target.store)
        if self._route.several:
            self._next_group()
        else:
            self._finish("done", f"{full.node} is full")

    def _copies(self, group: _Group, target: Node) -> list[Write]:
        store = self._dispatch.node.store
        self._rows[target.store, "sent"] += len(group.eids)
        return [
            Write(target.topic, target.partition, copy_key(store, eid, "moved", key), value)
            for eid, key, value in zip(group.eids, group.keys, group.values, strict=True)
        ]

    def _end_events(self, group: _Group, writes: list[Write]) -> None:
        runs = [(first, last, 0, self._covers.get(first, first)) for first, last in dense_runs(sorted(group.eids))]
        to, count = group.target.store if group.target is not None else 0, len(group.eids)
        how = self._route.operation, False, False, self._cause
        self._context.journal.add(Settlement(self, None, *how, runs, count, None, writes=writes, to=to))

    # -- what stays

    def _stay(self, eids: list[int], keys: list[bytes], why: str) -> None:
        for eid, key in zip(eids, keys, strict=True):
            self._held.add(eid, eid)
            if why:
                self._rows[(event_key.copied_from(key) or (0, 0))[0], why] += 1

    def _hold(self, runs: list[Run]) -> None:
        for first, last, _, _ in runs:
            self._held.add(first, last)

    def _finish(self, answer: CommandAnswer, detail: str = "") -> None:
        for group in self._groups:
            self._stay(group.eids, group.keys, "")
        self._groups.clear()
        self._dispatch.moving = False
        self._dispatch.state.give_back(self._held, self._delays)
        self._held = Intervals()
        rows = orjson.dumps([[*key, count] for key, count in self._rows.most_common(ROWS)]).decode()
        self._done(answer, self._count, rows if self._route.several and answer == "done" else detail)

    # -- keeper

    def keys(self) -> tuple[str, str, int]:
        return self._dispatch.keys()

    def settled(self, settlement: Settlement) -> None:
        if self._reservation is not None:
            self._reservation.stored(settlement.offsets)
            self._reservation = None
        self._dispatch.settled(settlement)
        self._count += settlement.count
        self._next_group()

    def restore(self, settlement: Settlement) -> None:
        if self._reservation is not None:
            self._reservation.release(certain=False)
        self._dispatch.restore(settlement)
        self._finish(*refused(self._context))


def _read(log: Log, node: Node, runs: list[Run], events_max: int, limits: RealmLimits) -> CopyPiece:
    """The first events of `runs`, as many as a piece may have. Blocks; raises LogError."""
    piece = CopyPiece(events_max, limits.letter_events, limits.letter_bytes, lambda _: True)
    place, deadline_s = (node.topic, node.partition), limits.control_deadline_s
    piece.read(runs, lambda start, count: log.control.read_range(*place, start, count, deadline_s))
    return piece


def _covering(piece: CopyPiece) -> list[Run]:
    """The runs of its events, each with the EIDs before it that have none."""
    gaps = {last: cover for _, last, _, cover in piece.gone}
    return [(first, last, seq, gaps.get(first - 1, cover)) for first, last, seq, cover in piece.kept]
