"""Two gateway processes that are loaded in turns, one that records its facts and one that does not: processor time of
all their threads, microseconds a message.

Both are up at the same time, each on an embedded realm of its own. A turn moves `case.count` messages in, out or both;
which process is first changes from pair to pair. Two processes of one program differ, too, by where their memory
happens to lie. So there are many couples, and each is one value of the result.
Errors: `RunFailed`; `RuntimeError` where a process records what it should not; `AssertionError` where one does not
record what it should.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.runs import Case, move_both, move_in, move_out
from tests.kit.processes.admin_pages import Samples, Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway

ROWS: Final = ("in", "out", "both")
WARM_TURNS: Final = 2
LEFT_S: Final = 0.03
"""What a turn leaves to do belongs to it: outcome records are written some milliseconds later."""
_MOVES: Final = {"in": move_in, "out": move_out, "both": move_both}
QUEUE: Final = "facts"
Pairs = dict[str, list[tuple[float, float]]]  # by row: with facts, without


@dataclass(slots=True)
class Loaded:
    """One of the two. `moved`: messages that went in, and out, so far."""

    gateway: GatewayProcess
    watch: Watch
    moved: int = field(default=0)

    def turn(self, row: str, case: Case) -> float:
        """Microseconds of processor time a message."""
        self.moved += case.count if row in ("in", "both") else 0
        return turn_us(self.gateway, row, case)


@dataclass(slots=True)
class Couple:
    """`facts`: those that `without` does not record; empty: it records all, as the other one does."""

    recording: Loaded
    without: Loaded
    facts: tuple[str, ...]

    def measure(self, case: Case, pairs: int) -> Pairs:
        for _ in range(WARM_TURNS):
            for row in ROWS:
                self._pair(row, case, 0)
        taken: Pairs = {row: [] for row in ROWS}
        for at in range(pairs):
            for row in ROWS:
                taken[row].append(self._pair(row, case, at))
        self.check()
        return taken

    def _pair(self, row: str, case: Case, at: int) -> tuple[float, float]:
        if at % 2:
            without = self.without.turn(row, case)
            return self.recording.turn(row, case), without
        return self.recording.turn(row, case), self.without.turn(row, case)

    def check(self) -> None:
        """Does each of them record what it should? Raises RuntimeError."""
        recording, without = self.recording, self.without
        expected = {"counters": 2 * recording.moved, "durations": 2 * recording.moved, "depths": 1}
        recording.watch.until(lambda: counted(recording.watch.metrics()) == expected)
        shown = counted(without.watch.metrics())
        for fact, count in expected.items():
            if shown[fact] != (0 if fact in self.facts else count):
                raise RuntimeError(
                    f"{fact}: {shown[fact]:.0f} are recorded without {', '.join(self.facts) or 'nothing'}"
                )


def counted(samples: Samples) -> dict[str, float]:
    """What a gateway shows of facts that messages leave behind."""
    sums = {"counters": 0.0, "durations": 0.0, "depths": 0.0}
    for (name, labels), number in samples.items():
        if name == "realmgate_deliveries_total":
            sums["counters"] += number
        elif name in ("realmgate_accept_seconds_count", "realmgate_settle_seconds_count"):
            sums["durations"] += number
        elif name == "realmgate_node_events" and QUEUE in labels:
            sums["depths"] += 1
    return sums


def turn_us(gateway: GatewayProcess, row: str, case: Case) -> float:
    """Move so many messages in, out or both: microseconds of the gateway's processor time a message."""
    before_s = processor_s(gateway.pid)
    _MOVES[row](gateway.address, QUEUE, case)
    time.sleep(LEFT_S)
    return (processor_s(gateway.pid) - before_s) * 1e6 / case.count


def processor_s(pid: int) -> float:
    """Of a whole process so far, to the nanosecond: `clock_getcpuclockid(3)`, whose answer Linux makes so."""
    return time.clock_gettime((~pid << 3) | 2)


@contextmanager
def couple(directory: Path, facts: tuple[str, ...], at: int) -> Iterator[Couple]:
    """Two new processes; which of them starts first changes with `at`. They are killed at the end: their realms are
    not needed any more."""
    recording, without = (
        gateway_of(directory / name, words) for name, words in (("a", "none"), ("b", ",".join(facts) or "none"))
    )
    try:
        for gateway in (without, recording) if at % 2 else (recording, without):
            gateway.start()
        yield Couple(Loaded(recording, Watch.of(recording)), Loaded(without, Watch.of(without)), facts)
    finally:
        recording.kill()
        without.kill()


def gateway_of(directory: Path, words: str) -> GatewayProcess:
    """One that is not started. `words`: what `bench.facts.process` is to do."""
    settings: dict[str, Any] = {"admin": {"listen": "http://127.0.0.1:0"}}
    gateway = make_gateway(directory, embedded_realm(directory), **settings)
    gateway.program = [sys.executable, "-m", "bench.facts.process", words]
    return gateway


def difference(pairs: list[tuple[float, float]]) -> float:
    """By how much facts cost more, in parts of what it costs without them: the median of the pairs."""
    return median(recording / without for recording, without in pairs) - 1
