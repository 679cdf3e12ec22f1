"""The history on a real Kafka against what clients sent and heard: gateways are killed in the midst of it, and the
broker is frozen. Each killed run lacks what came behind its last record, nothing else is missing, nothing counts twice.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.broker import Broker, start_broker
from tests.kit.processes.gateway import GatewayProcess, kafka_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

BATCH = 20
FROZEN_S = 3.0
TURN_US = 1_000_000
"""Between an answer to a peer and the turn's end, in which it is counted; a busy machine may stop there."""
Row = dict[str, Any]
Way = tuple[str, str]  # direction, outcome


class Step(NamedTuple):
    """A batch of one direction, by this machine's clock. `heard_us` None: it was sent, and the connection ended."""

    way: Way
    sent_us: int
    heard_us: int | None


@dataclass
class Client:
    """Publishes a batch, takes it and accepts it, over and over, until it is stopped or its gateway has gone."""

    port: int
    steps: list[Step] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError, AssertionError), Peer(self.port) as peer:  # its gateway was killed
            peer.publisher("orders")
            peer.consumer("orders", credit=1_000_000)
            while not self.stopped.is_set():
                self._step(peer, ("in", "accepted"), partial(peer.publish, *[MESSAGE] * BATCH))
                numbers = [seen.field(1) for seen in peer.receive(BATCH)]
                settle = partial(peer.settle, numbers, frames.state("accepted"), settled=False)
                self._step(peer, ("out", "accepted"), settle)

    def _step(self, peer: Peer, way: Way, send: Callable[[], object]) -> None:
        at = len(self.steps)
        self.steps.append(Step(way, _now_us(), None))
        send()
        assert set(peer.outcomes(BATCH).values()) == {"accepted"}
        self.steps[at] = self.steps[at]._replace(heard_us=_now_us())

    def end(self) -> None:
        """As soon as the batch under way has come to its end."""
        self.stopped.set()
        self._thread.join()

    def heard(self, before_us: float = float("inf")) -> Counter[Way]:
        return Counter(
            step.way for step in self.steps for _ in range(BATCH) if step.heard_us and step.heard_us < before_us
        )

    def sent(self, before_us: float = float("inf")) -> Counter[Way]:
        return Counter(step.way for step in self.steps for _ in range(BATCH) if step.sent_us < before_us)


def _now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = start_broker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


def history(gateway: GatewayProcess) -> list[Row]:
    """All of it."""
    watch, rows, after = Watch.of(gateway), list[Row](), ""
    while True:
        query = urlencode({"minutes": 600, "limit": 7, **({"after": after} if after else {})})
        status, _, body = watch.ask(f"/api/history?{query}")
        [answer] = json.loads(body)["gateways"]
        assert status == 200, answer
        rows += answer["history"]
        after = answer["next"]
        if after is None:
            return rows


def of_run(gateway: GatewayProcess, run: str) -> list[Row]:
    return [row for row in history(gateway) if row["runs"][0]["run"] == run]


def summed(rows: list[Row]) -> Counter[Way]:
    """Without what a consumer had not stated when its connection ended."""
    counts: Counter[Way] = Counter()
    for row in rows:
        for direction, node, outcome, count in row["deliveries"]:
            assert node == "orders"
            if outcome == "accepted":
                counts[direction, outcome] += count
    return counts


def run_of(gateway: GatewayProcess) -> str:
    return str(Watch.of(gateway).health()["run"])


def killed_in_the_midst(gateway: GatewayProcess, records: int) -> tuple[str, Client]:
    """So many records were stored while a client worked."""
    run, client = run_of(gateway), Client(gateway.port)
    until(lambda: sum(1 for row in of_run(gateway, run) if row["deliveries"]) >= records, "records", pause=_pause)
    gateway.kill()
    client.end()
    gateway.start()
    return run, client


def _pause() -> None:
    time.sleep(0.2)


def test_what_clients_sent_is_in_the_history_less_the_last_record_of_a_killed_run(
    tmp_path: Path, broker: Broker
) -> None:
    realm, admin = kafka_realm(broker.bootstrap, "um"), {"listen": "http://127.0.0.1:0"}
    gateway = start_gateway(tmp_path, realm, admin=admin, limits={"history_interval_s": 1})
    try:
        killed = [killed_in_the_midst(gateway, records) for records in (4, 1, 2)]
        run, client = run_of(gateway), Client(gateway.port)
        until(lambda: client.heard().total() > 10 * BATCH, "the client to work")
        os.kill(broker.pid, signal.SIGSTOP)  # records of the history wait meanwhile
        try:
            time.sleep(FROZEN_S)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        heard = client.heard().total()
        until(lambda: client.heard().total() > heard + 10 * BATCH, "the client to go on")
        client.end()
        assert gateway.stop() == 0, gateway.log()
        gateway.start()
        rows = history(gateway)
        assert summed(of_run(gateway, run)) == client.heard() == client.sent(), "it ended in order: all of it"
        for run_id, its_client in killed:
            its_rows = [row for row in rows if row["runs"][0]["run"] == run_id]
            end_us = its_rows[-1]["end_us"]
            assert its_client.heard(end_us - TURN_US) <= summed(its_rows) <= its_client.sent(end_us), run_id
            assert summed(its_rows) and not its_rows[-1]["runs"][0]["closed"]
        for run_id in {entry["run"] for row in rows for entry in row["runs"]}:
            times = [(row["begin_us"], row["end_us"]) for row in rows if row["runs"][0]["run"] == run_id]
            assert all(end == begin for (_, end), (begin, _) in pairwise(times)), "without a gap"
    finally:
        gateway.stop()
