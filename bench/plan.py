"""The plan of a whole run: warm up, then alternate between the systems, row by row; medians are taken later.

Samples are kept whole: `{"row": ..., "system": ..., "size": ..., "in_flight": ..., "samples": [...]}`.
Progress goes to stderr.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.machine import Machine
from bench.runs import Case, RunFailed, move_both, move_in, move_out, produce
from bench.systems import Systems

AGREE = 0.05  # two warm-up runs that differ by no more than this are warm
WARM_UP_MAX = {"kafka": 16, "artemis": 16, "embedded": 4}  # runs; where there is no JVM, nothing compiles itself
PACED_SECONDS = 5.0
MEMORY_MESSAGES = 10_000_000
MEMORY_ROUND = 500_000
RETAKEN_MAX = 40  # samples, in all

Key = tuple[str, str, int, int]
Taken = tuple[str, dict[str, Any]]  # row, report


@dataclass(slots=True)
class Plan:
    """`repeat` samples of each row for each case."""

    systems: Systems
    cases: list[Case]
    repeat: int
    samples: dict[Key, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    retaken: list[str] = field(default_factory=list)  # samples that were thrown away
    warm_up: dict[str, list[float]] = field(default_factory=dict)
    queues: int = 0
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        self.machine = Machine(self.systems.pids())

    def run(self) -> None:
        for size in sorted({case.size for case in self.cases}):
            for system, address in self.systems.addresses().items():
                self._warm(system, address, size)
        for case in self.cases:
            for turn in range(self.repeat):
                say(f"{case.size} B, {case.in_flight} in flight: {turn + 1} of {self.repeat}")
                self._producer(case)
                for system, address in self.systems.addresses().items():
                    self._one(system, address, case)
        for size in sorted({case.size for case in self.cases}):
            for system, address in self.systems.addresses().items():
                self._paced(system, address, size)

    def memory(self) -> dict[str, Any]:
        """The gateway's resident memory on the Kafka realm while ten million messages go through it."""
        case = Case(100, 1000, MEMORY_ROUND)
        gateway = self.systems.kafka
        points = [{"messages": 0, "rss_bytes": gateway.rss_bytes()}]
        for at in range(MEMORY_ROUND, MEMORY_MESSAGES + 1, MEMORY_ROUND):
            move_both(gateway.address, "memory", case)
            points.append({"messages": at, "rss_bytes": gateway.rss_bytes()})
            say(f"memory: {at:,} messages, {points[-1]['rss_bytes'] / 1e6:.1f} MB")
        return {"points": points}

    def _warm(self, system: str, address: str, size: int) -> None:
        """In, out and both until two successive runs agree in each: a JVM goes on compiling for millions of messages,
        and anew for another size."""
        case, queue = Case(size, 1000, 200_000), f"warm-{system}-{size}"
        rates: list[tuple[float, ...]] = []
        for _ in range(WARM_UP_MAX[system]):
            rates.append(tuple(move(address, queue, case)["rate"] for move in (move_in, move_out, move_both)))
            say(f"warm-up {system}, {size} B: in, out, both {', '.join(f'{rate:,.0f}' for rate in rates[-1])} msg/s")
            if len(rates) > 2 and all(abs(a - b) <= AGREE * b for a, b in zip(rates[-2], rates[-1], strict=True)):
                break
        self.warm_up[f"{system}, {size} B"] = [rate for turn in rates for rate in turn]

    def _producer(self, case: Case) -> None:
        if case.in_flight == 1000:  # it has no window: once a size is enough

            def take(_: str) -> Iterator[Taken]:
                yield "in", self.machine.measured(produce, self.systems.broker.bootstrap, "bare", case)

            self.keep("producer", case, take)

    def _one(self, system: str, address: str, case: Case) -> None:
        def take(queue: str) -> Iterator[Taken]:
            yield "in", self.machine.measured(move_in, address, queue, case)
            yield "out", self.machine.measured(move_out, address, queue, case)
            yield "both", self.machine.measured(move_both, address, queue, case)

        self.keep(system, case, take)

    def _paced(self, system: str, address: str, size: int) -> None:
        """Latency of the accept at half the system's own top rate, from when each message was due."""
        tops = [sample["rate"] for sample in self.samples[("in", system, size, 1000)]]
        if not tops:
            return
        rate = median(tops) / 2
        case = Case(size, 1000, int(rate * PACED_SECONDS))

        def take(queue: str) -> Iterator[Taken]:
            yield "accept", self.machine.measured(move_in, address, queue, case, rate)
            move_out(address, queue, case)

        for _ in range(self.repeat):
            self.keep(system, case, take)

    def keep(self, system: str, case: Case, take: Callable[[str], Iterator[Taken]]) -> None:
        """Keep what is taken from a queue of its own (what a failed run left behind has no effect), on a machine that
        has settled (no run pays for the log of another). What was taken while the cores slowed down is taken again."""
        while True:
            self.queues += 1
            self.machine.settle()
            taken: list[Taken] = []
            try:
                for row, report in take(f"bench-{self.queues}"):
                    taken.append((row, report))
                    say(f"  {line_of(row, system, report)}")
            except RunFailed as failure:
                self.failures.append(f"{system}, {case.size} B, {case.in_flight} in flight: {failure}")
                say(f"FAILED: {self.failures[-1]}")
                break
            if self.machine.is_steady() or len(self.retaken) >= RETAKEN_MAX:
                break
            self.retaken.extend(line_of(row, system, report) for row, report in taken)
            say("  the cores have slowed down meanwhile: once more")
        for row, report in taken:
            self.samples[(row, system, case.size, case.in_flight)].append(report)


def line_of(row: str, system: str, report: dict[str, Any]) -> str:
    what = f"p99 {report['latency_us']['p99']:,} us at " if row == "accept" else ""
    return f"{row:6} {system:8} {what}{report['rate']:>10,.0f} msg/s, {report['foreign_cpu']:.0%} used by others"


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
