"""`/api/history` where a record was written again: it counts once, wherever a page ends."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import orjson
import pytest

from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import StartGateway

ADMIN = {"listen": "http://127.0.0.1:0"}
HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
BEGIN_US = 480_000 * HOUR_US
Record = tuple[str, int, int]
"""Run, `n`, and how many messages it counts; each is a minute's, whatever comes before it."""


def planted(new_gateway: StartGateway, records: Sequence[Record]) -> Watch:
    """A gateway whose history has these records, and none of its own for an hour."""
    gateway = new_gateway("embedded", admin=ADMIN, limits={"history_interval_s": 3600, "history_s": 2**31 - 1})
    with closing(open_log(load_settings(gateway.config_path))) as log:
        for run, number, count in records:
            begin_us = BEGIN_US + number * MINUTE_US
            times = {"v": 1, "run": run, "n": number, "begin": begin_us, "end": begin_us + MINUTE_US}
            deliveries = {"deliveries": [["in", "orders", "accepted", count]]}
            log.control.put("um.history", run.encode(), orjson.dumps(times | deliveries))
    return Watch.of(gateway)


def pages(watch: Watch, **query: object) -> list[list[dict[str, Any]]]:
    histories, after = [], ""
    while True:
        parameters = {"since": BEGIN_US, "minutes": 600, **query, **({"after": after} if after else {})}
        status, _, body = watch.ask(f"/api/history?{urllib.parse.urlencode(parameters)}")
        [answer] = json.loads(body)["gateways"]
        assert status == 200, answer
        histories.append(answer["history"])
        after = answer["next"]
        if after is None:
            return histories


def counted(histories: list[list[dict[str, Any]]]) -> int:
    return sum(count for page in histories for row in page for *_, count in row["deliveries"])


def test_a_record_that_was_written_again_counts_once_at_each_page_border(new_gateway: StartGateway) -> None:
    """Three times even, and with another run's between two of them."""
    copies = [("a", 2, 10), ("a", 2, 20), ("b", 2, 1_000), ("a", 2, 40)]
    watch = planted(new_gateway, [("a", 1, 1), *copies, ("a", 3, 100)])
    for step in ("minute", "hour"):
        for limit in range(1, 8):
            assert counted(pages(watch, limit=limit, step=step)) == 1_141, (step, limit)
    sizes = [[*map(len, pages(watch, limit=limit))] for limit in (1, 2, 3)]
    assert sizes == [[1, 0, 1, 1, 1], [1, 2, 1], [3, 1]]


@pytest.mark.parametrize(("between", "total"), [(99, 1_092), (100, 1_112)])
def test_it_looks_so_far_behind_a_page_and_no_further(new_gateway: StartGateway, between: int, total: int) -> None:
    """Further than one piece of the log, and each record that is not replaced counts."""
    others = [("b", number, 10) for number in range(1, between + 1)]
    watch = planted(new_gateway, [("a", 1, 10), *others, ("a", 1, 102)])
    assert counted(pages(watch, limit=1)) == total
    assert counted(pages(watch, limit=500)) == 10 * between + 102
