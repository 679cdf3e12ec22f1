"""One tier of the suite, room by room, in six lanes at once: `make test` runs the gate so, `make test-long` the rest.

    python -m tests.lanes gate|long|all

Most of the suite waits: for a broker, a JVM, a second that has to pass. So five lanes take room after room of it, the
long ones first. The rooms in `QUIET` wait for nothing: they have no process, no port and no clock but a simulated one.
A sixth lane runs them when what the tests need is there (`tests/ready.py`); `interop` waits for that.
`tests/test_tidy.py` is left out: `make check` has just run it.

A lane that finds no more of its own takes of the other ones. Of the rooms with a Spark only some run at once
(`tests/waiting.py`).

Each room is a pytest of its own; what it prints is shown when it ends. The rooms of a lane share one broker, which the
first of them starts that asks for one (`tests/conftest.py`). A test that failed runs once more, alone, when all lanes
have ended (`tests/verdict.py`). The last line counts all tests and ends with GREEN or RED; the exit code is 0 or 1.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tests.ready import STEPS, prepare
from tests.record import Record, read
from tests.tiers import LONG
from tests.verdict import Room, Verdict, duration, note_unsteady
from tests.waiting import Waiting

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache"
QUIET = ("mappings", "simulation", "transformers")
SPLIT = ("gateway", "wire")  # too long for one lane: their folders are rooms
SPLIT_LONG = ("contract", "reconciliation", "reconciliation/cli", "reconciliation/read")  # also in the long tier
HEAVY = ("tests/reconciliation",)  # a Spark each
FIRST = (
    *("reconciliation/variants", "reconciliation/cli/test_cluster.py", "reconciliation/read/test_increments.py"),
    *("contract/subscriptions", "contract/journal", "reconciliation/cli/test_every.py", "reconciliation/jobs"),
    *("reconciliation/read/test_sums_at_random.py", "reconciliation/read/test_cut_evidence.py"),
    *("contract/nodes", "contract/recovery", "contract/dispatch", "reconciliation/what_if"),
    *("contract", "reconciliation", "gateway/cli", "wire/um", "gateway/admin", "wire/deliveries", "native_backend"),
    *("wire/attach", "gateway/serve", "console", "wire/amqp", "gateway/server", "wire/connections"),
    *("wire/test_every_rule.py", "gateway/test_broken_node.py", "test_lanes.py", "gateway/reload", "test_layers.py"),
    *("test_tiers.py", "bench", "deploy"),
)  # the long ones: what begins late must be short
BUILT = "interop"  # its clients are built beside the first rooms
TIERS = {"gate": ("-m", "not long"), "long": ("-m", "long"), "all": ()}
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.record", "--color=no")
LANES = 5  # on two cores: most of the time each waits, and what runs beside them takes less of the cores
PORTS_FROM, PORTS = 10_000, 3_700  # of the first lane, and how many a lane has
STOP_KAFKA = HERE.parent / "deploy" / "kafka" / "stop.sh"
BROKERS = "brokers"
MEMORY, MEMORY_LEAST = Path("/dev/shm"), 12 << 30  # all at once take up to 1 GB there, and 8 GB as processes
SILENCE_S = 1800.0  # a hang limit: some fixture waits for ever, and no alarm of a test looks at fixtures
PROGRESS_S = 30.0


def in_memory() -> Path | None:
    """Where what tests write is kept, if `TMPDIR` does not say it: in memory where that has room. A disk that others
    write to may take ten seconds for a write, in which gateways refuse what tests ask. None: where it is usual."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < MEMORY_LEAST:
        return None
    free_kb = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return MEMORY if free_kb is not None and int(free_kb[1]) << 10 >= MEMORY_LEAST else None


def rooms(tier: str) -> tuple[list[str], list[str]]:
    """Those with tests of the tier: first those that wait, in the order in which they begin, then the quiet ones."""
    split = (*SPLIT, *(SPLIT_LONG if tier == "long" else ()))
    paths = [path for folder in (HERE, *(HERE / name for name in split)) for path in folder.iterdir()]
    with_tests = [path for path in paths if path.match("test_*.py") or next(path.rglob("test_*.py"), None)]
    names = sorted({path.relative_to(HERE).as_posix() for path in with_tests} - {*split, "test_tidy.py"})
    if tier == "long":
        written = [begin for pattern in LONG for begin in _beginnings(pattern.replace("\\", ""))]
        names = [name for name in names if any(f"{prefix}:".startswith((f"{name}/", f"{name}:")) for prefix in written)]
    order = (*FIRST, BUILT)
    waiting = [name for name in names if name not in QUIET]
    waiting.sort(key=lambda name: order.index(name) if name in order else len(order))
    return [f"tests/{name}" for name in waiting], [f"tests/{name}" for name in names if name in QUIET]


def _beginnings(pattern: str) -> list[str]:
    """`a/(b|c/).*` says a/b.* and a/c/.*: a room is looked for by its name."""
    match = re.fullmatch(r"([\w/]*)(?:\(([\w./:|]+)\))?(.*)", pattern)
    assert match is not None, pattern
    head, either, rest = match.groups("")
    return [head + branch + rest for branch in either.split("|")]


@dataclass(slots=True)
class Look:
    """How each pytest of a run is started. `records`: the folder for what they do and print."""

    records: Path
    command: Sequence[str] = PYTEST
    hang_s: float = SILENCE_S
    scratch: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="lanes-", dir=in_memory())))
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def at(self, room: str, *, lane: int = 0, only: Sequence[str] = ()) -> Room:
        """Run a room, or `only` these tests of it, to its end; with the ports of a lane, and with its broker. What runs
        again has a broker of its own: the lane's could be what was wrong."""
        (self.scratch / BROKERS).mkdir(parents=True, exist_ok=True)
        name = room.strip("/").replace("/", "-") + ("-again" if only else "")
        record, printed = self.records / f"{name}.jsonl", self.records / f"{name}.log"
        ports = {"PORTS_FROM": str(PORTS_FROM + lane * PORTS), "PORTS": str(PORTS)}
        environment = {**os.environ, **ports, "RECORD": str(record), "PYTHONPYCACHEPREFIX": str(CACHE / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each room would compile all that it imports
        environment["TMPDIR"] = str(self.scratch)
        environment["KAFKA_OF_LANE"] = str(self.scratch / BROKERS / str(lane))
        if only:
            del environment["KAFKA_OF_LANE"]
            wanted = self.records / f"{name}.json"
            wanted.write_text(json.dumps(list(only)))
            environment["ONLY"] = str(wanted)
        began = time.monotonic()
        with printed.open("w") as output:  # not a pipe: what a test leaves running would keep that open
            process = subprocess.Popen(
                [*self.command, room],
                cwd=HERE.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Linux divides processors among sessions, and what else runs is one, too
            )
            self._running.append(process)
            code = self.ended(process, record)
        return Room(room, code, time.monotonic() - began, read(record), printed.read_text(errors="replace"))

    def ended(self, process: subprocess.Popen[bytes], record: Path) -> int | None:
        """Its exit code; None: no test of it has begun or ended for `hang_s`, and it was killed. A room that goes on
        hangs never, however slow the machine is."""
        written, since = -1, time.monotonic()
        while time.monotonic() - since < self.hang_s:
            try:
                return process.wait(min(30.0, self.hang_s))
            except subprocess.TimeoutExpired:
                if (size := record.stat().st_size if record.exists() else 0) != written:
                    written, since = size, time.monotonic()
        end(process)
        return None

    def so_far(self) -> list[Record]:
        """What the pytests of the first look have done until now."""
        return [read(path) for path in sorted(self.records.glob("*.jsonl"))]

    def break_off(self) -> None:
        """End what is under way, in order: a pytest that is interrupted stops what its fixtures have started."""
        for process in self._running:
            end(process, signal.SIGINT)

    def stop_brokers(self) -> None:
        """Those that the rooms have left running for the next ones of their lane."""
        for directory in (self.scratch / BROKERS).glob("*"):
            subprocess.run([STOP_KAFKA], env={**os.environ, "KAFKA_DIR": str(directory)}, check=False)
        shutil.rmtree(self.scratch / BROKERS, ignore_errors=True)


def end(process: subprocess.Popen[bytes], sign: int = signal.SIGKILL) -> None:
    """End a process with all of its group. It is no error that it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, sign)
        process.wait()


class Ready(threading.Event):
    """Set when what the tests need was made. `problems`: what could not be."""

    def __init__(self, steps: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._steps = steps
        self.problems: list[str] = []

    def make(self) -> None:
        try:
            self.problems = prepare(self._steps, say)
        finally:
            self.set()


class Lane(threading.Thread):
    """Takes rooms until there are none left, those that wait first. `done`: those that it ran. `running`: the one
    under way."""

    def __init__(self, waiting: Waiting, quiet: Waiting, look: Look, ready: Ready, number: int) -> None:
        super().__init__(daemon=True)
        self._waiting, self._quiet, self._look, self._ready, self._number = waiting, quiet, look, ready, number
        self.done: list[Room] = []
        self.running = ""

    def run(self) -> None:
        self._take(self._waiting)
        self._take(self._quiet)

    def _take(self, rooms: Waiting) -> None:
        while path := rooms.take():
            self.running = path
            try:
                self._run(path)
            finally:
                self.running = ""
                rooms.done(path)

    def _run(self, path: str) -> None:
        if path == f"tests/{BUILT}":
            self._ready.wait()
            if self._ready.problems:
                return  # said as what it is, not as a failure of each test
        room = self._look.at(path, lane=self._number)
        self.done.append(room)
        say(f"{room.path}: {room.ending}, {room.seconds:.0f} s\n{room.printed}")


class QuietLane(Lane):
    """First makes ready what the others' tests need, then takes the quiet rooms, then of those that wait."""

    def run(self) -> None:
        self.running = "tests.ready"
        self._ready.make()
        self._take(self._quiet)
        self._take(self._waiting)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Progress:
    """A line every `PROGRESS_S`: what is done, runs and failed; and the highest load that was seen."""

    def __init__(self, lanes: Sequence[Lane], look: Look, count: int) -> None:
        self._lanes, self._look, self._count = lanes, look, count
        self._began = time.monotonic()
        self._last = look.records.with_name(f"last-{look.records.name}.json")
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
        self._last.write_text(json.dumps({"seconds": round(self.seconds)}))


def run(
    waiting: Sequence[str], quiet: Sequence[str], look: Look, steps: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Verdict:
    """Both looks, `steps` (`tests.ready`) beside the first. A run that is broken off ends what is under way."""
    rooms, ready = (Waiting(waiting, HEAVY), Waiting(quiet)), Ready(steps)
    lanes = [Lane(*rooms, look, ready, number) for number in range(LANES)]
    lanes.append(QuietLane(*rooms, look, ready, LANES))
    progress = Progress(lanes, look, len(waiting) + len(quiet))
    try:
        for lane in lanes:
            lane.start()
        progress.watch()
        look.stop_brokers()
        done = [room for lane in lanes for room in lane.done]
        missing = {*waiting, *quiet} - {room.path for room in done}
        verdict = Verdict(
            done,
            [
                *(f"ready: {problem}" for problem in ready.problems),
                *(f"{room} did not run" for room in sorted(missing)),
            ],
        )
        for path, tests in verdict.to_look_at_again().items():
            say(f"a second look, alone: {' '.join(tests)}")
            verdict.look_again(look.at(path, only=tests))
    finally:
        for queue in rooms:
            queue.clear()
        look.break_off()
        look.stop_brokers()
        shutil.rmtree(look.scratch, ignore_errors=True)
    verdict.seconds, verdict.load = progress.seconds, progress.load
    if verdict.is_green:
        progress.keep()
    return verdict


def main(tier: str) -> int:
    waiting, quiet = rooms(tier)
    records = CACHE / "record" / tier
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
    say(f"{tier}, {LANES} lanes: {' '.join(waiting)}; beside them: {' '.join(quiet)}")
    verdict = run(waiting, quiet, Look(records, (*PYTEST, *TIERS[tier])), STEPS[tier])
    note_unsteady(verdict, CACHE / "unsteady.jsonl")
    say(verdict.text())
    return 0 if verdict.is_green else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
