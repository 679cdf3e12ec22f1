"""The clock of a process of ours really jumps, its monotonic time does not, and its waits feel it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.processes.jumping_clock import JumpingClock

NEAR_S = 300.0  # far more than a busy machine takes between two looks, far less than the jumps
JUMPS_S = (3000.0, -3000.0, 0.0)
READS_CLOCKS = """
import ctypes, sys, time

libc, day = ctypes.CDLL(None), (ctypes.c_long * 2)()
for _ in sys.stdin:
    libc.gettimeofday(day, None)
    print(time.time_ns() / 1e9, day[0], libc.time(None), time.monotonic(), flush=True)
"""
WAITS = """
import ctypes, time

libc = ctypes.CDLL(None)
mutex, condition = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
for wait_s in (2000, 0.1):
    until_ns = time.time_ns() + int(wait_s * 1e9)
    print("waits", flush=True)
    libc.mtx_lock(mutex)
    while not (code := libc.cnd_timedwait(condition, mutex, (ctypes.c_long * 2)(*divmod(until_ns, 10**9)))):
        pass
    libc.mtx_unlock(mutex)
    print("ended with", code, flush=True)
"""
TIMED_OUT = 4  # thrd_timedout


@dataclass
class Child:
    clock: JumpingClock
    process: subprocess.Popen[str]

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def clocks(self) -> list[float]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [float(word) for word in self.line().split()]


@pytest.fixture
def child(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Child]:
    clock = JumpingClock(tmp_path)
    command = [sys.executable, "-S", "-c", request.param]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **clock.environment}
    ) as process:
        yield Child(clock, process)
        process.kill()


@pytest.mark.parametrize("child", [READS_CLOCKS], indirect=True)
def test_the_time_of_day_jumps_and_monotonic_time_goes_on(child: Child) -> None:
    child.clocks()
    assert child.clock.moves(child.process.pid) and not child.clock.moves(os.getpid())
    for jump_s in JUMPS_S:
        child.clock.jump(jump_s)
        *times_of_day, monotonic = child.clocks()
        for time_of_day in times_of_day:
            assert abs(time_of_day - time.time() - jump_s) < NEAR_S
        assert abs(monotonic - time.monotonic()) < NEAR_S


@pytest.mark.parametrize("child", [WAITS], indirect=True)
def test_a_wait_until_a_time_of_day_ends_when_the_clock_has_jumped_there(child: Child) -> None:
    """And one that is begun after the jump is as long as it is meant to be."""
    assert child.line() == "waits"
    child.clock.jump(3000.0)
    assert [child.line() for _ in range(3)] == [f"ended with {TIMED_OUT}", "waits", f"ended with {TIMED_OUT}"]


def test_a_process_without_the_file_does_not_start(tmp_path: Path) -> None:
    environment = {**os.environ, **JumpingClock(tmp_path).environment, "CLOCK_JUMP": str(tmp_path / "no-such-file")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", ""], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "CLOCK_JUMP: No such file" in done.stderr
