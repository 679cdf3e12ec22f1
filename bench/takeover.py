"""How long no gateway gives out events: `python -m bench.takeover [--rounds N] [--realm KIND]`, on an embedded realm
and on a real Kafka.

A consumer has 500 unsettled events of a queue when its gateway ends in one of these ways; what is timed is from the
signal to the first of them received again, by a client that tries every 5 ms at both addresses. Seconds.

* restart: kill -9, and the same gateway started again at once; no standby
* killed: kill -9 of the one that serves, with a standby on the same machine
* stopped: SIGTERM of the one that serves, with a standby
* lapsed: SIGSTOP of the one that serves, with a standby; counted from when the lease of 5 s lapsed. On Kafka only: a
  process that is stopped while it writes keeps SQLite's lock until it is ended

Prints one line of JSON a way and realm.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.systems import DIRECTORY
from tests.kit.processes.broker import free_port, start_broker
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

NODE = "orders"
UNSETTLED = 500
LEASE_S = 5.0
PATIENCE_S = 60.0
KINDS = ("embedded", "kafka")
Pair = tuple[GatewayProcess, GatewayProcess]


def restart(pair: Pair) -> float:
    serving, _ = pair
    began_s = time.monotonic()
    serving.kill()
    serving.launch()
    return began_s


def killed(pair: Pair) -> float:
    began_s = time.monotonic()
    pair[0].kill()
    return began_s


def stopped(pair: Pair) -> float:
    began_s = time.monotonic()
    pair[0].stop()
    return began_s


def lapsed(pair: Pair) -> float:
    began_s = time.monotonic()
    os.kill(pair[0].pid, signal.SIGSTOP)
    return began_s + LEASE_S


WAYS: dict[str, Callable[[Pair], float]] = {
    "restart": restart,
    "killed": killed,
    "stopped": stopped,
    "lapsed": lapsed,
}


def measure(way: str, realm: dict[str, Any], directory: Path) -> float:
    """One round, on two gateways of its own."""
    serving, waiting = (make_gateway(directory / name, realm) for name in ("one", "two"))
    serving.port, waiting.port = free_port(), free_port()
    serving.start()
    if way != "restart":
        waiting.launch()
        waiting.await_log("listens when that one ends")
    try:
        with Peer(serving.port) as peer:
            peer.stored(NODE, *[frames.message(b"%d" % number) for number in range(UNSETTLED)])
            peer.consumer(NODE, credit=UNSETTLED)
            peer.receive(UNSETTLED)
            began_s = WAYS[way]((serving, waiting))
            _first_again([serving.port] if way == "restart" else [waiting.port])
            return time.monotonic() - began_s
    finally:
        for gateway in (serving, waiting):
            gateway.kill()


def _first_again(ports: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for port in ports:
            try:
                with Peer(port) as peer:
                    peer.consumer(NODE, credit=1)
                    peer.receive(1)
                    return
            except OSError:
                time.sleep(0.005)
    raise RuntimeError(f"no event came again within {PATIENCE_S} s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.takeover")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--realm", choices=KINDS)
    arguments = parser.parse_args()
    rounds, kinds = arguments.rounds, (arguments.realm,) if arguments.realm else KINDS
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    broker = start_broker(DIRECTORY / "kafka")
    try:
        for kind, way in itertools.product(kinds, WAYS):
            if (kind, way) != ("embedded", "lapsed"):
                taken = []
                for _ in range(rounds):
                    directory = DIRECTORY / f"takeover-{uuid.uuid4().hex[:8]}"
                    prefix = f"t{uuid.uuid4().hex[:8]}"
                    realm = embedded_realm(directory) if kind == "embedded" else kafka_realm(broker.bootstrap, prefix)
                    taken.append(measure(way, realm, directory))
                row = {"realm": kind, "way": way, "rounds": rounds, "median_s": round(statistics.median(taken), 2)}
                row |= {"worst_s": round(max(taken), 2), "load": round(os.getloadavg()[0], 1)}
                sys.stdout.write(json.dumps(row) + "\n")
                sys.stdout.flush()
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
