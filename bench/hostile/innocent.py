"""A publisher at a steady rate and a consumer, both load clients in C, and questions to the admin port meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from bench.runs import Case, move_both
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess

PROBE_S: Final = 0.2


class Served(NamedTuple):
    """Messages a second that were accepted and that were received and settled; of send to accept, in milliseconds from
    when each message was due."""

    accepted: float
    received: float
    p50_ms: float
    p99_ms: float


def served(gateway: GatewayProcess, node: str, rate: int, seconds: float) -> Served:
    """Of `rate * seconds` messages of 100 octets through a queue. Errors: `RunFailed`, one of the two did not get
    all of them."""
    both = move_both(gateway.address, node, Case(100, 1000, int(rate * seconds)), rate)
    latency = both["in"]["latency_us"]
    return Served(both["in"]["rate"], both["out"]["rate"], latency["p50"] / 1000, latency["p99"] / 1000)


@dataclass(slots=True)
class Probes:
    """What the admin port answered, while it was asked: `slowest_s` of `/livez`; how often the lease was not held; how
    often there was no answer."""

    asked: int = 0
    slowest_s: float = 0.0
    silent: int = 0
    unheld: int = 0

    def ask(self, watch: Watch, end: threading.Event) -> None:
        while not end.wait(PROBE_S):
            began = time.monotonic()
            self.asked += 1
            try:
                status = watch.ask("/livez", timeout_s=HANG_S)[0]
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self.silent += status != 200
                self.unheld += b"\nrealmgate_lease_held 1.0\n" not in watch.ask("/metrics", timeout_s=HANG_S)[2]
            except OSError:
                self.silent += 1


@contextmanager
def probed(watch: Watch) -> Iterator[Probes]:
    probes, end = Probes(), threading.Event()
    thread = threading.Thread(target=probes.ask, args=(watch, end), daemon=True)
    thread.start()
    try:
        yield probes
    finally:
        end.set()
        thread.join()
