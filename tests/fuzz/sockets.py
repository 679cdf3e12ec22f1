"""Bred cases over sockets, against a real gateway's process: what only its server can get wrong.

A witness publishes and consumes all the while; a connection is sent what a case says and reads what comes, or does not:
on the bare listener, by TLS, by WebSocket, by both. Some open slowly, an octet at a time, and must be closed in time.
At the end the process is there, has logged no traceback, and its memory and descriptors are where they were.
"""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil

from tests.fuzz.breeding import Breeder
from tests.fuzz.peers import OPEN_TIMEOUT_MS, Fuzzed, Secured, Slow
from tests.fuzz.steps import Case, cases_in
from tests.fuzz.worker import CORPUS, REGRESSIONS
from tests.kit.patience import HANG_S
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

SERVED_S = HANG_S  # eight processes on two cores are no fault of ours
AT_ONCE = 20  # connections that are open beside each other
SLOW_AT_ONCE = 6
LEVEL_BYTES = 24 * 1024 * 1024
GONE_S = HANG_S
LIMITS = {"open_timeout_ms": OPEN_TIMEOUT_MS, "idle_timeout_ms": 60_000, "close_timeout_ms": 1_000}


@dataclass(slots=True)
class Sockets:
    """What came of it."""

    cases: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def fuzz_sockets(seed: str, seconds: float, directory: Path, cases: int = 0) -> Sockets:
    """Until the time is over, or until so many cases were carried out."""
    here = directory / "sockets"
    shutil.rmtree(here, ignore_errors=True)
    server = Authority(here / "authority").sign("server", "/CN=localhost", "IP:127.0.0.1")
    tls = {"certificate": str(server.certificate), "key": str(server.key)}
    gateway = make_gateway(here, embedded_realm(here), limits=LIMITS, tls=tls)
    gateway.more = ["amqps", "ws", "wss"]
    gateway.start()
    done = Sockets()
    try:
        end = time.monotonic() + seconds
        _fuzz(
            gateway, Random(f"sockets {seed}"), lambda: done.cases >= cases if cases else time.monotonic() > end, done
        )
    except (AssertionError, OSError) as error:
        done.wrong.append(f"over sockets: {type(error).__name__}: {error}; {gateway.log()}")
    alive = gateway.process is not None and gateway.process.poll() is None
    code = gateway.stop()
    if not alive or code != 0:
        done.wrong.append(f"the gateway ended with {code}: {gateway.log()}")
    elif "Traceback" in gateway.log_path.read_text():
        done.wrong.append(f"the gateway logged: {gateway.log()}")
    return done


def _fuzz(gateway: GatewayProcess, random: Random, is_over: Callable[[], bool], done: Sockets) -> None:
    breeder, process = Breeder(cases_in(CORPUS) + cases_in(REGRESSIONS)), psutil.Process(gateway.pid)
    witness = Witness(gateway.port)
    witness.is_served()
    before = process.num_fds()
    levels: list[int] = []
    connections: list[Fuzzed] = []
    slow = [Slow(gateway, random) for _ in range(SLOW_AT_ONCE)]
    while not is_over():
        _carry_out(breeder.breed(random), gateway, random, connections, done)
        slow = [peer if peer.goes_on() else Slow(gateway, random) for peer in slow]
        while len(connections) > AT_ONCE:
            connections.pop(random.randrange(len(connections))).close()
        if done.cases % 20 == 0:
            witness.is_served()
            levels.append(process.memory_info().rss)
        gc.collect(0)
    for connection in connections:
        connection.close()
    for peer in slow:
        peer.close()
    gone_by = time.monotonic() + GONE_S
    while process.num_fds() > before and time.monotonic() < gone_by:
        time.sleep(0.1)
    witness.is_served()
    witness.close()
    warm = levels[len(levels) // 3] if levels else 0
    grown = process.memory_info().rss - warm
    done.metrics = {"warm_mb": warm // 10**6, "grown_mb": round(grown / 1e6, 1), "fds": process.num_fds() - before}
    if process.num_fds() > before:
        done.wrong.append(f"descriptors: {before} before, {process.num_fds()} after")
    if len(levels) > 30 and grown > LEVEL_BYTES:
        done.wrong.append(f"memory grew by {grown / 1e6:.1f} MB")


def _carry_out(case: Case, gateway: GatewayProcess, random: Random, connections: list[Fuzzed], done: Sockets) -> None:
    secured = random.random() < 0.3
    peers: dict[int, Fuzzed] = {}
    for step in case.steps:
        peer = peers.get(step.connection)
        if peer is None:
            peer = peers[step.connection] = _connect(case, gateway, random, secured)
            done.cases += 1
        if step.verb == "send":
            peer.send(step.data)
        elif step.verb == "lose":
            peer.close()
        if random.random() < 0.7:
            peer.read()
    connections += peers.values()


def _connect(case: Case, gateway: GatewayProcess, random: Random, secured: bool) -> Fuzzed:
    if secured:
        return Secured(gateway.ports["wss" if case.gateway == "web" else "amqps"], random)
    return Fuzzed(gateway.ports["ws"] if case.gateway == "web" else gateway.port)


class Witness:
    """Served all the while."""

    def __init__(self, port: int) -> None:
        self._peer = Peer(port, "case.witness")
        self._peer.publisher("case.witness")
        self._peer.consumer("case.witness", credit=5)

    def is_served(self) -> None:
        [number] = self._peer.publish(frames.message(b"witness"))
        deadline = time.monotonic() + SERVED_S
        names: set[str] = set()
        while {"disposition", "transfer"} - names:
            assert time.monotonic() < deadline, f"the witness was not served: message {number}, {names}"
            self._peer.read(0.2)
            for seen in self._peer.seen:
                names.add(seen.name)
                if seen.name == "transfer":
                    self._peer.delivered[1] += 1
                    self._peer.settle([seen.field(1)], frames.state("accepted"))
                    self._peer.credit(5)
            self._peer.seen.clear()
            self._peer.raw = b""

    def close(self) -> None:
        self._peer.close()
