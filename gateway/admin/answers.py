"""The JSON of `/api/...`: each answer is a list over gateways, and each of them says its run and its time. A gateway
answers for itself, so its list has one.

    {"gateways": [{"run": ..., "at_us": ..., "state": "ready", "connections": [...], "next": ID or null}]}

A page has `limit` rows (100; at most `ADMIN_ROWS`) of those behind the row `after`, in an order that stays. `next` is
the last row's, where there are more. Microseconds since 1970.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Final, TypeVar

import orjson

from gateway.admin.http import JSON, Response
from gateway.config.limits import ADMIN_ROWS

_LIMIT: Final = 100
_STEP: Final = 500  # rows looked at without a pause: some 200 us
K = TypeVar("K", bound=Any)  # is ordered
V = TypeVar("V")


class WrongParameter(Exception):
    """Of a request; says what to write."""


@dataclass(slots=True)
class Answering:
    """Which gateway answers, when, and how it is."""

    run: str
    at_us: int
    state: str

    def answer(self, status: HTTPStatus = HTTPStatus.OK, **what: Any) -> Response:
        document = {"gateways": [{"run": self.run, "at_us": self.at_us, "state": self.state, **what}]}
        return Response(status, JSON, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    def refusal(self, status: HTTPStatus, words: str) -> Response:
        return self.answer(status, problem=words)


async def following(rows: Iterable[tuple[K, V]], after: K | None, count: int) -> list[tuple[K, V]]:
    """The first `count` of them behind `after`, in the order of their keys; looked for in steps."""
    first_rows: list[tuple[K, V]] = []
    for at, row in enumerate(rows, 1):
        if (after is None or row[0] > after) and (len(first_rows) < count or row[0] < first_rows[-1][0]):
            insort(first_rows, row, key=itemgetter(0))
            del first_rows[count:]
        if at % _STEP == 0:
            await asyncio.sleep(0)
    return first_rows


async def last_of(steps: Iterable[V | None]) -> V:
    """What an iterator of steps comes to."""
    last = None
    for last in steps:
        if last is None:
            await asyncio.sleep(0)
    assert last is not None
    return last


def limit_of(query: Mapping[str, str]) -> int:
    """Rows of one answer. Raises WrongParameter."""
    return min(ADMIN_ROWS, max(1, number_of(query, "limit", _LIMIT)))


def number_of(query: Mapping[str, str], name: str, default: int) -> int:
    """A whole number from 0 on. Raises WrongParameter."""
    written = query.get(name, "")
    if not written:
        return default
    if not (written.isascii() and written.isdigit() and len(written) <= 20):
        raise WrongParameter(f"{name}={written[:40]} is no whole number from 0")
    return int(written)


def place_of(query: Mapping[str, str], run: str) -> tuple[int, ...]:
    """Of the row `after`, by the numbers in its ID: (0,) before all. Raises WrongParameter."""
    written = query.get("after", "")
    return place(written, run) if written else (0,)


def place(written: str, run: str) -> tuple[int, ...]:
    """The numbers of an ID of this run: RUN.CONNECTION, or RUN.CONNECTION.LINK. Raises WrongParameter."""
    named, *numbers = written.split(".")
    are_numbers = all(number.isascii() and number.isdigit() and len(number) < 20 for number in numbers)
    if named != run or not numbers or not are_numbers:
        raise WrongParameter(f"{written[:60]} is no ID of the run {run}")
    return tuple(map(int, numbers))
