"""`/api/history`: what earlier runs counted, and this one up to a moment ago; one of them is killed."""

from __future__ import annotations

import json
import time
import urllib.parse
from collections import Counter
from typing import Any

import pytest

from gateway.evidence.history import FAMILIES
from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

ADMIN = {"listen": "http://127.0.0.1:0"}
LIMITS = {"history_interval_s": 1}
CAPACITY = ("capacity-events=5", "honour-capacity=true")
Row = dict[str, Any]
Counts = Counter[tuple[str, ...]]


def ask(watch: Watch, **query: object) -> tuple[int, Row]:
    status, _, body = watch.ask(f"/api/history?{urllib.parse.urlencode(query)}")
    [answer] = json.loads(body)["gateways"]
    return status, answer


def rows(watch: Watch, **query: object) -> list[Row]:
    """Of all pages."""
    records: list[Row] = []
    after = ""
    while True:
        status, answer = ask(watch, **query, **({"after": after} if after else {}))
        assert status == 200, answer
        records += answer["history"]
        after = answer["next"]
        if after is None:
            return records


def of_run(records: list[Row], run: str) -> list[Row]:
    return [row for row in records if [entry["run"] for entry in row["runs"]] == [run]]


def summed(records: list[Row], family: str) -> Counts:
    counts: Counts = Counter()
    for row in records:
        for *key, count in row[family]:
            counts[tuple(key)] += count
    return counts


def counted(watch: Watch, name: str, *labels: int) -> Counts:
    """A family of /metrics: by its labels, in the order of the history."""
    return Counter(
        {
            tuple(values[at] for at in labels): int(number)
            for (metric, values), number in watch.metrics().items()
            if metric == f"realmgate_{name}_total"
        }
    )


def everything(watch: Watch) -> dict[str, Counts]:
    """In /metrics labels stand in the order of their names."""
    return {
        "deliveries": counted(watch, "deliveries", 0, 1, 2),
        "errors": counted(watch, "errors", 2, 1, 0, 4, 3),
        "rules": counted(watch, "rule_decisions", 1, 0),
    }


def work(gateway: GatewayProcess, watch: Watch, count: int) -> None:
    """So many messages come in, most of them are refused by a full node; one attach finds no node."""
    before = counted(watch, "deliveries", 0, 1, 2).total()
    with Peer(gateway.port, container="app") as peer:
        peer.publisher("full")
        peer.outcomes(len(peer.publish(*[MESSAGE] * count)))
    with Peer(gateway.port, container="lost") as peer:
        peer.send(frames.attach_receiver("no-such-node", 1, "sub", 2, 0))
        assert peer.refused() == "amqp:not-found"
    until(lambda: counted(watch, "deliveries", 0, 1, 2).total() == before + count, "all outcomes to be counted")


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_the_records_of_all_runs_add_up_to_what_was_counted(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind, admin=ADMIN, limits=LIMITS, nodes={})
    watch = Watch.of(gateway)
    gateway.command("node", "create", "full", "--kind", "queue")
    gateway.command("node", "set", "full", *CAPACITY)
    first = watch.health()["run"]
    work(gateway, watch, 8)
    of_first = everything(watch)
    assert gateway.stop() == 0
    gateway.start()
    watch = Watch.of(gateway)
    second = watch.health()["run"]
    work(gateway, watch, 3)
    of_second = everything(watch)
    until(lambda: summed(of_run(rows(watch), second), "deliveries") == of_second["deliveries"], "the next record")
    work(gateway, watch, 2)  # its last second may be lost
    killed = everything(watch)
    gateway.kill()
    gateway.start()
    watch = Watch.of(gateway)
    third = watch.health()["run"]
    until(lambda: of_run(rows(watch), third), "the first record of a run")
    records = rows(watch)
    for family, counts in of_first.items():
        assert summed(of_run(records, first), family) == counts, family
        assert of_second[family] <= summed(of_run(records, second), family) <= killed[family], family
        assert not summed(of_run(records, third), family), family
    assert [row["runs"][0]["closed"] for row in of_run(records, first)].index(True) == len(of_run(records, first)) - 1
    assert not any(row["runs"][0]["closed"] for row in of_run(records, second))
    assert [row["id"] for row in records] == sorted((row["id"] for row in records), key=int)
    for run in (first, second, third):
        times = [time for row in of_run(records, run) for time in (row["begin_us"], row["end_us"])]
        assert times == sorted(times), "nothing is counted twice"
    hours = rows(watch, step="hour", limit=1)
    for run, closed in ((first, True), (second, False)):
        covered = [entry for row in hours for entry in row["runs"] if entry["run"] == run]
        assert covered[0]["begin_us"] == of_run(records, run)[0]["begin_us"]
        assert (covered[-1]["end_us"], covered[-1]["closed"]) == (of_run(records, run)[-1]["end_us"], closed)
    for family in FAMILIES:
        assert summed(hours, family) >= summed(records, family), family
    assert sum(row["new_connections"] for row in of_run(records, first)) == 2


def test_a_page_is_of_the_time_that_was_asked_for(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded", admin=ADMIN, limits=LIMITS, nodes={})
    watch = Watch.of(gateway)
    until(lambda: len(rows(watch)) >= 4, "four records")
    records = rows(watch)
    _, answer = ask(watch)
    assert answer["known_us"] == records[0]["begin_us"]
    assert [row["id"] for row in rows(watch, limit=1)][:4] == [row["id"] for row in records[:4]]
    third = records[2]
    assert rows(watch, since=third["begin_us"])[0]["id"] == third["id"]
    assert rows(watch, since=third["begin_us"] - 60_000_000, minutes=1) == records[:2]
    assert not rows(watch, since=(time.time_ns() // 1000) + 60_000_000)
    for wrong in ({"minutes": 0}, {"minutes": "x"}, {"step": "day"}, {"after": "x"}, {"since": "yesterday"}):
        status, answer = ask(watch, **wrong)
        assert status == 400 and answer["problem"], wrong
