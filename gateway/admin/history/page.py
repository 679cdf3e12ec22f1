"""A page of the history: records of its topic in their order, as rows of a minute or longer. A page ends at its rows,
`_RECORDS` records or `_PAGE_BYTES`; `next` says where the next one goes on. A record that another one replaces counts
once: `_PAST` records behind a page's end are looked at for that. Microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from gateway.admin.history.row import Row, RowSum
from gateway.evidence.history import FORMAT

_MINUTE_US: Final = 60_000_000
MINUTES_MAX: Final = 366 * 24 * 60
STEPS_US: Final = {"minute": 0, "5min": 5 * _MINUTE_US, "15min": 15 * _MINUTE_US, "hour": 60 * _MINUTE_US}
STEP_BYTES: Final = 16_384  # decoded, or summed, without a pause: some 200 us
_RECORDS: Final = 1_500
_PAGE_BYTES: Final = 1 << 20
_PAST: Final = 100
"""A run replaces its last record only; of other runs a few may lie between them, when the realm was taken over."""
_LATE_US: Final = 5 * _MINUTE_US
"""A run that ends may write its last record behind those of the next one."""


def decoded(value: bytes) -> Row | None:
    """None: it has no format that is known here."""
    try:
        record = orjson.loads(value)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("v") == FORMAT else None


def begin_us(value: bytes) -> int | None:
    """When a record begins; None: as above."""
    return (decoded(value) or {}).get("begin")


class HistoryPage:
    """The records of one answer, of `limit` rows at most. `step_us`: how long a row is; 0: a row for each record."""

    def __init__(self, since_us: int, until_us: int, limit: int, step_us: int) -> None:
        self.since_us, self._until_us, self._limit, self._step_us = since_us, until_us, limit, step_us
        self._records: dict[tuple[str, int], tuple[int, int, Row]] = {}  # by run and number: offset, octets
        self._slots: set[int] = set()
        self._bytes = self._past = 0  # `_past`: records that were looked at behind its end
        self._last = -1

    @property
    def next(self) -> str | None:
        """The place of its last record; None: there are no more of them behind."""
        return str(self._last) if self._past else None

    def take(self, offset: int, value: bytes) -> bool:
        """A record of the topic, in its order. False: the page is complete."""
        record = decoded(value)
        if record is None or record["end"] <= self.since_us:
            return True
        if record["begin"] >= self._until_us:
            return bool(record["begin"] < self._until_us + _LATE_US)
        key = record["run"], record["n"]
        slot = self._slot(offset, record)
        if self._past or (key not in self._records and self._is_full(slot, len(value))):
            self._past += 1
            self._drop(key)
            return self._past < _PAST
        self._drop(key)
        self._records[key] = offset, len(value), record
        self._slots.add(slot)
        self._bytes += len(value)
        self._last = offset
        return True

    def _drop(self, key: tuple[str, int]) -> None:
        """A later record of that number says all that this one said. Behind the end, the next page has it."""
        if key in self._records:
            offset, size, record = self._records.pop(key)
            self._bytes -= size
            if not self._step_us:
                self._slots.remove(self._slot(offset, record))

    def _is_full(self, slot: int, size: int) -> bool:
        many = len(self._records) >= _RECORDS or (self._bytes + size > _PAGE_BYTES and self._bytes > 0)
        return many or (len(self._slots) >= self._limit and slot not in self._slots)

    def _slot(self, offset: int, record: Row) -> int:
        """Records of one slot are one row."""
        return record["begin"] // self._step_us if self._step_us else offset

    def rows(self) -> Iterator[list[Row] | None]:
        """None for each step, then the rows."""
        sums: dict[int, RowSum] = {}
        size = 0
        for offset, record_bytes, record in self._records.values():
            sums.setdefault(self._slot(offset, record), RowSum()).add(offset, record)
            size += record_bytes
            if size > STEP_BYTES:
                size = 0
                yield None
        yield [total.row() for total in sums.values()]
