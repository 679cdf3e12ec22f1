"""How much of the machine other processes used while a run was measured: a ratio taken beside a busy neighbour
proves little.

`foreign_cpu` is the part of all cores, 0 to 1, that neither the measured systems nor the clients used; `core_speed` is
how fast they ran when the machine had settled, of the best of this process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.cores import FULL, Cores
from tests.kit.wire.clients import TICKS_PER_S, used_s

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
IDLE = (3, 4)  # idle and iowait among the columns of /proc/stat


class Machine:
    """Watches the machine for the systems whose processes are `pids`."""

    def __init__(self, pids: list[int]) -> None:
        self.pids = pids
        self.cores = os.cpu_count() or 1
        self._speeds = Cores()
        self._speed: float | None = None  # when it had last settled

    def measured(self, run: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        """What `run(*arguments)` reports, `foreign_cpu` and, where it has ever settled, `core_speed` beside it."""
        begin, all_before, ours_before = time.monotonic(), _busy_s(), self.ours_s()
        report = run(*arguments)
        seconds = time.monotonic() - begin
        foreign_s = (_busy_s() - all_before) - (self.ours_s() - ours_before)
        foreign_cpu = round(max(0.0, foreign_s / (seconds * self.cores)), 3)
        speed = {} if self._speed is None else {"core_speed": self._speed}
        return {**report, "foreign_cpu": foreign_cpu, **speed}

    def settle(self) -> None:
        """What was written is on the disk, and its memory free again: a log of gigabytes fills the page cache, and
        the next measurement would pay for making room in it (as root). And its cores have the speed that they can
        have, if that can be waited for."""
        os.sync()
        if os.geteuid() == 0:
            DROP_CACHES.write_text("1\n")
        self._speed = self._speeds.await_full()

    def is_steady(self) -> bool:
        """Do the cores still run as fast as settling waits for?"""
        os.sync()  # writing is work, too
        return self._speeds.speed() >= FULL

    def ours_s(self) -> float:
        times = os.times()  # the clients are our children
        return times.user + times.system + times.children_user + times.children_system + sum(map(used_s, self.pids))


def _busy_s() -> float:
    columns = [int(column) for column in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks for at, ticks in enumerate(columns) if at not in IDLE) / TICKS_PER_S
