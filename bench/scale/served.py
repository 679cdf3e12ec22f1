"""A gateway process on the realm of a case, reached over sockets, and what is read off it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.scale.worlds import DIRECTORY
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, start_gateway
from tests.kit.realm.worlds import KafkaWorld, World
from tests.kit.wire import frames
from tests.kit.wire.clients import TRANSFER, Member, resident_bytes, used_s

SETTLE_S = 3.0  # until what was begun is over: topics are made, connections of the log's client idle
BODY = b"x" * 100


@contextmanager
def served(world: World, **limits: int) -> Iterator[GatewayProcess]:
    """Nodes are made on attach. Of the limits, the defaults but for these; all peers have one address, and all of
    each."""
    directory = DIRECTORY / "gateway"
    shutil.rmtree(directory, ignore_errors=True)
    realm = kafka_realm(world.bootstrap, "scale") if isinstance(world, KafkaWorld) else embedded_realm(directory)
    gateway = start_gateway(directory, realm, limits={"share_percent": 100, **limits})
    try:
        yield gateway
    finally:
        if gateway.process is not None:
            gateway.stop()
        shutil.rmtree(directory, ignore_errors=True)


def resident_mb(gateway: GatewayProcess) -> float:
    return resident_bytes(gateway.pid) / 1e6


def peak_mb(gateway: GatewayProcess) -> float:
    """The most since `forget_peak`."""
    status = Path(f"/proc/{gateway.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / 1e6


def forget_peak(gateway: GatewayProcess) -> None:
    Path(f"/proc/{gateway.pid}/clear_refs").write_text("5\n")


def cpu_part(gateway: GatewayProcess, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> float:
    """Of one processor, over so long; `meanwhile` is called every second."""
    began, used = time.monotonic(), used_s(gateway.pid)
    while time.monotonic() < began + seconds:
        meanwhile()
        time.sleep(1.0)
    return round((used_s(gateway.pid) - used) / (time.monotonic() - began), 4)


def round_trips(publisher: Member, consumers: Sequence[Member], count: int, handle: int = 0) -> list[float]:
    """Milliseconds from a message's sending to its arrival at that one of the consumers whose turn it is: each has a
    channel to itself and the publisher, or there is only one."""
    latencies = []
    for number in range(count):
        began = time.perf_counter()
        publisher.send(frames.transfer(number, frames.message(BODY), handle, settled=True))
        consumers[number % len(consumers)].await_(TRANSFER)
        latencies.append(1e3 * (time.perf_counter() - began))
    return latencies
