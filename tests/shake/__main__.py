"""The tests that broke on busy machines, again and again, under what broke them: `make shake`.

    python -m tests.shake [--rounds 20] [--only U3]

Each line of `SHAKES` has the name that the list of unsteady tests gave it. One broker serves all rounds of a line, is
stopped for moments where the line says so, and is started anew for the next. Exit code 1: a test failed; its output is
printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.kit.processes.broker import start_broker
from tests.shake.stalls import busy, stalls

ROOT = Path(__file__).parent.parent.parent
CORES = os.cpu_count() or 1
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no")


@dataclass(frozen=True, slots=True)
class Shake:
    """`stall_s`: the broker stands still for so long, at least and at most. `is_fenced`: its controller fences it after
    2 s. `loops`: busy processes beside, on each core. `times`: as often as the rounds that are asked for."""

    name: str
    tests: Sequence[str]
    stall_s: tuple[float, float] | None = None
    is_fenced: bool = False
    loops: int = 0
    times: int = 1
    examples: str = "gate"


CONTRACT = "tests/contract"
EXPIRY = f"{CONTRACT}/dispatch/test_expiry.py"
RECOVERY = f"{CONTRACT}/recovery/test_recovery.py"
SHAKES = (
    Shake("U1", [f"{CONTRACT}/log/test_log.py::test_appends_go_into_a_topic_that_was_made_again[kafka]"], times=3),
    Shake("U2", ["tests/native_backend/state/test_ack_state.py"], loops=2, examples="others"),
    Shake("U3", [f"{EXPIRY}::test_a_time_to_live_is_set_while_consumers_are_there[kafka-on-2]"], (0.5, 1.0)),
    Shake(
        "U4",
        [
            f"{RECOVERY}::test_a_kill_loses_nothing_and_repeats_nothing_that_was_answered[kafka-0-on-2]",
            f"{EXPIRY}::test_what_expired_is_a_dead_letter_and_does_not_come_back[kafka-on-2]",
        ],
        (0.5, 1.2),
    ),
    Shake("U5", [f"{EXPIRY}::test_a_returned_event_expires_too[kafka-on-2]"], (0.3, 0.8)),
    Shake("U6", [f"{CONTRACT}/test_realm.py", "-k", "durable_survives and kafka and on-1"], (2.0, 3.0), is_fenced=True),
    Shake("U7", [f"{CONTRACT}/nodes/test_partitions.py::test_the_highest_level_goes_first[kafka]"], loops=4),
    Shake("U8", ["tests/interop/test_cli_proton.py", "-k", "browses and kafka"], loops=2),
)


def shake(line: Shake, rounds: int, directory: Path) -> list[str]:
    """What failed: a text for each."""
    broker = start_broker(directory / line.name, is_killed=line.is_fenced)
    environment = {**os.environ, "KAFKA_BOOTSTRAP": broker.bootstrap, "EXAMPLES": line.examples}
    failed = []
    try:
        with ExitStack() as stack:
            stack.enter_context(busy(line.loops * CORES))
            if line.stall_s is not None:
                stack.enter_context(stalls(broker.pid, line.stall_s, seed=rounds))
            for number in range(rounds * line.times):
                done = subprocess.run(
                    [*PYTEST, *line.tests], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    failed.append(f"{line.name}, round {number}, exit {done.returncode}:\n{done.stdout}{done.stderr}")
    finally:
        broker.stop()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="")
    words = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        for line in SHAKES:
            if words.only in ("", line.name):
                began = time.monotonic()
                of_it = shake(line, words.rounds, Path(directory))
                count = words.rounds * line.times
                print(f"{line.name}: {count - len(of_it)} of {count}, {time.monotonic() - began:.0f} s", flush=True)
                failed += of_it
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
