"""`python -m tests.fuzz [--seed N] [--seconds S]` (`make fuzz SEED=N SECONDS=S`): no octets that a peer sends bring a
gateway down, hang it, make it leak, or keep it from serving others.

Three quarters of the time bred cases are done to gateways in a worker's process (`worker.py`), one quarter to a real
gateway over sockets (`sockets.py`). What is found is written to `.cache/fuzz/`, smaller where it can be: put the case
into `tests/fuzz/regressions/` under the next number when it is mended. Exit code 1 where anything was found.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.sockets import fuzz_sockets

FOUND = Path(__file__).resolve().parents[2] / ".cache" / "fuzz"
SOCKETS_PART = 0.25
WARM_PART = 0.3  # of a run, until memory has found its level
LEVEL_BYTES = 24 * 1024 * 1024  # above it, at the end; ten minutes are some fifty thousand gateways
PATIENCE_S = 60.0
DEATHS_MAX = 20


@dataclass(slots=True)
class Run:
    """What workers did, one after another: each goes on where one died."""

    seed: str
    seconds: float
    directory: Path
    wanted: int = 0  # cases; 0: as many as there is time for
    cases: int = 0
    levels: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    directory = FOUND / arguments.seed  # another seed may run beside it
    shutil.rmtree(directory, ignore_errors=True)
    run = fuzz_engine(arguments.seed, arguments.seconds * (1 - SOCKETS_PART), directory)
    print(f"fuzz: {run.cases} cases in process; memory {level(run)}")
    sockets = fuzz_sockets(arguments.seed, arguments.seconds * SOCKETS_PART, directory)
    print(f"fuzz: {sockets.cases} connections over sockets; {sockets.metrics}")
    wrong = run.wrong + sockets.wrong
    for problem in wrong:
        print(f"fuzz: {problem}")
    print(f"fuzz: seed {arguments.seed}: {len(wrong)} found{f', see {directory}' if wrong else ''}")
    return bool(wrong)


def fuzz_engine(seed: str, seconds: float, directory: Path, cases: int = 0) -> Run:
    """Workers until the time is over or so many cases were carried out; what they found, and what they died of."""
    run = Run(seed, seconds, directory, cases)
    for life in range(DEATHS_MAX):
        here = directory / f"life-{life}"
        here.mkdir(parents=True)
        died, spent = _live(run, f"{seed}.{life}", here)
        run.wrong += [f"{path}: {_words(path)}" for path in sorted(here.glob("0*.case"))]
        if not died:
            break
        run.wrong.append(f"{here / 'current.case'}: {died}")
        run.seconds -= spent
    if run.seconds > 30 and (grown := growth(run)) > LEVEL_BYTES:
        run.wrong.append(f"memory grew by {grown / 1e6:.1f} MB after the first {WARM_PART:.0%} of the run")
    if len({sample["fds"] for sample in run.levels[1:]}) > 1:
        run.wrong.append(f"descriptors: {[sample['fds'] for sample in run.levels]}")
    return run


def _live(run: Run, seed: str, here: Path) -> tuple[str, float]:
    """One worker: what it died of, and after how many seconds; nothing where it did its time."""
    command = [sys.executable, "-m", "tests.fuzz.worker", "--seed", seed, "--seconds", str(run.seconds)]
    command += ["--cases", str(run.wanted)]
    with (here / "stderr").open("w") as errors:
        worker = subprocess.Popen([*command, "--found", str(here)], stdout=subprocess.PIPE, stderr=errors, text=True)
    watch = threading.Timer(run.seconds + PATIENCE_S, worker.kill)
    watch.start()
    spoke = 0
    before = run.cases
    assert worker.stdout is not None
    for line in worker.stdout:
        spoke += 1
        run.levels.append(json.loads(line))
        run.cases = before + run.levels[-1]["cases"]
    watch.cancel()
    code = worker.wait()
    worker.stdout.close()
    last = (here / "stderr").read_text()[-3_000:]
    return (f"the worker ended with {code}\n{last}" if code else ""), float(spoke)


def growth(run: Run) -> int:
    """Octets of memory at the end above where it was when warm."""
    warm = run.levels[int(len(run.levels) * WARM_PART) :]
    return max(0, warm[-1]["rss"] - warm[0]["rss"]) if warm else 0


def level(run: Run) -> str:
    sizes = [sample["rss"] / 1e6 for sample in run.levels] or [0.0]
    warm = sizes[int(len(sizes) * WARM_PART)]
    return f"{sizes[0]:.1f} MB at the start, {warm:.1f} when warm, {sizes[-1]:.1f} at the end"


def _words(path: Path) -> str:
    return " / ".join(line[2:] for line in path.read_text().splitlines()[:2])


if __name__ == "__main__":
    raise SystemExit(main())
