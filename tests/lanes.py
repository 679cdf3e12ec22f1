"""The whole suite, room by room, in three lanes at once: `make test` runs it so.

Most of the suite waits: for a broker, a JVM, a second that has to pass. So two lanes take room after room of it, the
long ones first. The rooms in `QUIET` wait for nothing: they have no process, no port and no clock but a simulated one.
They run beside the others, niced, on what those leave of the machine. `tests/test_tidy.py` is left out: `make check`
has just run it.

Each room is a pytest of its own, with a broker of its own where it asks for one; what it prints is shown when it ends.
A test that failed runs once more, alone, when all lanes have ended (`tests/verdict.py`). The last line counts all
tests and ends with GREEN or RED; the exit code is 0 or 1. May import: the standard library, `tests`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.record import Record, read
from tests.verdict import Room, Verdict, duration, note_unsteady

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache"
QUIET = ("mappings", "simulation", "transformers")
LONG = ("interop", "contract", "native_backend", "gateway", "reconciliation", "wire", "torture")  # the longest first
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.record", "--color=no")
BESIDE = ("nice", "-n", "15")
ROOM_HANG_S = 2700.0  # a hang limit: some fixture waits for ever, and no alarm of a test looks at fixtures
PROGRESS_S = 30.0


def rooms() -> tuple[list[str], list[str]]:
    """Those that wait, long ones first, and those that do not: all that has tests is in one of them."""
    found = sorted(room.name for room in HERE.iterdir() if next(room.rglob("test_*.py"), None))
    files = sorted(file.name for file in HERE.glob("test_*.py") if file.name != "test_tidy.py")
    waiting = [each for each in found + files if each not in QUIET]
    waiting.sort(key=lambda each: LONG.index(each) if each in LONG else len(LONG))
    return [f"tests/{each}" for each in waiting], [f"tests/{room}" for room in QUIET]


@dataclass(slots=True)
class Look:
    """How each pytest of a run is started. `records`: the folder for what they do and print."""

    records: Path
    command: Sequence[str] = PYTEST
    hang_s: float = ROOM_HANG_S
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def at(self, room: str, *, niced: bool = False, only: Sequence[str] = ()) -> Room:
        """Run a room, or `only` these tests of it, to its end."""
        name = room.strip("/").replace("/", "-") + ("-again" if only else "")
        record, printed = self.records / f"{name}.jsonl", self.records / f"{name}.log"
        environment = {**os.environ, "RECORD": str(record)}
        if only:
            wanted = self.records / f"{name}.json"
            wanted.write_text(json.dumps(list(only)))
            environment["ONLY"] = str(wanted)
        began = time.monotonic()
        with printed.open("w") as output:  # not a pipe: what a test leaves running would keep that open
            process = subprocess.Popen(
                [*(BESIDE if niced else ()), *self.command, room],
                cwd=HERE.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            self._running.append(process)
            try:
                code: int | None = process.wait(self.hang_s)
            except subprocess.TimeoutExpired:
                code = None
                end(process)
        return Room(room, code, time.monotonic() - began, read(record), printed.read_text(errors="replace"))

    def so_far(self) -> list[Record]:
        """What the pytests of the first look have done until now."""
        return [read(path) for path in sorted(self.records.glob("*.jsonl"))]

    def break_off(self) -> None:
        """End what is under way, in order: a pytest that is interrupted stops what its fixtures have started."""
        for process in self._running:
            end(process, signal.SIGINT)


def end(process: subprocess.Popen[bytes], sign: int = signal.SIGKILL) -> None:
    """End a process with all of its group. It is no error that it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, sign)
        process.wait()


class Lane(threading.Thread):
    """Takes rooms until there are none left. `done`: those that it ran. `running`: the one under way."""

    def __init__(self, waiting: deque[str], look: Look, *, niced: bool = False) -> None:
        super().__init__(daemon=True)
        self._waiting, self._look, self._niced = waiting, look, niced
        self.done: list[Room] = []
        self.running = ""

    def run(self) -> None:
        while True:
            try:
                self.running = self._waiting.popleft()
            except IndexError:
                self.running = ""
                return
            room = self._look.at(self.running, niced=self._niced)
            self.done.append(room)
            say(f"{room.path}: {room.ending}, {room.seconds:.0f} s\n{room.printed}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Progress:
    """A line every `PROGRESS_S`: what is done, runs and failed; and the highest load that was seen."""

    def __init__(self, lanes: Sequence[Lane], look: Look, count: int) -> None:
        self._lanes, self._look, self._count = lanes, look, count
        self._began = time.monotonic()
        self._last = CACHE / "last-run.json"
        self.load = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def watch(self) -> None:
        """Until all lanes have ended."""
        next_at = PROGRESS_S
        while any(lane.is_alive() for lane in self._lanes):
            for lane in self._lanes:
                lane.join(1.0)
            self.load = max(self.load, os.getloadavg()[0])
            if self.seconds >= next_at:
                next_at += PROGRESS_S
                say(self.line())

    def line(self) -> str:
        records = self._look.so_far()
        tests = sum(len(record.ended) for record in records)
        failed = [test for record in records for test in record.failed]
        running = " ".join(lane.running for lane in self._lanes if lane.running)
        done = sum(len(lane.done) for lane in self._lanes)
        return (
            f"-- {duration(self.seconds)}{self._last_run()}: {done} of {self._count} rooms done, {tests:,} tests, "
            f"{len(failed)} failed{': ' if failed else ''}{' '.join(failed[:3])}; running: {running or 'nothing'}"
        )

    def _last_run(self) -> str:
        try:
            return f" of {duration(json.loads(self._last.read_text())['seconds'])} the last time"
        except (OSError, ValueError, KeyError):
            return ""

    def keep(self) -> None:
        self._last.parent.mkdir(parents=True, exist_ok=True)
        self._last.write_text(json.dumps({"seconds": round(self.seconds)}))


def run(waiting: Sequence[str], quiet: Sequence[str], look: Look) -> Verdict:
    """Both looks. A run that is broken off ends what is under way."""
    shared = deque(waiting)
    lanes = [Lane(shared, look), Lane(shared, look), Lane(deque(quiet), look, niced=True)]
    progress = Progress(lanes, look, len(waiting) + len(quiet))
    try:
        for lane in lanes:
            lane.start()
        progress.watch()
        done = [room for lane in lanes for room in lane.done]
        missing = {*waiting, *quiet} - {room.path for room in done}
        verdict = Verdict(done, sorted(missing))
        for path, tests in verdict.to_look_at_again().items():
            say(f"a second look, alone: {' '.join(tests)}")
            verdict.look_again(look.at(path, only=tests))
    finally:
        shared.clear()
        look.break_off()
    verdict.seconds, verdict.load = progress.seconds, progress.load
    if verdict.is_green:
        progress.keep()
    return verdict


def main() -> int:
    waiting, quiet = rooms()
    records = CACHE / "record"
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
    say(f"two lanes: {' '.join(waiting)}; beside them: {' '.join(quiet)}")
    verdict = run(waiting, quiet, Look(records))
    note_unsteady(verdict, CACHE / "unsteady.jsonl")
    say(verdict.text())
    return 0 if verdict.is_green else 1


if __name__ == "__main__":
    sys.exit(main())
