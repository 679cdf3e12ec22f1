"""What a console beside a gateway costs the peers: the 99th percentile of accept, with no console, one that is killed,
one that hangs (SIGSTOP), one that is asked 50 pages a second, and one that is asked and does not give way
(`--keep-priority`).

    python -m bench.console_beside [--repeat 9] [--seconds 4] [--rate 2000] [--record]

One gateway on an embedded realm; the C load client sends at a steady rate and measures from when each message was due.
The five take turns, repeat after repeat, in an order that changes; what counts are medians. `--record` writes
results/DATE-COMMIT-console.json. Errors: `RunFailed`. Required: at most 5 % more than with no console. Where others
use the machine (`foreign_cpu`, the console's own processor time among it) the latency is noise: what the gateway's
process used a message, in processor time, says then what the console costs it. Who asks gives way to gateway and
console: a browser has a machine of its own.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from bench.machine import Machine
from bench.report import keep
from bench.runs import Case, move_in
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.console import ConsoleProcess, start_console
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire.clients import used_s

PAGES = ("/", "/errors", "/links", "/nodes", "/connections", "/durables", "/refusals", "/rules", "/gateways", "/dead")
PAGES_A_SECOND = 50
ASKERS = 10
ALLOWED = 1.05
WARM_S = 3.0
FIGURES = ("p50_us", "p99_us", "cpu_us", "foreign_cpu")
CASES = ("none", "killed", "hung", "asked", "kept")


class Asking:
    """`ASKERS` threads that ask for pages; `count` of answers so far."""

    def __init__(self, console: ConsoleProcess) -> None:
        self._console = console
        self._end = threading.Event()
        self.count = 0
        self._threads = [threading.Thread(target=self._ask, args=(at,), daemon=True) for at in range(ASKERS)]

    def __enter__(self) -> Asking:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, at: int) -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # of this thread
        due = time.monotonic()
        while not self._end.is_set():
            path = PAGES[at % len(PAGES)]
            at += 1
            with suppress(OSError), urllib.request.urlopen(f"{self._console.url}{path}", timeout=HANG_S) as answer:
                answer.read()
                self.count += 1
            due = max(due + ASKERS / PAGES_A_SECOND, time.monotonic() - 1)
            self._end.wait(max(0.0, due - time.monotonic()))


@contextmanager
def beside(case: str, url: str, directory: Path, report: dict[str, Any]) -> Iterator[None]:
    """A console in that state. One that is killed or hangs was looked at until then."""
    if case == "none":
        yield
        return
    console = start_console(directory, "--gateway", url, gives_way=case != "kept")
    try:
        console.until("/", "ready")
        if case in ("asked", "kept"):
            with Asking(console) as asking:
                began = time.monotonic()
                yield
            report["pages_a_second"] = round(asking.count / (time.monotonic() - began), 1)
            return
        console.process.send_signal(signal.SIGKILL if case == "killed" else signal.SIGSTOP)
        yield
    finally:
        if case != "killed":
            console.process.send_signal(signal.SIGCONT)
        console.process.kill()
        console.process.wait()


def load(gateway: GatewayProcess, queue: str, rate: int, seconds: float) -> dict[str, Any]:
    return move_in(gateway.address, queue, Case(100, 1000, int(rate * seconds)), rate)


def measure(repeat: int, rate: int, seconds: float) -> list[dict[str, Any]]:
    samples = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        gateway = start_gateway(directory, embedded_realm(directory), admin={"listen": "http://127.0.0.1:0"})
        try:
            url, machine = Watch.of(gateway).url, Machine([gateway.pid])
            load(gateway, "warm", rate, WARM_S)
            for at in range(repeat):
                for case in CASES[at % len(CASES) :] + CASES[: at % len(CASES)]:
                    sample: dict[str, Any] = {"case": case}
                    with beside(case, url, directory, sample):
                        before_s = used_s(gateway.pid)
                        report = machine.measured(load, gateway, f"q-{at}-{case}", rate, seconds)
                        used_us = (used_s(gateway.pid) - before_s) * 1e6
                    latency = report["latency_us"]
                    sample |= {"p50_us": latency["p50"], "p99_us": latency["p99"]}
                    sample |= {"cpu_us": round(used_us / (rate * seconds), 1), "foreign_cpu": report["foreign_cpu"]}
                    samples.append(sample)
                    sys.stderr.write(f"bench.console_beside: {sample}\n")
        finally:
            gateway.stop()
    return samples


def lines_of(samples: list[dict[str, Any]]) -> list[str]:
    """A line a case."""
    none = median(sample["p99_us"] for sample in samples if sample["case"] == "none")
    lines = []
    for case in CASES:
        mine = [sample for sample in samples if sample["case"] == case]
        p50, p99, cpu, foreign = (median(sample[key] for sample in mine) for key in FIGURES)
        pages = (
            f", {median(turn['pages_a_second'] for turn in mine):.0f} pages a second"
            if case in ("asked", "kept")
            else ""
        )
        met = "" if case == "none" else f", {p99 / none - 1:+.1%}: {'met' if p99 <= none * ALLOWED else 'NOT met'}"
        usage = f"gateway {cpu:.0f} us of processor time a message, {foreign:.0%} used by others"
        lines.append(f"console {case:7} p50 {p50 / 1000:6.2f} ms, p99 {p99 / 1000:7.2f} ms{met}{pages}; {usage}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds: the console and the gateway are stopped
    started = time.strftime("%Y-%m-%dT%H%M")
    samples = measure(arguments.repeat, arguments.rate, arguments.seconds)
    lines = lines_of(samples)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if arguments.record:
        result = {"command": " ".join(sys.argv[1:]), "lines": lines, "samples": samples}
        sys.stdout.write(f"{keep(started, 'console', result)}\n")


if __name__ == "__main__":
    main()
