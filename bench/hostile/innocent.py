"""A publisher at a steady rate and a consumer, both load clients in C, and questions to the admin port meanwhile."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.load_client import load_client

PROBE_S: Final = 0.2


class Served(NamedTuple):
    """Messages a second that were accepted and that were received and settled; of send to accept, in milliseconds from
    when each message was due."""

    accepted: float
    received: float
    p50_ms: float
    p99_ms: float


def served(gateway: GatewayProcess, node: str, rate: int, seconds: float) -> Served:
    """Of `rate * seconds` messages of 100 octets through a queue. Errors: `RuntimeError`, one of the two did not get
    all of them."""
    count = str(int(rate * seconds))
    common = ["--address", gateway.address, "--node", node, "--capability", "queue", "--count", count]
    limit_s = seconds * 10 + HANG_S
    with _running("receive", *common) as consumer, _running("send", *common, "--rate", str(rate)) as publisher:
        sent, received = _report(publisher, limit_s), _report(consumer, limit_s)
    latency = sent["latency_us"]
    return Served(sent["rate"], received["rate"], latency["p50"] / 1000, latency["p99"] / 1000)


@contextmanager
def _running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [str(load_client()), *arguments]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield client
    finally:
        client.kill()
        client.communicate()


def _report(client: subprocess.Popen[str], limit_s: float) -> dict[str, Any]:
    out, err = client.communicate(timeout=limit_s)
    if client.returncode != 0:
        raise RuntimeError(f"exit {client.returncode}: {out.strip()} {err.strip()}")
    report: dict[str, Any] = json.loads(out)
    return report


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
