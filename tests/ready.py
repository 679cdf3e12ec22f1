"""What the tests of a tier need beside `.venv`: Kafka, Spark's connector, Artemis, the foreign clients.

    python -m tests.ready gate|long|all     makes them, and prints the seconds of each

`tests/lanes.py` makes them beside the first rooms, so that no test pays for a download or a build, and a registry that
does not answer is named as that. Each step has a hang limit and is tried twice. A step that fails is one line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
STEP_HANG_S = 600.0
TRIES = 2
_CLIENT = (sys.executable, "-m", "tests.interop.clients")
GATE: dict[str, Sequence[str]] = {
    "Kafka": (str(ROOT / "deploy" / "kafka" / "classes.sh"),),
    "Qpid JMS": (*_CLIENT, "jms"),
    "rhea": (*_CLIENT, "rhea"),
    "Spark's connector": (sys.executable, "-m", "reconciliation", "--fetch-jars"),
}
LONG: dict[str, Sequence[str]] = {
    "Kafka": GATE["Kafka"],
    "the C load client": (*_CLIENT, "load"),
    "Qpid JMS": GATE["Qpid JMS"],
    "rhea": GATE["rhea"],
    "go-amqp": (*_CLIENT, "go"),
    "Spring JMS": (*_CLIENT, "spring"),
    "Artemis": (str(ROOT / "tests" / "kit" / "artemis" / "libs.sh"),),
    "Spark's connector": GATE["Spark's connector"],
    "fe2o3-amqp": (*_CLIENT, "rust"),
    "helm": (sys.executable, "-m", "tests.deploy.helm.tools"),
    "the browser's driver": (sys.executable, "-m", "tests.kit.chromium"),
}
BESIDE = ("nice", "-n", "5")  # a third of another's share; with 15 and foreign load it takes nothing any more
STEPS = {"gate": GATE, "long": LONG, "all": LONG}


def prepare(steps: Mapping[str, Sequence[str]], say: Callable[[str], object]) -> list[str]:
    """Make everything that is missing. Returns what could not be made, and why."""
    problems = []
    for name, command in steps.items():
        began = time.monotonic()
        errors = list(_tries(command))
        problem = f"{name}: {errors[-1]}" if len(errors) == TRIES else ""
        say(f"ready: {problem or name}, {time.monotonic() - began:.0f} s")
        problems += [problem] if problem else []
    return problems


def _tries(command: Sequence[str]) -> Iterator[str]:
    """The error of each try; none of one that goes well."""
    for _ in range(TRIES):
        error = _error_of(command)
        if not error:
            return
        yield error


def _error_of(command: Sequence[str]) -> str:
    process = subprocess.Popen(
        [*BESIDE, *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
        text=True,
    )
    try:
        printed, _ = process.communicate(timeout=STEP_HANG_S)
    except subprocess.TimeoutExpired:
        return f"did not end in {STEP_HANG_S:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    last = printed.strip().splitlines()[-1:]
    return f"ended with {process.returncode}: {' '.join(last)}" if process.returncode else ""


def main(tier: str) -> int:
    return 1 if prepare(STEPS[tier], print) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
