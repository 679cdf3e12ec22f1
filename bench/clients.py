"""Many clients at once, each with one thing under way, beside Artemis: the measurement that `bench.transactions` and
`bench.connections` are two plans of. The clients are one process in C (`tests/kit/load/many.c`).

Systems take turns, repeat after repeat; what counts are medians. A rate is in messages a second, latency in
microseconds. Prints a line a case and system, and writes every sample to `bench/results/DATE-COMMIT-NAME.json`.
Errors: `RunFailed`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.machine import Machine
from bench.report import keep
from bench.runs import report_of
from bench.systems import running
from tests.kit.processes.load_client import load_client

WARM_S = 5.0


@dataclass(frozen=True, slots=True)
class Many:
    """`clients` that each send a message and wait (`send`), or a transaction of `messages` (`transact`)."""

    mode: str
    clients: int
    messages: int = 1

    @property
    def words(self) -> str:
        what = f"transactions of {self.messages}" if self.mode == "transact" else "one in flight"
        return f"{self.clients} client{'s' if self.clients > 1 else ''}, {what}"


def run_many(address: str, queue: str, case: Many, seconds: float) -> dict[str, Any]:
    """The clients' report. None of them may fail or be cut off."""
    command = [str(load_client().with_name("many")), case.mode, "--address", address, "--node", queue]
    command += ["--capability", "queue", "--clients", str(case.clients), "--messages", str(case.messages)]
    command += ["--seconds", str(seconds)]
    return report_of(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), seconds)


def measure(name: str, cases: Sequence[Many], repeat: int, seconds: float) -> None:
    """Every case on every system, and the file of results."""
    samples: list[dict[str, Any]] = []
    started = time.strftime("%Y-%m-%dT%H%M")
    queues = 0
    with running() as systems:
        machine = Machine(systems.pids())
        for system, address in systems.addresses().items():  # the plan's largest case, until JVMs have compiled it
            run_many(address, f"warm-{system}", cases[-1], WARM_S)
            run_many(address, f"warm-{system}", cases[0], WARM_S)
        for case in cases:
            for _ in range(repeat):
                for system, address in systems.addresses().items():
                    queues += 1  # a queue of its own: earlier messages do not count
                    machine.settle()
                    report = machine.measured(run_many, address, f"{name}-{queues}", case, seconds)
                    samples.append({"system": system, **report})
            for system in systems.addresses():
                sys.stdout.write(line(case, system, samples) + "\n")
                sys.stdout.flush()
    write(name, started, samples)


def line(case: Many, system: str, samples: list[dict[str, Any]]) -> str:
    mine = [
        sample
        for sample in samples
        if (sample["system"], sample["clients"], sample["messages"]) == (system, case.clients, case.messages)
    ]
    rate = median(sample["rate"] for sample in mine)
    p50, p99 = (median(sample["latency_us"][key] for sample in mine) for key in ("p50", "p99"))
    foreign = max(sample["foreign_cpu"] for sample in mine)
    figures = f"{rate:9,.0f} msg/s, p50 {p50 / 1000:8.2f} ms, p99 {p99 / 1000:8.2f} ms, {foreign:.0%} used by others"
    return f"{case.words:34} {system:9} {figures}"


def write(name: str, started: str, samples: list[dict[str, Any]]) -> None:
    result = {"command": f"python -m bench.{name} {' '.join(sys.argv[1:])}".strip(), "samples": samples}
    sys.stdout.write(f"{keep(started, name, result)}\n")
