"""A gateway whose loop is watched: `python -m bench.reload.probe FILE serve --config CONFIG`.

Every millisecond the loop is asked how late it is, and how much processor time its thread has used since it was asked
last; each step of a reload and each part of an admin page is timed, too. On SIGUSR1 what was seen since the last one is
appended to FILE as a line of JSON. The gateway's own code knows nothing of it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
import time
from bisect import insort
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.admin import pages as station
from gateway.cli.main import main
from gateway.server.server import Server
from gateway.session.gateway import Gateway
from mappings import TableSet

INTERVAL_S = 0.001
KINDS = ("late", "used", "reload_step", "reload_step_used", "page_part", "page_part_used", "collected")
KEPT = 1000  # the latest ones of each kind


class Seen:
    """Durations of one kind, in seconds: the longest `KEPT`, and the sum."""

    def __init__(self) -> None:
        self.count, self.total_s = 0, 0.0
        self.longest: list[float] = []

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total_s += seconds
        if len(self.longest) < KEPT or seconds > self.longest[0]:
            insort(self.longest, seconds)
            del self.longest[:-KEPT]

    def report(self) -> dict[str, float]:
        beyond = max(1, self.count // 1000)
        return {
            "count": self.count,
            "mean_ms": round(1000 * self.total_s / max(1, self.count), 3),
            "p999_ms": round(1000 * self.longest[-beyond], 3) if len(self.longest) >= beyond else 0.0,
            "worst_ms": round(1000 * max(self.longest, default=0.0), 3),
        }


class Probe:
    """See the module's docstring. `late`: wall time, other processes' included; `used`: this thread's own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._collecting_s = 0.0
        self.begin()

    def begin(self) -> None:
        self.seen = {name: Seen() for name in KINDS}

    def tell(self) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({name: seen.report() for name, seen in self.seen.items()}) + "\n")
        self.begin()

    async def watch(self) -> None:
        while True:
            at_s, used_s = time.perf_counter(), time.thread_time()
            await asyncio.sleep(INTERVAL_S)
            self.seen["late"].add(max(0.0, time.perf_counter() - at_s - INTERVAL_S))
            self.seen["used"].add(time.thread_time() - used_s)

    def on_collection(self, phase: str, _: object) -> None:
        """Of garbage: the processor time of one round."""
        if phase == "start":
            self._collecting_s = time.thread_time()
        else:
            self.seen["collected"].add(time.thread_time() - self._collecting_s)

    def stepwise(self, make: Any, kind: str) -> Any:
        """The same steps, each timed."""

        def timed(*arguments: Any) -> Iterator[Any]:
            steps = make(*arguments)
            while True:
                at_s, used_s = time.perf_counter(), time.thread_time()
                step = next(steps, self)
                self.seen[kind].add(time.perf_counter() - at_s)
                self.seen[f"{kind}_used"].add(time.thread_time() - used_s)
                if step is self:
                    return
                yield step

        return timed


def install(probe: Probe) -> None:
    gc.callbacks.append(probe.on_collection)
    begin = Server.open

    async def watched(server: Server) -> Any:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, probe.tell)
        server.watching = loop.create_task(probe.watch())  # type: ignore[attr-defined]
        return await begin(server)

    Server.open = watched  # type: ignore[assignment, method-assign]
    Gateway.use = probe.stepwise(Gateway.use, "reload_step")  # type: ignore[method-assign]
    steps = probe.stepwise(TableSet.read_in_steps, "reload_step")
    TableSet.read_in_steps = staticmethod(steps)  # type: ignore[method-assign]
    station.written = probe.stepwise(station.written, "page_part")  # type: ignore[attr-defined]


if __name__ == "__main__":
    install(Probe(Path(sys.argv.pop(1))))
    main()
