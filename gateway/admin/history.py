"""What was counted earlier, by this run and by those before it: `/api/history`, read from the topic of the history.

The realm's worker reads the log, a piece at a time; between two turns a few records are decoded. A page ends at `limit`
rows, `_RECORDS` records or `_PAGE_BYTES`; `next` says where the next one goes on. A record that another one replaces
counts once: `_PAST` records behind a page's end are looked at for that. Microseconds since 1970.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

import orjson

from gateway.admin.answers import Answering, WrongParameter, limit_of, number_of
from gateway.admin.history_row import Row, RowSum
from gateway.admin.http import Request, Response
from gateway.evidence.history import FORMAT
from gateway.session.gateway import Gateway
from native_backend.nodes.answers import HistoryFound

_MINUTE_US: Final = 60_000_000
_MINUTES: Final = 60
_MINUTES_MAX: Final = 366 * 24 * 60
_STEPS_US: Final = {"minute": 0, "5min": 5 * _MINUTE_US, "15min": 15 * _MINUTE_US, "hour": 60 * _MINUTE_US}
_RECORDS: Final = 1_500
_PAGE_BYTES: Final = 1 << 20
_PAST: Final = 100
"""A run replaces its last record only; of other runs a few may lie between them, when the realm was taken over."""
_STEP_BYTES: Final = 16_384  # decoded, or summed, without a pause: some 200 us
_LATE_US: Final = 5 * _MINUTE_US
"""A run that ends may write its last record behind those of the next one."""
_ANSWER_S: Final = 4.0


class _Unread(Exception):
    """The log has not answered; says how."""


async def history(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?since=&minutes=&step=minute|5min|15min|hour&limit=&after=`, the oldest first; without `since` the last
    `minutes`. Raises WrongParameter."""
    query = request.query
    minutes, step, after = number_of(query, "minutes", _MINUTES), query.get("step", "minute"), query.get("after")
    if not 0 < minutes <= _MINUTES_MAX:
        raise WrongParameter(f"minutes={minutes} is no number from 1 to {_MINUTES_MAX}")
    if step not in _STEPS_US:
        raise WrongParameter(f"step={step[:40]} is none of {', '.join(_STEPS_US)}")
    since_us = number_of(query, "since", answering.at_us - minutes * _MINUTE_US)
    page = _Page(since_us, since_us + minutes * _MINUTE_US, limit_of(query), _STEPS_US[step])
    try:
        async with asyncio.timeout(_ANSWER_S):
            known_us = await _fill(gateway, page, number_of(query, "after", 0) + 1 if after else None)
    except (TimeoutError, _Unread) as error:
        words = str(error) or f"the log has not answered within {_ANSWER_S:.0f} s"
        return answering.refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"the history cannot be read now: {words}")
    rows = await page.rows()
    return answering.answer(history=rows, known_us=known_us, next=page.next)


async def _fill(gateway: Gateway, page: _Page, position: int | None) -> int | None:
    """When the oldest record begins that is kept; None: there is none, or this page continues another one."""
    known_us: int | None = None
    while True:
        piece = await _piece(gateway, page.since_us // 1000, position)
        if piece.oldest is not None:
            known_us = (_decoded(piece.oldest) or {}).get("begin")
        size = 0
        for offset, value in zip(piece.offsets, piece.values, strict=True):
            if not page.take(offset, value):
                return known_us
            size += len(value)
            if size > _STEP_BYTES:
                size = 0
                await asyncio.sleep(0)
        if piece.position is None:
            return known_us
        position = piece.position


async def _piece(gateway: Gateway, since_ms: int, position: int | None) -> HistoryFound:
    asking = _Asking()
    gateway.realm.history.read(since_ms, position, asking)
    piece = await asking.answer
    if piece.answer != "ready":
        raise _Unread(piece.native or piece.answer)
    return piece


class _Asking:
    """Hears one piece."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[HistoryFound] = asyncio.get_running_loop().create_future()

    def answered(self, piece: HistoryFound) -> None:
        if not self.answer.done():  # else its page was given up
            self.answer.set_result(piece)


def _decoded(value: bytes) -> Row | None:
    """None: it has no format that is known here."""
    try:
        record = orjson.loads(value)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("v") == FORMAT else None


class _Page:
    """The records of one answer."""

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
        record = _decoded(value)
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

    async def rows(self) -> list[Row]:
        sums: dict[int, RowSum] = {}
        size = 0
        for offset, record_bytes, record in self._records.values():
            sums.setdefault(self._slot(offset, record), RowSum()).add(offset, record)
            size += record_bytes
            if size > _STEP_BYTES:
                size = 0
                await asyncio.sleep(0)
        return [total.row() for total in sums.values()]
