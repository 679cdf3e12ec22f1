"""The whole suite, room by room, in three lanes at once: `make test` runs it so.

Most of the suite waits: for a broker, a JVM, a second that has to pass. So two lanes take room after room of it, the
long ones first. The rooms in `QUIET` wait for nothing: they have no process, no port and no clock but a simulated one.
They run beside the others, niced, on what those leave of the machine. `tests/test_tidy.py` is left out: `make check`
has just run it.

Each room is a pytest of its own, with a broker of its own where it asks for one; what it says is printed when it ends.
The exit code is 1 when a room failed. May import: the standard library.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
QUIET = ("mappings", "simulation", "transformers")
LONG = ("interop", "contract", "native_backend", "gateway", "reconciliation", "wire", "torture")  # the longest first
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no")
BESIDE = ("nice", "-n", "15")


def rooms() -> tuple[list[str], list[str]]:
    """Those that wait, long ones first, and those that do not: all that has tests is in one of them."""
    found = sorted(room.name for room in HERE.iterdir() if next(room.rglob("test_*.py"), None))
    files = sorted(file.name for file in HERE.glob("test_*.py") if file.name != "test_tidy.py")
    waiting = [each for each in found + files if each not in QUIET]
    waiting.sort(key=lambda each: LONG.index(each) if each in LONG else len(LONG))
    return [f"tests/{each}" for each in waiting], [f"tests/{room}" for room in QUIET]


class Lane(threading.Thread):
    """Takes rooms until there are none left. `failed`: those that did."""

    def __init__(self, waiting: deque[str], command: Sequence[str] = PYTEST) -> None:
        super().__init__()
        self._waiting, self._command = waiting, command
        self.failed: list[str] = []

    def run(self) -> None:
        while True:
            try:
                room = self._waiting.popleft()
            except IndexError:
                return
            began = time.monotonic()
            done = subprocess.run(
                [*self._command, room], cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            if done.returncode:
                self.failed.append(room)
            verdict = f"exit {done.returncode}" if done.returncode else "passed"
            sys.stdout.write(f"{room}: {verdict}, {time.monotonic() - began:.0f} s\n{done.stdout}\n")
            sys.stdout.flush()


def main() -> int:
    waiting, quiet = rooms()
    shared = deque(waiting)
    lanes = [Lane(shared), Lane(shared), Lane(deque(quiet), (*BESIDE, *PYTEST))]
    sys.stdout.write(f"two lanes: {' '.join(waiting)}; beside them: {' '.join(quiet)}\n")
    sys.stdout.flush()
    for lane in lanes:
        lane.start()
    try:
        for lane in lanes:
            lane.join()
    finally:  # broken off: what is under way ends by the same signal, and nothing else begins
        shared.clear()
    failed = [room for lane in lanes for room in lane.failed]
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "every room passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
