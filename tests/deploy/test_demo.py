"""The first thing a newcomer runs: the demo ends by itself, its verdict is clean and its page is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DEMO = ROOT / "deploy" / "demo" / "demo.py"


@pytest.mark.timeout(900)
def test_the_demo_runs_the_whole_path_and_ends_clean(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DEMO, "--realm", "embedded", "--dir", tmp_path / "demo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    output = done.stdout + done.stderr
    for line in ("nonsense    -> orders: REJECTED", "amqp:not-found", "found 50 of 50 prices", "Verdict: CLEAN"):
        assert line in output, output
    assert (tmp_path / "demo" / "report" / "index.html").stat().st_size > 1000
