"""The clock of intervals goes on while the machine is suspended."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.processes.toolchains import NEEDS_NAMESPACES

SUSPENDED_S = 1_000
PROGRAM = """
import time
from native_backend.clock import SystemClock
print(SystemClock().monotonic_s() - time.monotonic())
"""


@NEEDS_NAMESPACES
def test_the_time_of_a_suspended_machine_counts() -> None:
    """In a space whose clocks are those of a machine that was suspended for so long."""
    command = ["unshare", "--time", "--boottime", str(SUSPENDED_S), sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert SUSPENDED_S - 1 < float(done.stdout) < SUSPENDED_S + 1
