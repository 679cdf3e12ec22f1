"""A consumer that has credit for one message beside one that has it for ten thousand, both on a queue (`queue`) or a
channel (`channel`), while a publisher streams: how often the small one is served, and how long it waits for a message
from when it asked for it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.scale.served import SETTLE_S, served
from bench.scale.worlds import percentile
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.load_client import load_client
from tests.kit.realm.worlds import World
from tests.kit.wire import frames
from tests.kit.wire.clients import TRANSFER, Clients, Member

RATE = 5_000
LARGE_CREDIT = 10_000
ENDLESS = 10**9


def fairness(world: World, seconds: float) -> dict[str, Any]:
    with served(world) as gateway, Clients(gateway.port) as clients:
        return {
            "published_per_s": RATE,
            "large_credit": LARGE_CREDIT,
            "queue": beside(gateway, clients, "queue", "queue", seconds),
            "channel": beside(gateway, clients, "channel", "topic", seconds),
        }


def beside(gateway: GatewayProcess, clients: Clients, node: str, capability: str, seconds: float) -> dict[str, Any]:
    [small] = clients.enter(1, lambda _: [frames.attach_receiver(frames.source(node, capability=capability))])
    common = ["--address", gateway.address, "--node", node, "--capability", capability, "--count", str(ENDLESS)]
    with running("receive", *common, "--in-flight", str(LARGE_CREDIT)), running("send", *common, "--rate", str(RATE)):
        time.sleep(SETTLE_S)
        waits: list[float] = []
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            waits.append(one(small, len(waits)))
        taken_s = time.monotonic() - began
    parts = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    wait_ms = {name: round(percentile(waits, part), 2) for name, part in parts.items()}
    return {"small_per_s": round(len(waits) / taken_s), "wait_ms": wait_ms}


@contextmanager
def running(*arguments: str) -> Iterator[None]:
    """A load client, until it is not needed any more."""
    client = subprocess.Popen([load_client(), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        assert client.poll() is None, f"{arguments} has ended"
    finally:
        client.kill()
        client.wait()


def one(small: Member, number: int) -> float:
    """Ask for a message, wait for it, accept it; milliseconds waited."""
    began = time.perf_counter()
    small.send(frames.flow(1, 1, number))
    small.await_(TRANSFER)
    waited = 1e3 * (time.perf_counter() - began)
    small.send(frames.disposition(number, number, frames.state("accepted")))
    return waited
