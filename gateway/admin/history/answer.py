"""What was counted earlier, by this run and by those before it: `/api/history`, read from the topic of the history.

The realm's worker reads the log, a piece at a time; between two turns a few records are decoded. Microseconds since
1970.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from gateway.admin.answers import Answering, WrongParameter, limit_of, number_of
from gateway.admin.history.page import MINUTES_MAX, STEP_BYTES, STEPS_US, HistoryPage, begin_us
from gateway.admin.history.row import Row
from gateway.admin.http import Request, Response
from gateway.session.gateway import Gateway
from native_backend.nodes.answers import HistoryFound

_MINUTE_US: Final = 60_000_000
_MINUTES: Final = 60
_ANSWER_S: Final = 4.0


class _Unread(Exception):
    """The log has not answered; says how."""


async def history(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?since=&minutes=&step=minute|5min|15min|hour&limit=&after=`, the oldest first; without `since` the last
    `minutes`. Raises WrongParameter."""
    query = request.query
    minutes, step, after = number_of(query, "minutes", _MINUTES), query.get("step", "minute"), query.get("after")
    if not 0 < minutes <= MINUTES_MAX:
        raise WrongParameter(f"minutes={minutes} is no number from 1 to {MINUTES_MAX}")
    if step not in STEPS_US:
        raise WrongParameter(f"step={step[:40]} is none of {', '.join(STEPS_US)}")
    since_us = number_of(query, "since", answering.at_us - minutes * _MINUTE_US)
    page = HistoryPage(since_us, since_us + minutes * _MINUTE_US, limit_of(query), STEPS_US[step])
    try:
        async with asyncio.timeout(_ANSWER_S):
            known_us = await _fill(gateway, page, number_of(query, "after", 0) + 1 if after else None)
    except (TimeoutError, _Unread) as error:
        words = str(error) or f"the log has not answered within {_ANSWER_S:.0f} s"
        return answering.refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"the history cannot be read now: {words}")
    rows: list[Row] = []
    for made in page.rows():
        rows = made or rows
        await asyncio.sleep(0)
    return answering.answer(history=rows, known_us=known_us, next=page.next)


async def _fill(gateway: Gateway, page: HistoryPage, position: int | None) -> int | None:
    """When the oldest record begins that is kept; None: there is none, or this page continues another one."""
    known_us: int | None = None
    while True:
        piece = await _piece(gateway, page.since_us // 1000, position)
        if piece.oldest is not None:
            known_us = begin_us(piece.oldest)
        size = 0
        for offset, value in zip(piece.offsets, piece.values, strict=True):
            if not page.take(offset, value):
                return known_us
            size += len(value)
            if size > STEP_BYTES:
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
