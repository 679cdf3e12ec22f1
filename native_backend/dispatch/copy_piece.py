"""Events that are to be copied, read again a piece at a time: memory is bounded whatever is copied.

Used for dead letters and for events that an operator moves. Every EID of a piece's runs is in it once: kept, gone or
left for the next piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from native_backend.log.port import Records
from native_backend.state.ack_state import Run


@dataclass(slots=True)
class CopyPiece:
    """What is read at once. `events_max`, `eids_max` and `bytes_max` bound it; one event always fits. `wanted`: whether
    an event with that key is copied."""

    events_max: int
    eids_max: int  # with those that have no event
    bytes_max: int
    wanted: Callable[[bytes], bool]
    eids: list[int] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    kept: list[Run] = field(default_factory=list)  # of these events
    gone: list[Run] = field(default_factory=list)  # no event is there, or not one that is wanted
    missing: int = 0  # EIDs without an event
    rest: list[Run] = field(default_factory=list)

    @property
    def room(self) -> int:
        """For so many EIDs more."""
        return min(self.events_max - len(self.eids), self.eids_max) if self.bytes_max > 0 else 0

    def read(self, runs: list[Run], read: Callable[[int, int], Records]) -> None:
        """As many as it may have, from the beginning of `runs`. `read`: records from an EID on, so many at most.
        Blocks; raises LogError."""
        for at, run in enumerate(runs):
            start, last = run[0], run[1]
            while start <= last:
                if self.room <= 0:
                    self.rest = [_from(run, start), *runs[at + 1 :]]
                    return
                start = self._add(run, start, read(start, min(self.room, last - start + 1)))

    def _add(self, run: Run, start: int, records: Records) -> int:
        """Events of `run` from `start` on, as far as they fit; returns where to go on."""
        columns = zip(records.offsets, records.keys, records.values, strict=True)
        events = {eid: (key or b"", value) for eid, key, value in columns if value is not None}
        end = min(max(records.next, start + 1), run[1] + 1)
        for eid in range(start, end):
            if self.room <= 0:
                return eid
            self.eids_max -= 1
            key, value = events.get(eid, (b"", None))
            if value is None:
                self.missing += 1
            if value is None or not self.wanted(key):
                _extend(self.gone, run, eid)
                continue
            _extend(self.kept, run, eid)
            self.eids.append(eid)
            self.keys.append(key)
            self.values.append(value)
            self.bytes_max -= len(value)
        return end


def _extend(runs: list[Run], run: Run, eid: int) -> None:
    """Add an event of `run` to its own last run, or begin one."""
    _, _, seq, cover = _from(run, eid)
    if runs and runs[-1][1] == eid - 1 and (not seq or runs[-1][2] + eid - runs[-1][0] == seq):
        first, _, first_seq, before = runs[-1]
        runs[-1] = (first, eid, first_seq, before)
    else:
        runs.append((eid, eid, seq, cover))


def _from(run: Run, start: int) -> Run:
    """What is left of a run from `start` on."""
    first, last, seq, cover = run
    return (start, last, seq and seq + start - first, cover if start == first else start)
