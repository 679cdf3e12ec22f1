"""Each line of `make shake` is about a test that is there; and the stalls are felt."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.shake.__main__ import PYTEST, ROOT, SHAKES, Shake, shake
from tests.shake.stalls import WHILE_IT_RUNS_S, stalls

TICKS = """
import time
last, worst = time.monotonic(), 0.0
while last < {end}:
    time.sleep(0.005)
    now = time.monotonic()
    last, worst = now, max(worst, now - last)
print(worst)
"""


def test_a_process_stands_still_and_runs_again() -> None:
    end = 2 * WHILE_IT_RUNS_S[1] + time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", TICKS.format(end=end)], stdout=subprocess.PIPE, text=True)
    with stalls(process.pid, (0.4, 0.5), seed=1):
        printed, _ = process.communicate()
    assert process.returncode == 0
    assert float(printed) >= 0.39


def test_each_line_is_about_a_test() -> None:
    chosen = [line.tests for line in SHAKES if "-k" in line.tests]
    named = dict.fromkeys(test for line in SHAKES if "-k" not in line.tests for test in line.tests)
    for tests in ([*named], *chosen):  # few processes: each imports much
        command = [*PYTEST, "--collect-only", *tests]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{tests}: {done.stdout}"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", SHAKES, ids=lambda line: line.name)
def test_shaken(line: Shake, tmp_path: Path) -> None:
    failed = shake(line, 2, tmp_path)
    assert not failed, "\n".join(failed)
