"""How long a gateway process is busy with recording its facts, measured inside it: by the processor time of the thread,
read before and after each statement of `recorded.py`.

What the clock takes is measured at the same moments and subtracted. It says nothing of what recording costs elsewhere:
caches, collected garbage. But it does not depend on how another process fared, so it decides on a busy machine, too.
Errors: `RunFailed`; `RuntimeError` where the process does not answer.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.facts.process import EMPTY, WHOLE
from bench.facts.recorded import FACTS
from bench.facts.turns import ROWS, WARM_TURNS, Loaded, gateway_of
from bench.runs import Case
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch

Spent = dict[str, list[int]]


@dataclass(slots=True)
class Timed:
    """A process that was begun with a file to write to."""

    loaded: Loaded
    path: Path

    def turn(self, row: str, case: Case) -> dict[str, Any]:
        """`us`: of processor time a message, without facts; `facts`: by fact, what it takes beside, in parts of it."""
        before = self._tell()
        used_us = self.loaded.turn(row, case)
        return shares(before, self._tell(), used_us * case.count * 1e3, case.count)

    def measure(self, case: Case, turns: int) -> dict[str, list[dict[str, Any]]]:
        """By row."""
        for row in ROWS * WARM_TURNS:
            self.turn(row, case)
        taken: dict[str, list[dict[str, Any]]] = {row: [] for row in ROWS}
        for _ in range(turns):
            for row in ROWS:
                taken[row].append(self.turn(row, case))
        return taken

    def _tell(self) -> Spent:
        size = self.path.stat().st_size if self.path.exists() else 0
        os.kill(self.loaded.gateway.pid, signal.SIGUSR1)
        end_s = time.monotonic() + HANG_S
        while not self.path.exists() or self.path.stat().st_size == size:
            if time.monotonic() > end_s:
                raise RuntimeError(f"the process does not say what it spent:\n{self.loaded.gateway.log()}")
            time.sleep(0.01)
        spent: Spent = json.loads(self.path.read_text().splitlines()[-1])
        return spent


@contextmanager
def timed(directory: Path) -> Iterator[Timed]:
    """A new process. It is killed at the end: its realm is not needed any more."""
    path = directory / "spent.jsonl"
    gateway = gateway_of(directory, str(path))
    try:
        gateway.start()
        yield Timed(Loaded(gateway, Watch.of(gateway)), path)
    finally:
        gateway.kill()


def whole(turn: dict[str, Any]) -> float:
    """What all facts together take beside the rest, in parts of it."""
    return float(sum(turn["facts"].values()))


def shares(before: Spent, after: Spent, used_ns: float, count: int) -> dict[str, Any]:
    """Of `count` messages, for which the process used so much in all."""
    spent = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after}
    empty_ns, whole_ns = (spent[name][0] / spent[name][1] for name in (EMPTY, WHOLE))
    times = sum(spent[fact][1] for fact in FACTS)
    facts_ns = {fact: spent[fact][0] - spent[fact][1] * empty_ns for fact in FACTS}
    rest_ns = used_ns - sum(facts_ns.values()) - times * whole_ns
    return {
        "us": round(rest_ns / count / 1e3, 3),
        "facts": {fact: round(facts_ns[fact] / rest_ns, 6) for fact in FACTS},
        "times": round(times / count, 5),
        "clock_ns": round(whole_ns),
    }
