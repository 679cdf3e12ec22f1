"""The history out of a realm itself, as `/api/history` answers it: `realmgate history --stored`, where no gateway does.

Reads its topic and nothing else, also beside a serving gateway. Errors: `AdminProblem`. Microseconds since 1970.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any, Final

from gateway.admin.history.page import STEPS_US, HistoryPage, begin_us
from gateway.admin.history.row import Row
from gateway.cli.answering_log import open_answering, remedy_of
from gateway.cli.gateways.admin_client import ROWS, AdminProblem
from gateway.config.file_modes import realm_file
from gateway.config.settings import Settings
from native_backend.clock import SystemClock
from native_backend.log.port import Log, LogError
from native_backend.nodes.words import history_topic
from native_backend.publish.history_topic import read_piece

STORED: Final = "stored"
"""The state of such an answer: no gateway's."""
_DEADLINE_S: Final = 10.0
Document = dict[str, Any]


def stored_pages(settings: Settings, since_us: int, until_us: int, step: str, most: int) -> list[Document]:
    """At most so many pages of `ROWS` rows, as a gateway gives them; of a realm that was never opened, one without a
    row. Raises AdminProblem."""
    file = realm_file(settings)
    try:
        if file is not None and not file.exists():  # opening it would make it
            return [_page([], None, None)]
        with closing(open_answering(settings)) as log:
            pages = _pages(log, history_topic(settings.realm.prefix), since_us, until_us, STEPS_US[step])
            return [*islice(pages, most)]
    except LogError as error:
        raise AdminProblem(f"{settings.realm.place}: {error}; {remedy_of(error, settings)}") from None
    except (sqlite3.Error, OSError) as error:
        remedy = "run it as the user that runs the gateway"
        raise AdminProblem(f"{settings.realm.place} cannot be read: {error}; {remedy}") from None


def _page(rows: list[Row], known_us: int | None, following: str | None) -> Document:
    """As a gateway gives it."""
    at_us = SystemClock().epoch_us()
    return {
        "run": None, "url": None, "state": STORED, "at_us": at_us, "history": rows, "known_us": known_us,
        "next": following,
    }  # fmt: skip


def _pages(log: Log, topic: str, since_us: int, until_us: int, step_us: int) -> Iterator[Document]:
    position, known_us = None, None
    while True:
        page = HistoryPage(since_us, until_us, ROWS, step_us)
        oldest = _fill(log, topic, page, position)
        known_us = oldest if position is None else known_us
        [rows] = [made for made in page.rows() if made is not None]
        yield _page(rows, known_us, page.next)
        if page.next is None:
            return
        position = int(page.next) + 1


def _fill(log: Log, topic: str, page: HistoryPage, position: int | None) -> int | None:
    """When the oldest record begins that is kept; None: there is none, or the page continues another one."""
    known_us: int | None = None
    while True:
        try:
            piece = read_piece(log, topic, page.since_us // 1000, position, _DEADLINE_S)
        except LogError as error:
            if error.failure.cause != "not-found":
                raise
            return known_us
        if piece.oldest is not None:
            known_us = begin_us(piece.oldest)
        records = piece.records
        for offset, value in zip(records.offsets, records.values, strict=True):
            if not page.take(offset, value or b""):
                return known_us
        if records.next >= piece.end or (position is not None and records.next <= position):
            return known_us
        position = records.next
