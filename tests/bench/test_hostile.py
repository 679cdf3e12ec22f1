"""The gate of hostile peers: what it requires can fail, and each kind of peer says something to a gateway."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from bench.hostile.__main__ import Measured, gateway_of, table
from bench.hostile.innocent import Probes, Served, served
from bench.hostile.kinds import KINDS
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess

GOOD = Served(2000.0, 2000.0, 1.0, 9.0)
MEASURED = Measured("pings", GOOD, GOOD, GOOD, Probes(asked=9), {"connections": 10, "sent": 1}, 0.0)


@pytest.mark.parametrize(
    ("is_now", "says"),
    [
        ({"beside": GOOD._replace(accepted=1790.0)}, "in 0.90 of its rate"),
        ({"beside": GOOD._replace(received=1000.0)}, "out 0.50 of its rate"),
        ({"beside": GOOD._replace(p99_ms=50.0)}, "p99 50 ms beside"),
        ({"after": GOOD._replace(p99_ms=70.0)}, "p99 70 ms afterwards"),
        ({"probes": Probes(asked=9, slowest_s=1.0)}, "/livez took 1.0 s, 0 without an answer"),
        ({"probes": Probes(asked=9, silent=2)}, "/livez took 0.0 s, 2 without an answer"),
        ({"probes": Probes()}, "/livez took 0.0 s, 0 without an answer"),
        ({"probes": Probes(asked=9, unheld=1)}, "the lease was not held at 1 looks"),
        ({"hostile": {"connections": 0, "sent": 0}}, "the hostile peers sent nothing"),
    ],
)
def test_what_is_required_is_looked_at(is_now: dict[str, Any], says: str) -> None:
    assert MEASURED.broken() == []
    measured = MEASURED._replace(**is_now)
    assert measured.broken() == [says]
    assert table([measured])[-1].endswith(f"| {says} |")
    assert table([measured._replace(foreign_cpu=0.2)])[-1].endswith(f"| not known, others used the machine: {says} |")
    assert table([MEASURED._replace(foreign_cpu=0.2)])[-1].endswith("| yes |")


@pytest.mark.parametrize("name", KINDS)
def test_a_seed_is_a_storm(name: str) -> None:
    storm, other = KINDS[name](Random(7)), KINDS[name](Random(7))
    assert storm.scheme == other.scheme
    if name not in ("pings", "TLS handshakes"):  # their keys are random
        assert storm.hello == other.hello
    if storm.bursts:
        assert other.bursts and next(storm.bursts()) == next(other.bursts())


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayProcess]:
    with gateway_of("embedded") as (gateway, pids):
        assert pids == [gateway.pid]
        yield gateway


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_reaches_the_gateway(gateway: GatewayProcess, name: str) -> None:
    scheme = KINDS[name](Random(1)).scheme
    port = {"amqp": gateway.port, **gateway.ports}[scheme]
    words = [sys.executable, "-m", "bench.hostile.peers", name, f"127.0.0.1:{port}", "--seed", "1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as peers:
        assert peers.stdout is not None and peers.stdout.readline() == "open\n"
        at = served(gateway, f"beside-{name}", 500, 0.5)
        peers.send_signal(signal.SIGTERM)
        document = json.loads(peers.communicate(timeout=HANG_S)[0])
    assert at.accepted > 0 and at.received > 0
    assert document["connections"] >= 10 and document["sent"] > 0 and document["received"] > 0, document
    assert (document["answered"] > 0) == (KINDS[name](Random(1)).bursts is None), document


def test_a_gateway_that_stands_still_is_seen(gateway: GatewayProcess) -> None:
    probes, end = Probes(), threading.Event()
    thread = threading.Thread(target=probes.ask, args=(Watch.of(gateway), end))
    assert gateway.process is not None
    gateway.process.send_signal(signal.SIGSTOP)
    try:
        thread.start()
        until(lambda: probes.asked > 0, "a question")
        end.wait(1.0)
    finally:
        gateway.process.send_signal(signal.SIGCONT)
        end.set()
        thread.join()
    assert probes.slowest_s >= 0.9
