"""The history: what was counted in each minute, as one small record of a topic of its own (docs/records.md "History").

A record has the differences of the run's counters since the record before. So the records of a run add up to its
counters, and a run that was killed lacks its last minute at most. One record waits for the log at most. What the log
has not stored for certain is no basis: the next record has the same number `n`, covers that time too and replaces it.
Nothing happens for a message here. Microseconds since 1970, octets, counts. ADR 0108.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gateway.evidence.counters import OTHER
from native_backend.nodes.answers import HistoryStored

FORMAT: Final = 1
RECORD_BYTES: Final = 32_768
"""No record is larger."""
_log = logging.getLogger("realmgate.history")
Key = tuple[str, ...]
Counts = Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Family:
    """Counters of one kind. `size_bytes`: what their entries take in a record at most; `kept`: the fields of a key that
    stay when it is counted under `other`."""

    fields: tuple[str, ...]
    size_bytes: int
    kept: tuple[str, ...]

    def other(self, key: Key) -> Key:
        return tuple(value if name in self.kept else OTHER for name, value in zip(self.fields, key, strict=True))


FAMILIES: Final[Mapping[str, Family]] = {
    "deliveries": Family(("direction", "node", "outcome"), 8_192, ("direction", "outcome")),
    "errors": Family(("condition", "code", "class", "rule", "node"), 10_240, ("class",)),
    "rules": Family(("table", "rule"), 5_120, ()),
    "dead_letters": Family(("node", "cause"), 2_048, ("cause",)),
    "faults": Family(("fault",), 1_024, ()),
    "alarms": Family(("alarm",), 1_024, ()),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a run has counted up to now. `seconds`: how many took how long, by class, and all of them together in
    microseconds. `now`: what is no counter, as it is."""

    counts: Mapping[str, Counts] = field(default_factory=dict)
    seconds: Mapping[str, tuple[Sequence[int], int]] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    now: Mapping[str, int] = field(default_factory=dict)


class History:
    """One run's. `append(key, value, owner)` hands a record to the log; `owner.answered` hears whether it is stored."""

    def __init__(
        self,
        run: str,
        read: Callable[[], Reading],
        append: Callable[[bytes, bytes, object], None],
        epoch_us: Callable[[], int],
        interval_s: int,
    ) -> None:
        self._run, self._read, self._append, self._epoch_us = run, read, append, epoch_us
        self._interval_us = interval_s * 1_000_000
        self._base, self._begin_us, self._number = Reading(), epoch_us(), 1
        self._missed = 0  # records that this one stands for, too
        self._slot = self._begin_us // self._interval_us
        self._waiting: _Sent | None = None

    @property
    def is_waiting(self) -> bool:
        """A record is under way."""
        return self._waiting is not None

    def advance(self) -> None:
        """Once a second: a record, when a minute of the clock is over."""
        now_us = self._epoch_us()
        slot = now_us // self._interval_us
        if slot != self._slot:
            self._slot = slot
            if not self.is_waiting:  # else the next one covers this minute
                self._write(now_us, closed=False)

    def close(self) -> None:
        """The run ends: its last record, even if one still waits, which it then replaces."""
        self._write(self._epoch_us(), closed=True)

    def _write(self, now_us: int, *, closed: bool) -> None:
        reading, begin_us = self._read(), min(self._begin_us, now_us)  # the clock may have been set back
        record = {"v": FORMAT, "run": self._run, "n": self._number, "begin": begin_us, "end": now_us}
        if closed:
            record["closed"] = 1
        if self._missed:
            record["missed"] = self._missed
        value = orjson.dumps(record | difference(self._base, reading))
        self._waiting = _Sent(self, reading, now_us)
        self._append(self._run.encode(), value, self._waiting)

    def heard(self, sent: _Sent, answer: HistoryStored) -> None:
        """What became of a record."""
        if sent is not self._waiting:
            return
        self._waiting = None
        if answer.stored:
            self._base, self._begin_us = sent.reading, sent.end_us
            self._number += 1
            self._missed = 0
            return
        if not self._missed:
            _log.warning("a record of the history was not stored (%s): the next one stands for it", answer.native)
        self._missed += 1


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """A record under way, and what it counts up to."""

    history: History
    reading: Reading
    end_us: int

    def answered(self, answer: HistoryStored) -> None:
        self.history.heard(self, answer)


def difference(before: Reading, after: Reading) -> dict[str, Any]:
    """The columns of a record: what has changed, and what is as it is now."""
    columns: dict[str, Any] = {**after.now}
    columns |= {
        name: changed for name, number in after.numbers.items() if (changed := number - before.numbers.get(name, 0))
    }
    for name, counts in after.counts.items():
        known = before.counts.get(name, {})
        changed_counts = {key: count - known.get(key, 0) for key, count in counts.items() if count != known.get(key, 0)}
        if changed_counts:
            columns[name] = fitted(FAMILIES[name], changed_counts)
    seconds = {name: _classes(before.seconds.get(name), classes) for name, classes in after.seconds.items()}
    if any(sum(second["counts"]) for second in seconds.values()):
        columns["seconds"] = {name: histogram for name, histogram in seconds.items() if sum(histogram["counts"])}
    return columns


def _classes(before: tuple[Sequence[int], int] | None, after: tuple[Sequence[int], int]) -> dict[str, Any]:
    counts, total_us = before or ([0] * len(after[0]), 0)
    return {"counts": [now - then for now, then in zip(after[0], counts, strict=True)], "total_us": after[1] - total_us}


def fitted(family: Family, counts: Counts) -> list[list[Any]]:
    """Entries, the largest first; what does not fit is summed under `other`."""
    entries: list[list[Any]] = []
    others: dict[Key, int] = {}
    room = family.size_bytes
    for key, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        entry = [*key, count]
        size = len(orjson.dumps(entry)) + 1
        if size <= room:
            room -= size
            entries.append(entry)
        else:
            other = family.other(key)
            others[other] = others.get(other, 0) + count
    return entries + [[*key, count] for key, count in others.items()]
